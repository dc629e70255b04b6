"""Reading a shard a chunk of rows at a time, as NumPy arrays that share Arrow's memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.features import Array, Features, RowError
from accuacl.pools.ids import Column
from accuacl.pools.pool import Layout, Shard
from accuacl.pools.row_groups import RowGroup, check_present, ids_of, matrix, read, unchanged

CHUNK_BYTES = 16 << 20  # read at a time


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a row group. A column that is not read is None (ids) or ones, of width 1."""

    group: RowGroup
    first: int  # row of the file
    ids: Column
    embeddings: Array
    probabilities: Array

    def __len__(self) -> int:
        return len(self.embeddings)

    def features(self, check: bool) -> Features:
        """The rows; with `check`, every number is checked, and an error names the first bad one."""
        if not check:
            return Features.trusted(self.embeddings, self.probabilities)
        try:
            return Features(self.embeddings, self.probabilities)
        except RowError as error:
            raise InputError(error.at(self.group.at(self.first + error.row))) from None
        except InputError as error:
            raise InputError(f"{self.group.at(self.first)} and after: {error}") from None


def chunks(layout: Layout, shard: Shard, wanted: tuple[str, ...]) -> Iterator[Chunk]:
    """All rows of a shard in order; `wanted`: which columns."""
    widths = zip(("embedding", "probability"), (layout.d, layout.K), layout.types, strict=False)
    row_bytes = 16 + sum(width * np.dtype(kind).itemsize for name, width, kind in widths if name in wanted)
    rows = min(1 << 16, max(1 << 10, CHUNK_BYTES // row_bytes))
    names = [getattr(layout.columns, name) for name in wanted]
    file = ""
    for group in shard:
        if group.file != file:
            file, parquet = group.file, unchanged(group)
        first = group.first
        for batch in read(group.file, parquet, group.number, names, rows):
            columns: dict[str, Any] = {
                name: batch.column(batch.schema.get_field_index(getattr(layout.columns, name))) for name in wanted
            }
            for name, column in columns.items():
                check_present(group, first, name, column)
            yield Chunk(
                group,
                first,
                ids_of(group, first, columns["id"]) if "id" in columns else None,
                matrix(group, first, "embedding", columns.get("embedding"), layout.d, len(batch)),
                matrix(group, first, "probability", columns.get("probability"), layout.K, len(batch)),
            )
            first += len(batch)
