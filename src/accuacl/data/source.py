"""What a layout on disk gives before anything is decoded: which files, which labels, where each image is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
# What to call an image in an error, and how to get it: encoded, or already as pixels.
Item: TypeAlias = tuple[str, Callable[[], bytes | Pixels]]


@dataclass(frozen=True, eq=False)
class Part:
    """One split: its labels, and its images in the same order."""

    labels: NDArray[np.int64]
    images: Callable[[], Iterator[Item]]


@dataclass(frozen=True, eq=False)
class Contents:
    """Both splits and the names of the classes, if the layout names them."""

    train: Part
    test: Part
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Source:
    """A layout that was found. Finding it reads no data; `open` does."""

    place: Path  # the folder or archive
    files: tuple[str, ...]  # everything it consists of
    open: Callable[[], Contents]
    reading: str = ""  # changes when the same files come to be read in another way

    def fingerprint(self) -> str:
        """Changes when a file comes, goes, or has another size or time of change, or is read in another way."""
        found = hashlib.sha256(self.reading.encode())
        for file in sorted(self.files):
            try:
                stat = os.stat(file)
                line = f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
            except OSError:  # a broken link, say: reading it will name it
                line = f"{file}\0missing\n"
            found.update(line.encode("utf-8", "surrogateescape"))
        return found.hexdigest()
