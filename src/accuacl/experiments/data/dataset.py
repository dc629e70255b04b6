"""Data sets as values: inputs and labels of two splits.

A `Dataset` is in memory or memory-mapped. A `Source` is a layout of images that was found; opened, it gives a
`RawDataset` of encoded images, which the cache decodes.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError

COLUMNS = ("task", "domain")  # columns that name an example's task and domain
TESTS = ("test", "val", "valid", "validation")  # what a test split may be called
Pixels: TypeAlias = NDArray[np.uint8]
# What to call an image in an error, and how to get it: encoded, or already as pixels.
RawImage: TypeAlias = tuple[str, Callable[[], bytes | Pixels]]


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs and the data set's own class ids, row by row."""

    inputs: NDArray[Any]  # uint8 (n, H, W, 3), which may be LazyImages, or float32 (n, d); memory-mapped where possible
    labels: NDArray[np.int64]  # (n,), each in 0..C-1
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # those of COLUMNS that the data have, by row

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: NDArray[np.bool_]) -> Split:
        """Those of the rows where `rows` is true."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return Split(self.inputs[rows], self.labels[rows], columns)


@dataclass(frozen=True, eq=False)
class InputRows:
    """Some rows of an array, read from it a slice at a time: `rows[a:b]`. The array may be larger than memory.

    >>> InputRows(np.arange(10) ** 2, np.array([7, 1, 4]))[1:]
    array([ 1, 16])
    """

    array: NDArray[Any]
    ids: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        return self.array[self.ids[part]]  # a copy, in memory


class LazyImages:
    """Images that are made as they are read: `images[rows]`; `read` makes those of an array of row numbers.

    It has what the package uses of an array: its length, shape, type and rows.
    """

    dtype = np.dtype(np.uint8)

    def __init__(self, shape: tuple[int, ...], read: Callable[[NDArray[np.int64]], Pixels]) -> None:
        self.shape, self.ndim, self.read = shape, len(shape), read

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Pixels:
        rows = np.arange(len(self))[key]
        images = self.read(np.atleast_1d(rows))
        return images if np.ndim(rows) else images[0]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Two splits and the names of their classes; a class's id is its position in `classes`.

    made_of: the columns of a table that vectors are made of, in order; (): they are not made of columns.
    """

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]
    made_of: tuple[str, ...] = ()


class ColumnNames(NamedTuple):
    """Names that the user gives for columns of a table; "": the usual ones."""

    label: str = ""
    task: str = ""

    def of(self, column: str) -> str:
        """What one of COLUMNS is called."""
        return self.task if self.task and column == "task" else column


@dataclass(frozen=True, eq=False)
class RawSplit:
    """A split whose images are not decoded yet."""

    labels: NDArray[np.int64]
    images: Callable[[], Iterable[RawImage]]
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # as `Split` has them

    def take(self, rows: NDArray[np.bool_]) -> RawSplit:
        """Those of the rows where `rows` is true."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        return RawSplit(self.labels[rows], lambda: itertools.compress(self.images(), rows), columns)


@dataclass(frozen=True, eq=False)
class RawDataset:
    """Both splits and the names of the classes, if the layout names them."""

    train: RawSplit
    test: RawSplit
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Source:
    """A layout of images that was found. `open` reads their labels."""

    path: Path  # the folder or archive
    files: tuple[str, ...]  # everything it consists of
    open: Callable[[], RawDataset]
    reading: str = ""  # how the files are read: the cache is made again when this changes


def check_labels(train: NDArray[np.int64], test: NDArray[np.int64], classes: int, place: object) -> None:
    """Check that every label of both splits is one of the classes."""
    for split, labels in (("train", train), ("test", test)):
        wrong = (labels < 0) | (labels >= classes)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{place}, {split}: row {row} has the unknown class {labels[row]}; the classes are 0 to {classes - 1}, "
                "so fix the label or leave the row out."
            )


def fingerprint(files: Iterable[str], reading: str = "") -> str:
    """A hash of names, sizes and times of change of the files, and of how they are read."""
    digest = hashlib.sha256(reading.encode())
    for file in sorted(files):
        try:
            stat = os.stat(file)
            line = f"{file}\0{stat.st_size}\0{stat.st_mtime_ns}\n"
        except OSError:  # a broken link, say: reading it will name it
            line = f"{file}\0missing\n"
        digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def natural(name: str) -> list[Any]:
    """A sort key for names that orders the numbers in them by value.

    >>> sorted(["task-10", "task-9", "Task-1"], key=natural)
    ['Task-1', 'task-9', 'task-10']
    >>> sorted(["0", "-1", "1", "-10"], key=natural)
    ['-10', '-1', '0', '1']
    """
    if re.fullmatch(r"-\d+", name):
        return [["", int(name), ""], name]
    parts = re.split(r"(\d+)", name.casefold())
    return [[int(part) if i % 2 else part for i, part in enumerate(parts)], name]
