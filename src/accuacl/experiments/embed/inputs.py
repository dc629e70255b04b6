"""What is embedded: images in a folder, arrays of images or vectors, Parquet files and other tables of either."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import BROKEN_ARRAYS, reason
from accuacl.experiments import data
from accuacl.experiments.embed.parquet_inputs import ParquetInputs
from accuacl.experiments.embed.reading import (
    ARRAYS,
    IDX,
    Batch,
    Decoding,
    ReadOptions,
    check_source,
    check_unique,
    is_table,
)
from accuacl.experiments.embed.table_inputs import TableInputs
from accuacl.pools import files_of

# Arrays of an .npz file that hold inputs, by the names that `accuacl run` also knows.
INPUTS = ("inputs", "x", "embeddings", "features", "train_inputs", "x_train", "train_x")


class Inputs(Protocol):
    """Examples in a fixed order, each with an id."""

    files: list[str]
    reading: list[Any]  # how they are read, as JSON

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Batch: ...

    def where(self, row: int) -> str: ...


def open_inputs(source: str, options: ReadOptions, numbers: Sequence[str] = ()) -> Inputs:
    """The images or vectors in a folder, in tables or in arrays; two of the same id are refused.

    numbers: columns of numbers that make a vector, instead of one column.
    """
    inputs = _open(source, options, numbers)
    if not len(inputs):
        raise InputError(f"{source} has no rows; give images or vectors to embed.")
    return inputs


def _open(source: str, options: ReadOptions, numbers: Sequence[str]) -> Inputs:
    check_source(source)
    if source.endswith(ARRAYS):
        return ArrayFile(source, options)
    if is_table(source):
        return TableInputs(source, options, numbers)
    if os.path.isdir(source):
        parquet, images = files_of(source, "data"), images_in(source)
        if parquet and images:
            raise InputError(f"{source} holds images and Parquet files, like {parquet[0]}; give a folder of one kind.")
        if not parquet:
            _no_columns(source, options)
            return ImageFolder(source, images, options)
        return ParquetInputs(parquet, options, numbers)
    parquet = files_of(source, "data")
    if not parquet:
        raise InputError(f"{source} names no Parquet files; give a file, a folder or a pattern.")
    return ParquetInputs(parquet, options, numbers)


def _no_columns(source: str, options: ReadOptions) -> None:
    """Refuse names of columns for data that have none."""
    for option, given in (("--column", options.column), ("--id-column", options.id_column)):
        if given not in ("", "id"):
            raise InputError(f"{source} has no columns; leave out {option} {given}.")


def fingerprint(inputs: Inputs) -> str:
    """Changes when a file comes, goes, or has another size or time of change."""
    return data.fingerprint(map(os.path.abspath, inputs.files))


def images_in(folder: str) -> list[Path]:
    """All images in the folder and those below, in the order of their paths."""
    inside = (path for path in Path(folder).rglob("*") if path.suffix.lower() in data.IMAGE_SUFFIXES)
    return sorted(path for path in inside if path.is_file() and not path.name.startswith("."))


class ImageFolder:
    """Image files, however deep; the id is the path within the folder."""

    def __init__(self, folder: str, paths: list[Path], options: ReadOptions) -> None:
        self.paths = paths
        if not self.paths:
            raise InputError(f"{folder} holds no images and no Parquet files; give a folder that does.")
        self.files, self.folder = [str(path) for path in self.paths], folder
        self.decoding = Decoding(options.image_size, options.skip_bad)
        self.reading = [options.image_size, options.skip_bad]

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, start: int, stop: int) -> Batch:
        paths = self.paths[start:stop]
        kept, pixels = self.decoding((str(path), path.read_bytes) for path in paths)
        return [paths[i].relative_to(self.folder).as_posix() for i in kept], pixels

    def where(self, row: int) -> str:
        return self.files[row]


class ArrayFile:
    """An array of a .npy, .npz or idx file: vectors (n, d), or images, uint8 (n, H, W), (n, H, W, 1) or (n, H, W, 3).

    The id is the row number, or what the array that --id-column names in an .npz file has.
    """

    def __init__(self, file: str, options: ReadOptions) -> None:
        self.files = [file]
        self.reading: list[Any] = []
        if not file.endswith(".npz"):
            _no_columns(file, options)
        self.ids: list[Any] | None = None
        try:
            if file.endswith(".npz"):
                self.array, self.ids = _of_npz(file, options)
                self.reading = [options.column, options.id_column if self.ids else ""]
            else:
                self.array = (
                    data.read_idx(Path(file))
                    if file.endswith(IDX)
                    else np.load(file, mmap_mode="r", allow_pickle=False)
                )
        except BROKEN_ARRAYS as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{file} cannot be read: {reason(error)}; give an array that numpy.save wrote.") from None
        self.images = _are_images(self.array)
        if not self.images and (self.array.ndim != 2 or self.array.dtype.kind not in "fiu"):
            raise InputError(
                f"{file} holds {self.array.dtype} of shape {self.array.shape}; give vectors (n, d) or uint8 images "
                "(n, H, W, 3)."
            )
        if self.images:
            self.decoding = Decoding(options.image_size, skip_bad=False)
            self.reading = [*self.reading, options.image_size]
        if self.ids is not None:
            if len(self.ids) != len(self.array):
                raise InputError(f"{file} has {len(self.ids)} ids for {len(self.array)} rows; give one each.")
            ids = self.ids
            check_unique(lambda: [ids], self.where)

    def __len__(self) -> int:
        return len(self.array)

    def read(self, start: int, stop: int) -> Batch:
        rows = range(start, min(stop, len(self)))
        ids = list(rows) if self.ids is None else self.ids[start:stop]
        if self.images:
            return ids, self.decoding((self.where(row), functools.partial(self._image, row)) for row in rows)[1]
        with np.errstate(over="ignore"):  # numbers that become infinite are refused later
            return ids, np.array(self.array[start:stop], np.float32)

    def _image(self, row: int) -> NDArray[np.uint8]:
        image = np.array(self.array[row])
        return np.broadcast_to(image.reshape(*image.shape[:2], -1), (*image.shape[:2], 3)).copy()

    def where(self, row: int) -> str:
        return f"{self.files[0]}, row {row}"


def _are_images(array: NDArray[Any]) -> bool:
    return array.dtype == np.uint8 and (array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (1, 3)))


def _of_npz(file: str, options: ReadOptions) -> tuple[NDArray[Any], list[Any] | None]:
    """The array of inputs and the ids."""
    with np.load(file, allow_pickle=False) as arrays:
        usual = [name for name in INPUTS if name in arrays.files]
        column = options.column or (arrays.files[0] if len(arrays.files) == 1 else next(iter(usual), ""))
        if column not in arrays.files:
            named = ", ".join(arrays.files)
            raise InputError(f"{file} has the arrays {named}; say with --column which one holds images or vectors.")
        if options.id_column not in ("", "id") and options.id_column not in arrays.files:
            raise InputError(f"{file} has no array {options.id_column!r}; give another --id-column.")
        ids: NDArray[Any] | None = arrays[options.id_column] if options.id_column in arrays.files else None
        if ids is not None and (ids.ndim != 1 or ids.dtype.kind not in "iuU"):
            raise InputError(
                f"{file}: {options.id_column} holds {ids.dtype} of shape {ids.shape}; give a whole number or a text "
                "for each row, or --id-column '' for row numbers."
            )
        return arrays[column], None if ids is None else ids.tolist()
