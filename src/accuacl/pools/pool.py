"""Pools on disk: Parquet files, their columns checked, their row groups listed as shards of work."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from accuacl.base.errors import InputError
from accuacl.pools.ids import kind_of

PIECES = 256  # row groups in a shard at most: a shard is a message, and must fit into a pipe
SHARD_ROWS = 1 << 17  # row groups are joined up to this many rows
FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}

Source: TypeAlias = Any  # a path (file, folder or glob), several, or a pyarrow dataset


@dataclass(frozen=True)
class Columns:
    """What the columns are called."""

    id: str = "id"
    embedding: str = "embedding"
    probability: str = "probability"


@dataclass(frozen=True)
class Piece:
    """One row group of a file; `first` is its first row, counted in the file from 0."""

    file: str
    size: int
    changed: int
    group: int
    first: int
    rows: int

    def at(self, row: int) -> str:
        """Where a row of the file is, in words."""
        return f"{self.file}, row group {self.group}, row {row}"


Shard: TypeAlias = tuple[Piece, ...]


@dataclass(frozen=True)
class Layout:
    """What the files of a pool have in common. Widths are 0 for columns that are not read."""

    columns: Columns
    wanted: tuple[str, ...]  # which of id, embedding and probability are read
    id: str = ""  # number or text
    d: int = 0
    K: int = 0
    types: tuple[str, ...] = ()  # float types of embedding and probability


@dataclass(frozen=True)
class Pool:
    """A pool that was found and looks right. Nothing but the files' ends has been read."""

    layout: Layout
    pieces: tuple[Piece, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def shards(self, rows: int = SHARD_ROWS) -> list[Shard]:
        """The row groups, small ones joined up to about `rows` rows."""
        found: list[list[Piece]] = []
        held = 0
        for piece in self.pieces:
            if not found or held + piece.rows > rows or len(found[-1]) == PIECES:
                found.append([])
                held = 0
            found[-1].append(piece)
            held += piece.rows
        return [tuple(shard) for shard in found]


def open_pool(source: Source, columns: Columns, wanted: tuple[str, ...], what: str = "pool") -> Pool:
    """The pool in these files. `wanted`: which of its columns are needed; `what` it is, for errors."""
    layout: Layout | None = None
    empty: Layout | None = None  # of a file without rows, which fits to any other
    first = ""
    pieces: list[Piece] = []
    for file in files_of(source, what):
        parquet = open_parquet(file)
        found = _layout(file, parquet, columns, wanted)
        if not parquet.metadata.num_rows:
            empty = empty or found
            continue
        if layout and found != layout:
            raise InputError(f"{file} has {_described(found)}, but {first} has {_described(layout)}; make them alike.")
        if not layout:
            layout, first = found, file
        pieces += pieces_of(file, parquet.metadata)
    layout = layout or empty
    if layout is None:
        raise InputError(
            f"{what}: {source} holds no Parquet files; give a file, a folder or a pattern like 'a/*.parquet'."
        )
    return Pool(layout, tuple(pieces))


def files_of(source: Source, what: str) -> list[str]:
    """The Parquet files meant, each once, in order."""
    source = getattr(source, "files", source)  # of a pyarrow dataset
    if isinstance(source, str | os.PathLike):
        return _files(os.fspath(source), what)
    if not isinstance(source, Iterable):
        raise InputError(f"{what} is a {type(source).__name__}; give a path, several, or a pyarrow dataset.")
    return list(dict.fromkeys(file for one in source for file in _files(os.fspath(one), what)))


def _files(path: str, what: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = (p for p in Path(path).rglob("*.parquet") if p.is_file())
        return sorted(str(p) for p in inside if not any(part[0] in "._" for part in p.relative_to(path).parts))
    if not os.path.exists(path) and any(mark in path for mark in "*?["):
        return sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not os.path.isfile(path):
        raise InputError(f"{what}: there is no file or folder {path}; give one, or a pattern like 'a/*.parquet'.")
    return [path]


def open_parquet(file: str) -> pq.ParquetFile:
    """A Parquet file, to be read a page at a time."""
    try:
        # Without a buffer size Arrow reads a whole row group's column at once, and takes longer for it.
        return pq.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file} is not a readable Parquet file ({_one_line(error)}); write it again.") from None


def pieces_of(file: str, metadata: pq.FileMetaData) -> list[Piece]:
    """The row groups of a file that have rows."""
    stat, first, found = os.stat(file), 0, []
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group).num_rows
        if rows:
            found.append(Piece(file, stat.st_size, stat.st_mtime_ns, group, first, rows))
        first += rows
    return found


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


def is_lists(type_: pa.DataType) -> bool:
    """Whether a column holds lists."""
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def width_of(file: str, parquet: pq.ParquetFile, column: str) -> int:
    """How long a column's lists are: those that could have any length as long as the first, 0 if there is none."""
    type_ = parquet.schema_arrow.field(column).type
    if pa.types.is_fixed_size_list(type_):
        width = int(type_.list_size)
    else:
        lists_there = (batch.column(0).drop_null() for batch in read(file, parquet, None, [column], 1024))
        first = next((found[0] for found in lists_there if len(found)), None)
        if first is None:  # no row that could say
            return 0
        width = len(first)
    if width < 1:
        raise InputError(f"{file}: {column} holds empty lists; every row needs at least one number.")
    return width


def read(file: str, parquet: pq.ParquetFile, group: int | None, columns: Sequence[str], rows: int) -> Iterable[Any]:
    """Record batches of a row group (None: of all); what cannot be read is refused with its place."""
    groups = None if group is None else [group]
    try:
        yield from parquet.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file}, row group {group or 0} cannot be read ({_one_line(error)}); write the file again."
        ) from None


def _described(layout: Layout) -> str:
    parts = [f"ids of {layout.id}s" if layout.id == "number" else "ids of text"] if layout.id else []
    parts += [f"embeddings of {layout.d} {layout.types[0]}"] if layout.d else []
    parts += [f"probabilities of {layout.K} {layout.types[1]}"] if layout.K else []
    return ", ".join(parts)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
