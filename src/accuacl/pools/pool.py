"""The Parquet files behind a path, a folder, a pattern, several of these, or a pyarrow dataset."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from accuacl.base.arrow import is_lists
from accuacl.base.errors import InputError, a_type, listed
from accuacl.base.files import reason
from accuacl.features import Array
from accuacl.pools.ids import IdArray, as_column, kind_of

PoolSource: TypeAlias = Any  # a path (file, folder or glob), several, or a pyarrow dataset
GROUP_ROWS = 1 << 16  # rows of a row group in the files that we write


def files_of(source: PoolSource, what: str) -> list[str]:
    """The Parquet files of a source, each once, in order; `what` they are, for errors."""
    source = getattr(source, "files", source)  # of a pyarrow dataset
    if isinstance(source, str | os.PathLike):
        return _files(os.fspath(source), what)
    paths = list(source) if isinstance(source, Iterable) else []
    if not isinstance(source, Iterable) or not all(isinstance(path, str | os.PathLike) for path in paths):
        others = ", or Features(embeddings, probabilities)" if what != "pool" else ""  # as a value, not from a disk
        raise InputError(f"{what} is {a_type(source)}; give a path, several, or a pyarrow dataset{others}.")
    return list(dict.fromkeys(file for path in paths for file in _files(os.fspath(path), what)))


def _files(path: str, what: str) -> list[str]:
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        inside = (p for p in Path(path).rglob("*.parquet") if p.is_file())
        return sorted(str(p) for p in inside if not any(part[0] in "._" for part in p.relative_to(path).parts))
    if not os.path.exists(path) and any(mark in path for mark in "*?["):
        return sorted(file for file in glob.glob(path, recursive=True) if os.path.isfile(file))
    if not os.path.isfile(path):
        named = path or "with an empty name"
        raise InputError(f"{what}: there is no file or folder {named}; give one, or a pattern like 'a/*.parquet'.")
    return [path]


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
        """Where a row of the file is, for messages."""
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
        raise InputError(f"{group.file} was changed while it was being read; start again when it is complete.")
    return parquet


def read(file: str, parquet: pq.ParquetFile, number: int | None, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Record batches of a row group (None: of all); what cannot be read is refused with its place."""
    groups = None if number is None else [number]
    try:
        for batch in parquet.iter_batches(rows, row_groups=groups, columns=list(columns), use_threads=False):
            batch.validate(full=True)  # texts that are not UTF-8, say
            yield batch
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


def ids_of(group: RowGroup, first: int, column: Any) -> IdArray:
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
    return reason(OSError(number, os.strerror(number)) if number else error)


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
            there = listed(schema.names) if schema.names else "none"
            say = f"say which one has the {name} with --{name}-column"
            raise InputError(f"{file} has no column {column!r} (columns: {there}); {say}.")
    id_ = kind_of(schema.field(columns.id).type) if "id" in wanted else ""
    if "id" in wanted and not id_:
        raise InputError(f"{file}: {columns.id} holds {schema.field(columns.id).type}; give whole numbers or text.")
    d, h = _list(file, parquet, columns.embedding) if "embedding" in wanted else (0, "float32")
    K, p = _list(file, parquet, columns.probability) if "probability" in wanted else (0, "float32")
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
