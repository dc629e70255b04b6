"""A pool on disk: Parquet files with checked columns, whose row groups are joined to shards of work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow.parquet as pq

from accuacl.base.arrow import is_lists
from accuacl.base.errors import InputError
from accuacl.pools.files import PoolSource, files_of
from accuacl.pools.ids import kind_of
from accuacl.pools.row_groups import RowGroup, open_parquet, row_groups_of, width_of

SHARD_GROUPS = 256  # row groups in a shard at most: a shard is sent to a worker, and must fit into a pipe
SHARD_ROWS = 1 << 17  # row groups are joined up to this many rows
FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}


@dataclass(frozen=True)
class Columns:
    """The names of the columns."""

    id: str = "id"
    embedding: str = "embedding"
    probability: str = "probability"


Shard: TypeAlias = tuple[RowGroup, ...]


@dataclass(frozen=True)
class Layout:
    """What the files of a pool have in common. Widths are 0 for columns that are not read."""

    columns: Columns
    wanted: tuple[str, ...]  # which of id, embedding and probability are read
    id: str = ""  # number or text
    d: int = 0
    K: int = 0
    types: tuple[str, ...] = ()  # float types of embedding and probability

    @property
    def shape(self) -> tuple[int, int]:
        """d and K of the arrays read from it; a column that is not read becomes a column of ones."""
        return max(1, self.d), max(1, self.K)


@dataclass(frozen=True)
class Pool:
    """A pool whose files have the right columns. Only the footers of the files have been read."""

    layout: Layout
    groups: tuple[RowGroup, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups)

    def shards(self, rows: int = SHARD_ROWS) -> list[Shard]:
        """The row groups, small ones joined up to about `rows` rows."""
        shards: list[list[RowGroup]] = []
        held = 0
        for group in self.groups:
            if not shards or held + group.rows > rows or len(shards[-1]) == SHARD_GROUPS:
                shards.append([])
                held = 0
            shards[-1].append(group)
            held += group.rows
        return [tuple(shard) for shard in shards]


def open_pool(source: PoolSource, columns: Columns, wanted: tuple[str, ...], what: str = "pool") -> Pool:
    """The pool in these files. `wanted`: which of its columns are needed; `what` it is, for errors."""
    layout: Layout | None = None
    empty: Layout | None = None  # of a file without rows, which fits any other
    first = ""
    groups: list[RowGroup] = []
    for file in files_of(source, what):
        parquet = open_parquet(file)
        this = _layout(file, parquet, columns, wanted)
        if not parquet.metadata.num_rows:
            empty = empty or this
            continue
        if layout and this != layout:
            raise InputError(f"{file} has {_described(this)}, but {first} has {_described(layout)}; make them alike.")
        if not layout:
            layout, first = this, file
        groups += row_groups_of(file, parquet.metadata)
    layout = layout or empty
    if layout is None:
        given = ", ".join(map(str, source)) if isinstance(source, list | tuple) else source
        raise InputError(
            f"{what}: {given} holds no Parquet files; give a file, a folder or a pattern like 'a/*.parquet'."
        )
    return Pool(layout, tuple(groups))


def _layout(file: str, parquet: pq.ParquetFile, columns: Columns, wanted: tuple[str, ...]) -> Layout:
    schema = parquet.schema_arrow
    for name in wanted:
        column = getattr(columns, name)
        if column not in schema.names:
            raise InputError(
                f"{file} has the columns {', '.join(schema.names)} and none called {column!r}; "
                f"say which one is the {name} (--{name}-column)."
            )
    id_ = kind_of(schema.field(columns.id).type) if "id" in wanted else ""
    if "id" in wanted and not id_:
        raise InputError(f"{file}: {columns.id} holds {schema.field(columns.id).type}; give whole numbers or text.")
    d, h = _list(file, parquet, columns.embedding) if "embedding" in wanted else (0, "")
    K, p = _list(file, parquet, columns.probability) if "probability" in wanted else (0, "")
    return Layout(columns, wanted, id_, d, K, (h, p))


def _list(file: str, parquet: pq.ParquetFile, column: str) -> tuple[int, str]:
    """Width and float type of a column of lists."""
    type_ = parquet.schema_arrow.field(column).type
    if not is_lists(type_) or str(type_.value_type) not in FLOATS:
        raise InputError(f"{file}: {column} holds {type_}; give lists of float32 or float16, all of one length.")
    return width_of(file, parquet, column), FLOATS[str(type_.value_type)]


def _described(layout: Layout) -> str:
    parts = [f"ids of {layout.id}s" if layout.id == "number" else "ids of text"] if layout.id else []
    parts += [f"embeddings of {layout.d} {layout.types[0]}"] if layout.d else []
    parts += [f"probabilities of {layout.K} {layout.types[1]}"] if layout.K else []
    return ", ".join(parts)
