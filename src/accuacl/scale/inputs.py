"""What is to be embedded: images in a folder, images or vectors in Parquet files, vectors in a .npy file."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from accuacl.data.decode import decode_all
from accuacl.data.folders import SUFFIXES
from accuacl.data.source import Contents, Item, Source
from accuacl.scale.ids import kind_of
from accuacl.scale.pool import FLOATS, files_of, open_parquet, read

IMAGE, VECTOR = ("img", "image"), ("vector", "embedding", "features")
Batch = tuple[list[Any], NDArray[Any]]  # ids; images uint8 (n, H, W, 3) or vectors float32 (n, d)


class Inputs(Protocol):
    """Examples in a fixed order, each with an id."""

    files: list[str]
    reading: list[Any]  # how they are read, as JSON

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> Batch: ...


def open_inputs(source: str, size: int, column: str, id_column: str, skip_bad: bool) -> Inputs:
    """size: side to bring images to (0: as they are); column: of Parquet files ("": found by its name)."""
    if source.endswith(".npy"):
        return Vectors(source)
    if os.path.isdir(source) and not (parquet := files_of(source, "data")):
        return Folder(source, size, skip_bad)
    if os.path.isdir(source) or source.endswith(".parquet") or any(mark in source for mark in "*?["):
        files = parquet if os.path.isdir(source) else files_of(source, "data")
        return Table(files, size, column, id_column, skip_bad)
    raise ValueError(f"{source} is no folder, Parquet or .npy file; give images or vectors in one of these.")


def fingerprint(inputs: Inputs) -> str:
    """Changes when a file comes, goes, or has another size or time of change."""
    nothing: Any = lambda: Contents  # noqa: E731 - it is never opened
    return Source(Path(inputs.files[0]), tuple(map(os.path.abspath, inputs.files)), nothing).fingerprint()


class Vectors:
    """Rows of a .npy file; the id is the row number."""

    def __init__(self, file: str) -> None:
        self.files = [file]
        self.reading: list[Any] = []
        try:
            self.array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise ValueError(f"{file} cannot be read ({error}); write an array with numpy.save.") from None
        if self.array.ndim != 2 or self.array.dtype.kind not in "fiu":
            raise ValueError(f"{file} holds {self.array.dtype} of shape {self.array.shape}; give vectors (n, d).")

    def __len__(self) -> int:
        return len(self.array)

    def read(self, start: int, stop: int) -> Batch:
        return list(range(start, min(stop, len(self)))), np.array(self.array[start:stop], np.float32)


class Folder:
    """Image files, however deep; the id is the path within the folder."""

    def __init__(self, folder: str, size: int, skip_bad: bool) -> None:
        inside = (path for path in Path(folder).rglob("*") if path.suffix.lower() in SUFFIXES)
        self.paths = sorted(path for path in inside if path.is_file() and not path.name.startswith("."))
        if not self.paths:
            raise ValueError(f"{folder} holds no images and no Parquet files; give a folder that does.")
        self.files, self.folder = [str(path) for path in self.paths], folder
        self.decoding, self.reading = _Decoding(size, skip_bad), [size, skip_bad]

    def __len__(self) -> int:
        return len(self.paths)

    def read(self, start: int, stop: int) -> Batch:
        paths = self.paths[start:stop]
        kept, pixels = self.decoding((str(path), path.read_bytes) for path in paths)
        return [paths[i].relative_to(self.folder).as_posix() for i in kept], pixels


class Table:
    """A column of Parquet files; the id is their id column, or else the row number over all files."""

    def __init__(self, files: list[str], size: int, column: str, id_column: str, skip_bad: bool) -> None:
        if not files:
            raise ValueError("there are no Parquet files of that name; give a file, a folder or a pattern.")
        self.files = files
        schema = open_parquet(files[0]).schema_arrow
        self.column = column or next((name for name in (*IMAGE, *VECTOR) if name in schema.names), "")
        if self.column not in schema.names:
            raise ValueError(
                f"{files[0]} has the columns {', '.join(schema.names)}; say with --column which one holds "
                "images or vectors."
            )
        type_ = schema.field(self.column).type
        self.vectors = hasattr(type_, "value_type") and str(type_.value_type) in FLOATS
        self.id = id_column if id_column in schema.names and kind_of(schema.field(id_column).type) else ""
        self.groups: list[tuple[str, int, int, int]] = []  # file, row group, first row over all files, rows
        first = 0
        for file in files:
            metadata = open_parquet(file).metadata
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                self.groups.append((file, group, first, rows))
                first += rows
        self.rows, self.decoding = first, _Decoding(size, skip_bad)
        self.reading = [size, skip_bad, self.column, self.id]

    def __len__(self) -> int:
        return self.rows

    def read(self, start: int, stop: int) -> Batch:
        found = list(self._rows(start, stop))
        ids = [id_ for id_, _, _ in found]
        if not self.vectors:
            kept, pixels = self.decoding((place, functools.partial(_present, value)) for _, place, value in found)
            return [ids[i] for i in kept], pixels
        lengths = {len(value) if value is not None else 0 for _, _, value in found}
        if len(lengths) > 1 or 0 in lengths:
            raise ValueError(f"{found[0][1]} and after: vectors of {sorted(lengths)} numbers; make all of one length.")
        return ids, np.array([value for _, _, value in found], np.float32)

    def _rows(self, start: int, stop: int) -> Iterator[tuple[Any, str, Any]]:
        for file, group, first, rows in self.groups:
            if first >= stop or first + rows <= start:
                continue
            row = first
            for batch in read(file, open_parquet(file), group, [self.column, *([self.id] if self.id else [])], 1024):
                low, high = max(start - row, 0), min(stop - row, len(batch))
                part = batch.slice(low, max(0, high - low))
                values = part.column(part.schema.get_field_index(self.column))
                if not self.vectors and values.type.num_fields:  # a struct, as Hugging Face writes images
                    values = pc.struct_field(values, "bytes")
                ids = part.column(part.schema.get_field_index(self.id)).to_pylist() if self.id else None
                for i, value in enumerate(values.to_pylist()):
                    number = row + low + i
                    yield (ids[i] if ids else number), f"{file}, row group {group}, row {number - first}", value
                row += len(batch)


@dataclass
class _Decoding:
    """Pixels of one shape; which images they are of, where bad ones are left out."""

    size: int
    skip_bad: bool
    shape: tuple[int, ...] | None = None

    def __call__(self, items: Iterator[Item]) -> tuple[list[int], NDArray[np.uint8]]:
        kept, pixels, number = [], [], 0
        for chunk in decode_all(items, self.size or None):
            for place, image, reason in chunk:
                if image is not None:
                    self.shape = self.shape or image.shape
                    if image.shape != self.shape:
                        raise ValueError(
                            f"{place} is {image.shape[1]} x {image.shape[0]} pixels where {self.shape[1]} x "
                            f"{self.shape[0]} were expected; give --image-size to bring all to one size."
                        )
                    kept.append(number)
                    pixels.append(image)
                elif not self.skip_bad:
                    raise ValueError(
                        f"{place} is not a readable image ({reason}); replace it, "
                        "or leave such ones out with --skip-bad."
                    )
                number += 1
        return kept, np.stack(pixels) if pixels else np.empty((0, *(self.shape or (1, 1, 3))), np.uint8)


def _present(image: bytes | None) -> bytes:
    if image is None:
        raise ValueError("the row has no image bytes")
    return image
