"""Images or vectors in Parquet files, read in bounded memory: which columns hold them, and their ids."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accuacl.base.arrow import is_lists, is_numbers
from accuacl.base.errors import InputError, listed
from accuacl.experiments.embed.reading import Batch, Decoding, ReadOptions, check_numbers, check_unique
from accuacl.pools import (
    RowGroup,
    check_present,
    ids_of,
    kind_of,
    matrix,
    open_parquet,
    read,
    row_groups_of,
    unchanged,
    width_of,
)

IMAGE, VECTOR = ("img", "image"), ("vector", "embedding", "features")  # names that are looked for
BINARY = ("binary", "large_binary", "binary_view")
IDS = {"": "no ids", "number": "ids of numbers", "text": "ids of text"}


class InputColumns(NamedTuple):
    """What a file holds (`what`: images, vectors or numbers), in which columns, and the kind of its ids ("": none)."""

    what: str
    columns: tuple[str, ...]
    ids: str

    def in_words(self) -> str:
        return f"{self.what} in {', '.join(self.columns)} and {IDS[self.ids]}"


def input_columns(file: str, schema: pa.Schema, options: ReadOptions, numbers: Sequence[str]) -> InputColumns:
    """The columns to read of a file. numbers: columns of numbers that make a vector, instead of one column."""
    lists = [name for name in options.usual if name in schema.names and is_lists(schema.field(name).type)]
    usual = next(iter((*lists, *options.usual)), "")
    column, id_column = options.column or usual, options.id_column
    ids, has = "", f"{file} has the columns {listed(schema.names)}"
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
        check_numbers(file, numbers, [field.name for field in schema if is_numbers(field.type)])
        return InputColumns("numbers", tuple(numbers), ids)
    column = column or next((name for name in (*IMAGE, *VECTOR) if name in schema.names), "")
    if column not in schema.names:
        raise InputError(f"{has}; say with --column which one holds images or vectors.")
    type_ = schema.field(column).type
    if is_lists(type_) and is_numbers(type_.value_type) and not pa.types.is_boolean(type_.value_type):
        return InputColumns("vectors", (column,), ids)
    if pa.types.is_struct(type_):  # as Hugging Face writes images
        inside = next((field.type for field in type_ if field.name == "bytes"), None)
    else:
        inside = type_
    if str(inside) not in (*BINARY, "null"):
        raise InputError(
            f"{file}: {column} holds {type_}; give images (their bytes) or vectors (lists of numbers), "
            "or another --column."
        )
    return InputColumns("images", (column,), ids)


READ_BYTES, READ_ROWS = 32 << 20, 1024  # read at a time


class ParquetInputs:
    """Images or vectors in Parquet files; the id is their id column, or else the row number over all files.

    numbers: columns of numbers that make a vector, instead of one column.
    A `read` that starts where the previous one ended continues there, so that reading a row group in parts takes no
    longer than reading it at once.
    """

    def __init__(self, files: list[str], options: ReadOptions, numbers: Sequence[str]) -> None:
        self.files = files
        self.row_groups: list[RowGroup] = []
        self.width = 0  # of vectors
        known: InputColumns | None = None
        for file in files:
            parquet = open_parquet(file)
            if not parquet.metadata.num_rows:  # then its columns may be of any type
                continue
            columns = input_columns(file, parquet.schema_arrow, options, numbers)
            if known is None:
                known = columns
                self.width = width_of(file, parquet, columns.columns[0]) if columns.what == "vectors" else 0
            elif columns != known:
                first = self.row_groups[0].file
                raise InputError(
                    f"{file} has {columns.in_words()}, but {first} has {known.in_words()}; make them alike."
                )
            self.row_groups += row_groups_of(file, parquet.metadata)
        self.what, self.columns, ids = known or InputColumns("", (), "")
        self.id = options.id_column if ids else ""
        self.rows = sum(group.rows for group in self.row_groups)
        self.decoding = Decoding(options.image_size, options.skip_bad)
        self.reading = [options.image_size, options.skip_bad, ", ".join(self.columns), self.id]
        self._next = -1  # the first row of `_left` and then `_coming`
        self._left: tuple[RowGroup, int, Any] | None = None
        self._coming: Iterator[tuple[RowGroup, int, Any]] = iter(())
        if self.id:
            check_unique(self._ids, self.where)

    def __len__(self) -> int:
        return self.rows

    def where(self, row: int) -> str:
        """Where a row is, for messages."""
        for group in self.row_groups:
            if row < group.rows:
                return group.at(group.first + row)
            row -= group.rows
        raise IndexError(row)

    def _ids(self) -> Iterator[list[Any]]:
        """The ids of all rows, some at a time."""
        for group, first, batch in self._from(0, ()):
            yield self._names(group, first, batch)

    def _names(self, group: RowGroup, first: int, batch: Any) -> list[Any]:
        column = _of(batch, self.id)
        check_present(group, first, self.id, column)
        return list(ids_of(group, first, column).tolist())

    def read(self, start: int, stop: int) -> Batch:
        ids: list[Any] = []
        parts: list[NDArray[Any]] = []
        rows: NDArray[Any]
        for number, group, first, batch in self._batches(start, min(stop, self.rows)):
            names = self._names(group, first, batch) if self.id else list(range(number, number + len(batch)))
            if self.what == "images":
                kept, rows = self.decoding(_images(group, first, _of(batch, self.columns[0])))
                names = [names[i] for i in kept]
            else:
                with np.errstate(over="ignore"):  # numbers that become infinite are refused after the model
                    rows = self._vectors(group, first, batch).astype(np.float32)
            ids += names
            parts.append(rows)
        return ids, np.concatenate([part for part in parts if len(part)] or parts[:1])

    def _vectors(self, group: RowGroup, first: int, batch: Any) -> NDArray[Any]:
        columns = [_of(batch, name) for name in self.columns]
        for name, column in zip(self.columns, columns, strict=True):
            check_present(group, first, "vector" if self.what == "vectors" else name, column)
        if self.what == "vectors":
            return matrix(group, first, "vector", columns[0], self.width, len(batch))
        return np.stack([column.to_numpy(zero_copy_only=False).astype(np.float32) for column in columns], axis=1)

    def _batches(self, start: int, stop: int) -> Iterator[tuple[int, RowGroup, int, Any]]:
        """The rows from start to stop: (number of the first, its row group, its row of the file, a record batch)."""
        if start != self._next:
            self._left, self._coming = None, self._from(start, self.columns)
        self._next = -1  # unknown until this read has finished
        while start < stop:
            group, first, batch = self._left or next(self._coming)
            count = min(len(batch), stop - start)
            self._left = (group, first + count, batch.slice(count)) if count < len(batch) else None
            yield start, group, first, batch.slice(0, count)
            start += count
        self._next = start

    def _from(self, start: int, columns: tuple[str, ...]) -> Iterator[tuple[RowGroup, int, Any]]:
        """These columns and the ids from a row on: (row group, its row of the file, a record batch) at a time."""
        wanted, file = [*columns, *([self.id] if self.id else [])], ""
        for group in self.row_groups:
            if start < group.rows:
                if group.file != file:
                    file, parquet = group.file, unchanged(group)
                first = group.first
                for batch in read(file, parquet, group.number, wanted, _at_a_time(parquet, group, columns)):
                    if start < len(batch):
                        yield group, first + start, batch.slice(start)
                    start = max(0, start - len(batch))
                    first += len(batch)
            else:
                start -= group.rows


def _at_a_time(parquet: pq.ParquetFile, group: RowGroup, columns: tuple[str, ...]) -> int:
    """How many rows of a row group are read in one go: fewer where images are large."""
    metadata, begin = parquet.metadata.row_group(group.number), tuple(f"{name}." for name in columns)
    chunks = (metadata.column(i) for i in range(metadata.num_columns))
    size = sum(chunk.total_uncompressed_size for chunk in chunks if f"{chunk.path_in_schema}.".startswith(begin))
    return max(1, min(READ_ROWS, group.rows * READ_BYTES // max(1, size)))


def _of(batch: Any, column: str) -> Any:
    return batch.column(batch.schema.get_field_index(column))


def _images(group: RowGroup, first: int, values: Any) -> Iterator[tuple[str, Any]]:
    if pa.types.is_struct(values.type):  # as Hugging Face writes them
        values = pc.struct_field(values, "bytes")
    return ((group.at(first + i), functools.partial(_present, value)) for i, value in enumerate(values))


def _present(image: Any) -> bytes:
    data: bytes | None = image.as_py()
    if data is None:
        raise InputError("the row has no image bytes")
    return data
