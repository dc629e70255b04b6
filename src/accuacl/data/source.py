"""What a layout on disk gives before anything is decoded: which files, which labels, where each image is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
# What to call an image in an error, and how to get it: encoded, or already as pixels.
RawImage: TypeAlias = tuple[str, Callable[[], bytes | Pixels]]


@dataclass(frozen=True, eq=False)
class RawSplit:
    """One split: its labels, and its images in the same order."""

    labels: NDArray[np.int64]
    images: Callable[[], Iterator[RawImage]]
    columns: Mapping[str, list[Any]] = field(default_factory=dict)  # as `Split` has them


@dataclass(frozen=True, eq=False)
class RawDataset:
    """Both splits and the names of the classes, if the layout names them."""

    train: RawSplit
    test: RawSplit
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Source:
    """A layout that was found. Finding it reads no data; `open` does."""

    path: Path  # the folder or archive
    files: tuple[str, ...]  # everything it consists of
    open: Callable[[], RawDataset]
    reading: str = ""  # changes when the same files come to be read in another way

    def fingerprint(self) -> str:
        """Changes when the files change, or are read in another way."""
        return fingerprint(self.files, self.reading)


def fingerprint(files: Iterable[str], reading: str = "") -> str:
    """Changes when a file comes, goes, or has another size or time of change."""
    digest = hashlib.sha256(reading.encode())
    for file in sorted(files):
        try:
            stat = os.stat(file)
            line = f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
        except OSError:  # a broken link, say: reading it will name it
            line = f"{file}\0missing\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
