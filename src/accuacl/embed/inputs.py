"""What is to be embedded: images in a folder, images or vectors in Parquet files, vectors in a .npy file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from accuacl import data
from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.embed.parquet import ParquetInputs
from accuacl.embed.pixels import Decoding
from accuacl.embed.places import check_source
from accuacl.embed.reading import Batch, ReadOptions
from accuacl.pools import files_of


class Inputs(Protocol):
    """Examples in a fixed order, each with an id."""

    files: list[str]
    reading: list[Any]  # how they are read, as JSON

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Batch: ...

    def where(self, row: int) -> str: ...


def open_inputs(source: str, options: ReadOptions, numbers: Sequence[str] = ()) -> Inputs:
    """The images or vectors in a folder, in Parquet files or in a .npy file.

    numbers: columns of numbers that make a vector, instead of one column.
    """
    inputs = _open(source, options, numbers)
    if not len(inputs):
        raise InputError(f"{source} has no rows; give images or vectors to embed.")
    return inputs


def _open(source: str, options: ReadOptions, numbers: Sequence[str]) -> Inputs:
    check_source(source)
    if source.endswith(".npy"):
        _no_columns(source, options)
        return VectorFile(source)
    if os.path.isdir(source):
        parquet, images = files_of(source, "data"), images_in(source)
        if parquet and images:
            raise InputError(f"{source} holds images and Parquet files, like {parquet[0]}; give a folder of one kind.")
        if not parquet:
            _no_columns(source, options)
            return ImageFolder(source, images, options)
        return ParquetInputs(parquet, options, numbers)
    return ParquetInputs(files_of(source, "data"), options, numbers)


def _no_columns(source: str, options: ReadOptions) -> None:
    """Refuse names of columns for data that have none."""
    for option, given in (("--column", options.column), ("--id-column", options.id_column)):
        if given not in ("", "id"):
            raise InputError(f"{source} has no columns; leave out {option} {given}.")


def fingerprint(inputs: Inputs) -> str:
    """Changes when a file comes, goes, or has another size or time of change."""
    return data.fingerprint(map(os.path.abspath, inputs.files))


def images_in(folder: str) -> list[Path]:
    inside = (path for path in Path(folder).rglob("*") if path.suffix.lower() in data.IMAGE_SUFFIXES)
    return sorted(path for path in inside if path.is_file() and not path.name.startswith("."))


class VectorFile:
    """Rows of a .npy file; the id is the row number."""

    def __init__(self, file: str) -> None:
        self.files = [file]
        self.reading: list[Any] = []
        try:
            self.array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read: {reason(error)}; write an array with numpy.save.") from None
        if self.array.ndim != 2 or self.array.dtype.kind not in "fiu":
            raise InputError(f"{file} holds {self.array.dtype} of shape {self.array.shape}; give vectors (n, d).")

    def __len__(self) -> int:
        return len(self.array)

    def read(self, start: int, stop: int) -> Batch:
        with np.errstate(over="ignore"):  # numbers that become infinite are refused later
            return list(range(start, min(stop, len(self)))), np.array(self.array[start:stop], np.float32)

    def where(self, row: int) -> str:
        return f"{self.files[0]}, row {row}"


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
