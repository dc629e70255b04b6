"""Reading a shard some rows at a time, as NumPy arrays that share Arrow's memory. Bad rows are named by their place."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from accuacl.base.errors import InputError
from accuacl.features import Array, Features
from accuacl.pools.ids import Column, as_column
from accuacl.pools.pool import Layout, Piece, Shard, open_parquet, read

CHUNK_BYTES = 16 << 20  # read at a time


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a row group. A column that is not read is None (ids) or ones, of width 1."""

    piece: Piece
    first: int  # row of the file
    ids: Column
    embeddings: Array
    probabilities: Array

    def __len__(self) -> int:
        return len(self.embeddings)

    def features(self, check: bool) -> Features:
        """The rows; with `check`, every number is looked at, and the first bad one named."""
        if not check:
            return Features.trusted(self.embeddings, self.probabilities)
        try:
            return Features(self.embeddings, self.probabilities)
        except ValueError as error:
            row = re.search(r"\brow (\d+),? ", str(error))
            if row is None:
                raise InputError(f"{self.piece.at(self.first)} and after: {error}") from None
            said = str(error).replace(row[0], "", 1)
            raise InputError(f"{self.piece.at(self.first + int(row[1]))}: {said}") from None


def chunks(layout: Layout, shard: Shard, wanted: tuple[str, ...]) -> Iterator[Chunk]:
    """All rows of a shard in order; `wanted`: which columns."""
    widths = zip(("embedding", "probability"), (layout.d, layout.K), layout.types, strict=False)
    row = 16 + sum(width * np.dtype(kind).itemsize for name, width, kind in widths if name in wanted)
    rows = min(1 << 16, max(1 << 10, CHUNK_BYTES // row))
    names = [getattr(layout.columns, name) for name in wanted]
    file = ""
    for piece in shard:
        if piece.file != file:
            file, parquet = piece.file, unchanged(piece)
        first = piece.first
        for batch in read(piece.file, parquet, piece.group, names, rows):
            parts: dict[str, Any] = {
                name: batch.column(batch.schema.get_field_index(getattr(layout.columns, name))) for name in wanted
            }
            for name, column in parts.items():
                check_present(piece, first, name, column)
            yield Chunk(
                piece,
                first,
                ids_of(piece, first, parts["id"]) if "id" in parts else None,
                matrix(piece, first, "embedding", parts.get("embedding"), layout.d, len(batch)),
                matrix(piece, first, "probability", parts.get("probability"), layout.K, len(batch)),
            )
            first += len(batch)


def unchanged(piece: Piece) -> Any:
    """The open file; refused if it is not what was found at first."""
    parquet = open_parquet(piece.file)
    stat = os.stat(piece.file)
    if (stat.st_size, stat.st_mtime_ns) != (piece.size, piece.changed):
        raise InputError(f"{piece.file} was changed while it was being read; start again when it is finished.")
    return parquet


def check_present(piece: Piece, first: int, name: str, column: Any) -> None:
    """Refuse a column in which a value is missing; `first` is the row of the file that it begins with."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{piece.at(first + row)} has no {name}; fill it in or drop the row.")


def ids_of(piece: Piece, first: int, column: Any) -> Column:
    """The ids in a column."""
    try:
        return as_column(column)
    except pa.ArrowInvalid:
        row = next(i for i, value in enumerate(column.to_pylist()) if not -(2**63) <= value < 2**63)
        raise InputError(f"{piece.at(first + row)}: id {column[row]} is beyond int64; give smaller ones.") from None


def matrix(piece: Piece, first: int, name: str, column: Any, width: int, rows: int) -> Array:
    """The numbers in a column of lists, all of one length; ones for no column."""
    if column is None:
        return np.broadcast_to(np.ones(1, np.float32), (rows, 1))
    if not pa.types.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            raise InputError(
                f"{piece.at(first + row)}: its {name} has {lengths[row]} numbers where {width} were expected; "
                "make all of one length."
            )
    values = column.flatten()
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
        raise InputError(f"{piece.at(first + row)}: its {name} has a missing number; fill it in or drop the row.")
    return values.to_numpy(zero_copy_only=True).reshape(rows, width)
