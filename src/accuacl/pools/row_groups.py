"""Row groups of Parquet files: listed, read a page at a time, their columns as NumPy arrays. Bad rows are named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reason
from accuacl.features import Array
from accuacl.pools.ids import Column, as_column


@dataclass(frozen=True)
class RowGroup:
    """One row group of a file, which was `size` bytes long and last changed at `changed` when it was found.

    `number`: which one it is. `first`: its first row, counted in the file from 0.
    """

    file: str
    size: int
    changed: int
    number: int
    first: int
    rows: int

    def __str__(self) -> str:
        return f"{self.file}, row group {self.number}"

    def at(self, row: int) -> str:
        """Where a row of the file is, in words."""
        return f"{self}, row {row}"


def open_parquet(file: str) -> pq.ParquetFile:
    """A Parquet file, to be read a page at a time."""
    try:
        # Without a buffer size Arrow reads a whole column of a row group at once, which takes longer.
        return pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        ours = file.lower().endswith((".parquet", ".pq"))
        to_do = "write it again" if ours else "make a pool of other files with `accuacl embed`"
        raise InputError(f"{file} is not a readable Parquet file ({_why(error)}); {to_do}.") from None


def row_groups_of(file: str, metadata: pq.FileMetaData) -> list[RowGroup]:
    """The row groups of a file that have rows."""
    stat, first, groups = os.stat(file), 0, []
    for number in range(metadata.num_row_groups):
        rows = metadata.row_group(number).num_rows
        if rows:
            groups.append(RowGroup(file, stat.st_size, stat.st_mtime_ns, number, first, rows))
        first += rows
    return groups


def unchanged(group: RowGroup) -> pq.ParquetFile:
    """The row group's file, open; refused if it has changed since it was listed."""
    parquet = open_parquet(group.file)
    stat = os.stat(group.file)
    if (stat.st_size, stat.st_mtime_ns) != (group.size, group.changed):
        raise InputError(f"{group.file} was changed while it was being read; start again when it is finished.")
    return parquet


def read(file: str, parquet: pq.ParquetFile, number: int | None, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Record batches of a row group (None: of all); what cannot be read is refused with its place."""
    groups = None if number is None else [number]
    try:
        yield from parquet.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file}, row group {number or 0} cannot be read ({_why(error)}); write the file again."
        ) from None


def width_of(file: str, parquet: pq.ParquetFile, column: str) -> int:
    """The length of a column's lists; if their type allows any length, that of the first, or 0 if there is none."""
    type_ = parquet.schema_arrow.field(column).type
    if pa.types.is_fixed_size_list(type_):
        width = int(type_.list_size)
    else:
        batches = (batch.column(0).drop_null() for batch in read(file, parquet, None, [column], 1024))
        first = next((lists[0] for lists in batches if len(lists)), None)
        if first is None:  # there is no row
            return 0
        width = len(first)
    if width < 1:
        raise InputError(f"{file}: {column} holds empty lists; every row needs at least one number.")
    return width


def check_present(group: RowGroup, first: int, name: str, column: Any) -> None:
    """Refuse a column in which a value is missing; `first` is the row of the file that it begins with."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{group.at(first + row)} has no {name}; fill it in or drop the row.")


def ids_of(group: RowGroup, first: int, column: Any) -> Column:
    """The ids in a column."""
    try:
        return as_column(column)
    except pa.ArrowInvalid:
        row = next(i for i, value in enumerate(column.to_pylist()) if not -(2**63) <= value < 2**63)
        raise InputError(f"{group.at(first + row)}: id {column[row]} does not fit into int64; give others.") from None


def matrix(group: RowGroup, first: int, name: str, column: Any, width: int, rows: int) -> Array:
    """The numbers in a column of lists, all of one length; ones for no column."""
    if column is None:
        return np.broadcast_to(np.ones(1, np.float32), (rows, 1))
    if not pa.types.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            raise InputError(
                f"{group.at(first + row)}: its {name} has {lengths[row]} numbers where {width} were expected; "
                "make all lists equally long."
            )
    values = column.flatten()
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
        raise InputError(f"{group.at(first + row)}: its {name} has a missing number; fill it in or drop the row.")
    return values.to_numpy(zero_copy_only=True).reshape(rows, width)


def _why(error: Exception) -> str:
    """The message of an error from Arrow or the system, in one line and without '[Errno ...]'."""
    number = getattr(error, "errno", None)
    return reason(OSError(number, os.strerror(number))) if number else one_line(error)
