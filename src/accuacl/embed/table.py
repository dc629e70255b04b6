"""Images or vectors in Parquet files, read from one end to the other, once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.embed.pixels import Decoding
from accuacl.pools import (
    RowGroup,
    check_present,
    ids_of,
    is_lists,
    kind_of,
    matrix,
    open_parquet,
    read,
    row_groups_of,
    unchanged,
    width_of,
)

IMAGE, VECTOR = ("img", "image"), ("vector", "embedding", "features")
BINARY = ("binary", "large_binary", "binary_view")
IDS = {"": "no ids", "number": "ids of numbers", "text": "ids of text"}
READ_BYTES, READ_ROWS = 32 << 20, 1024  # read at a time

Batch: TypeAlias = tuple[list[Any], NDArray[Any]]  # ids; images uint8 (n, H, W, 3) or vectors float32 (n, d)


class _Found(NamedTuple):
    """What the files of a table have: images, vectors or numbers, in which columns; of what kind ids are ("": none)."""

    what: str
    columns: tuple[str, ...]
    ids: str

    def said(self) -> str:
        return f"{self.what} in {', '.join(self.columns)} and {IDS[self.ids]}"


class Table:
    """A column of Parquet files; the id is their id column, or else the row number over all files.

    numbers: columns of numbers, each row of them a vector.
    A `read` that begins where the last one ended goes on there, so that reading all of a row group in parts takes as
    long as reading it at once.
    """

    def __init__(
        self, files: list[str], size: int, column: str, id_column: str, skip_bad: bool, numbers: Sequence[str]
    ) -> None:
        if not files:
            raise InputError("there are no Parquet files of that name; give a file, a folder or a pattern.")
        self.files = files
        self.pieces: list[RowGroup] = []
        self.width = 0  # of vectors
        known: _Found | None = None
        for file in files:
            parquet = open_parquet(file)
            if not parquet.metadata.num_rows:  # then its columns may be of any type
                continue
            found = _look(file, parquet.schema_arrow, column, id_column, numbers)
            if known is None:
                known = found
                self.width = width_of(file, parquet, found.columns[0]) if found.what == "vectors" else 0
            elif found != known:
                first = self.pieces[0].file
                raise InputError(f"{file} has {found.said()}, but {first} has {known.said()}; make them alike.")
            self.pieces += row_groups_of(file, parquet.metadata)
        self.what, self.columns, ids = known or _Found("", (), "")
        self.id = id_column if ids else ""
        self.rows, self.decoding = sum(piece.rows for piece in self.pieces), Decoding(size, skip_bad)
        self.reading = [size, skip_bad, ", ".join(self.columns), self.id]
        self._next = -1  # the row that `_coming`, after `_left`, goes on with
        self._left: tuple[RowGroup, int, Any] | None = None
        self._coming: Iterator[tuple[RowGroup, int, Any]] = iter(())

    def __len__(self) -> int:
        return self.rows

    def where(self, row: int) -> str:
        """The place of a row in words."""
        for piece in self.pieces:
            if row < piece.rows:
                return piece.at(piece.first + row)
            row -= piece.rows
        raise IndexError(row)

    def read(self, start: int, stop: int) -> Batch:
        ids: list[Any] = []
        parts: list[NDArray[Any]] = []
        rows: NDArray[Any]
        for number, piece, first, batch in self._batches(start, min(stop, self.rows)):
            names: list[Any] = list(range(number, number + len(batch)))
            if self.id:
                column = _of(batch, self.id)
                check_present(piece, first, self.id, column)
                names = ids_of(piece, first, column).tolist()
            if self.what == "images":
                kept, rows = self.decoding(_images(piece, first, _of(batch, self.columns[0])))
                names = [names[i] for i in kept]
            else:
                with np.errstate(over="ignore"):  # what the model makes of the infinite is looked at
                    rows = self._vectors(piece, first, batch).astype(np.float32)
            ids += names
            parts.append(rows)
        return ids, np.concatenate([part for part in parts if len(part)] or parts[:1])

    def _vectors(self, piece: RowGroup, first: int, batch: Any) -> NDArray[Any]:
        columns = [_of(batch, name) for name in self.columns]
        for name, column in zip(self.columns, columns, strict=True):
            check_present(piece, first, "vector" if self.what == "vectors" else name, column)
        if self.what == "vectors":
            return matrix(piece, first, "vector", columns[0], self.width, len(batch))
        return np.stack([column.to_numpy(zero_copy_only=False).astype(np.float32) for column in columns], axis=1)

    def _batches(self, start: int, stop: int) -> Iterator[tuple[int, RowGroup, int, Any]]:
        """The rows from start to stop: (number of the first, its row group, its row of the file, a record batch)."""
        if start != self._next:
            self._left, self._coming = None, self._from(start)
        self._next = -1  # until it is known how far this one came
        while start < stop:
            piece, first, batch = self._left or next(self._coming)
            count = min(len(batch), stop - start)
            self._left = (piece, first + count, batch.slice(count)) if count < len(batch) else None
            yield start, piece, first, batch.slice(0, count)
            start += count
        self._next = start

    def _from(self, start: int) -> Iterator[tuple[RowGroup, int, Any]]:
        """Everything from a row on, some at a time."""
        columns, file = [*self.columns, *([self.id] if self.id else [])], ""
        for piece in self.pieces:
            if start < piece.rows:
                if piece.file != file:
                    file, parquet = piece.file, unchanged(piece)
                first = piece.first
                for batch in read(file, parquet, piece.number, columns, _at_a_time(parquet, piece, self.columns)):
                    if start < len(batch):
                        yield piece, first + start, batch.slice(start)
                    start = max(0, start - len(batch))
                    first += len(batch)
            else:
                start -= piece.rows


def _look(file: str, schema: pa.Schema, column: str, id_column: str, numbers: Sequence[str]) -> _Found:
    """What a file has to embed, and to call it by."""
    ids, has = "", f"{file} has the columns {', '.join(schema.names)}"
    if id_column in schema.names:
        ids = kind_of(schema.field(id_column).type)
        if not ids:
            raise InputError(
                f"{file}: {id_column} holds {schema.field(id_column).type}; give whole numbers or text, "
                "or --id-column '' for row numbers."
            )
    elif id_column not in ("", "id"):
        raise InputError(f"{has} and no {id_column!r}; give another --id-column.")
    if numbers and not column:
        there = [field.name for field in schema if _is_number(field.type)]
        if missing := [name for name in numbers if name not in there]:
            raise InputError(f"{file} has no column of numbers {', '.join(missing)}, which the model learned from.")
        return _Found("numbers", tuple(numbers), ids)
    column = column or next((name for name in (*IMAGE, *VECTOR) if name in schema.names), "")
    if column not in schema.names:
        raise InputError(f"{has}; say with --column which one holds images or vectors.")
    type_ = schema.field(column).type
    if is_lists(type_) and _is_number(type_.value_type) and not pa.types.is_boolean(type_.value_type):
        return _Found("vectors", (column,), ids)
    if pa.types.is_struct(type_):  # as Hugging Face writes images
        inside = next((field.type for field in type_ if field.name == "bytes"), None)
    else:
        inside = type_
    if str(inside) not in (*BINARY, "null"):
        raise InputError(
            f"{file}: {column} holds {type_}; give images (their bytes) or vectors (lists of numbers), "
            "or another --column."
        )
    return _Found("images", (column,), ids)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_boolean(type_))


def _at_a_time(parquet: pq.ParquetFile, piece: RowGroup, columns: tuple[str, ...]) -> int:
    """How many rows of a row group are read in one go: fewer where images are large."""
    group = parquet.metadata.row_group(piece.number)
    parts, begin = (group.column(i) for i in range(group.num_columns)), tuple(f"{name}." for name in columns)
    size = sum(part.total_uncompressed_size for part in parts if f"{part.path_in_schema}.".startswith(begin))
    return max(1, min(READ_ROWS, piece.rows * READ_BYTES // max(1, size)))


def _of(batch: Any, column: str) -> Any:
    return batch.column(batch.schema.get_field_index(column))


def _images(piece: RowGroup, first: int, values: Any) -> Iterator[tuple[str, Any]]:
    if pa.types.is_struct(values.type):  # as Hugging Face writes them
        values = pc.struct_field(values, "bytes")
    return ((piece.at(first + i), functools.partial(_present, value)) for i, value in enumerate(values))


def _present(image: Any) -> bytes:
    data: bytes | None = image.as_py()
    if data is None:
        raise InputError("the row has no image bytes")
    return data
