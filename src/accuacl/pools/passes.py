"""What is done with a shard: it is read a chunk of rows at a time, checked, added up or sifted for the best rows.

The functions at the top of this module run in workers; a `Sieve` finds the smallest rows of all shards with little
work for the others, since a worker gets the cut that is known when its shard is started.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.features import Array, Features, RowError
from accuacl.fisher import SUM_ROWS, FisherSum, exact_entries
from accuacl.pools import ids
from accuacl.pools.ids import IdArray, as_uint64, take
from accuacl.pools.pool import Layout, RowGroup, Shard, check_present, ids_of, matrix, read, unchanged
from accuacl.strategies import Ranking, Rows, among_smallest, reach

CHUNK_BYTES = 16 << 20  # read at a time
PART_BYTES = 128 << 20  # of the keys that are sorted at a time, while ids are checked
SUSPECTS = 100  # equal keys that are checked together
Map = Callable[[Any, str], Iterator[Any]]  # a function over all shards; yields its results as they come
Span: TypeAlias = tuple[Any, Any] | None  # first and last id of a shard; None if ids do not rise from row to row


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a row group. A column that is not read is None (ids) or ones, of width 1."""

    group: RowGroup
    first: int  # row of the file
    ids: IdArray
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


def count_left_out(layout: Layout, left_out: ids.Excluded, shard: Shard, report: OnProgress) -> int:
    """How many rows of a shard are left out."""
    return sum(int(left_out.among(chunk.ids).sum()) for chunk in _reported(layout, shard, ("id",), report))


def add_up(layout: Layout, left_out: ids.Excluded, shard: Shard, report: OnProgress) -> tuple[FisherSum, Span]:
    """The sum of a shard's Fisher embeddings; every row is checked."""
    total, row_filter = FisherSum(np.zeros((layout.K, layout.d)), 0), _RowFilter(left_out)
    rows = max(SUM_ROWS, min(512, (1 << 16) // layout.d))
    for chunk in _reported(layout, shard, layout.wanted, report):
        _, features = row_filter.kept(chunk, check=True)
        total = total + FisherSum.of(features, rows)
    return total.settled(), row_filter.rising.span


def add_exactly(
    layout: Layout, left_out: ids.Excluded, entries: NDArray[np.int64], shard: Shard, report: OnProgress
) -> list[int]:
    """The exact sums of some entries; rarely needed."""
    total = [0] * len(entries)
    row_filter = _RowFilter(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        _, features = row_filter.kept(chunk, check=False)
        total = [a + b for a, b in zip(total, exact_entries(features, entries), strict=True)]
    return total


def smallest(
    layout: Layout, left_out: ids.Excluded, sieve: Sieve, check: bool, item: tuple[Shard, Any], report: OnProgress
) -> tuple[Candidates, Span]:
    """The rows of a shard that can be among the smallest, at most as many as are wanted in all."""
    shard, cut = item
    parts: list[Candidates] = []
    row_filter = _RowFilter(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        parts.append(sieve.sift(*row_filter.kept(chunk, check), cut))
        if sum(map(len, parts)) > 2 * sieve.count:
            parts = [sieve.join(parts)]
            cut = min(cut, sieve.cut(parts))
    return sieve.join(parts), row_filter.rising.span


def keys_of_part(layout: Layout, part: int, parts: int, shard: Shard, report: OnProgress) -> ids.Keys:
    """The keys of a shard's ids, those that are `part` modulo `parts`."""
    keys = np.concatenate([ids.keys(chunk.ids) for chunk in _reported(layout, shard, ("id",), report)])
    return keys[keys % np.uint64(parts) == part]


def places(layout: Layout, wanted: NDArray[np.uint64], shard: Shard, report: OnProgress) -> list[tuple[Any, str]]:
    """The first two rows of each id that has one of these keys, as (id, where it is)."""
    duplicates: list[tuple[Any, str]] = []
    seen: dict[Any, int] = {}
    for chunk in _reported(layout, shard, ("id",), report):
        rows = np.flatnonzero(np.isin(ids.keys(chunk.ids), wanted))
        for row, id_ in zip(rows, ids.take(chunk.ids, rows).tolist(), strict=True):
            seen[id_] = seen.get(id_, 0) + 1
            if seen[id_] <= 2:
                duplicates.append((id_, chunk.group.at(chunk.first + int(row))))
    return duplicates


class _RowFilter:
    """Leaves rows out, and notices whether ids increase from row to row."""

    def __init__(self, left_out: ids.Excluded) -> None:
        self.left_out, self.rising = left_out, ids.Rising()

    def kept(self, chunk: Chunk, check: bool) -> tuple[ids.IdArray, Features]:
        """The ids and features of the rows that are not left out."""
        features = chunk.features(check)
        if chunk.ids is None:
            return chunk.ids, features
        self.rising.add(chunk.ids)
        gone = self.left_out.among(chunk.ids)
        if not gone.any():
            return chunk.ids, features
        rows = np.flatnonzero(~gone)
        return ids.take_column(chunk.ids, rows), features.rows(rows)


def _reported(layout: Layout, shard: Shard, wanted: tuple[str, ...], report: OnProgress) -> Iterator[Chunk]:
    done, rows = 0, sum(group.rows for group in shard)
    for chunk in chunks(layout, shard, wanted):
        yield chunk
        done += len(chunk)
        report(Progress(done, rows))


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that may be picked: their ids, values (smaller is better) with errors, and the rows themselves."""

    ids: NDArray[Any]
    value: NDArray[Any]
    bound: NDArray[np.float64]
    rows: Rows

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Candidates:
        """No rows, of width d and K."""
        features = Features.trusted(np.empty((0, shape[0])), np.empty((0, shape[1])))
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0), Rows(np.empty(0, np.uint64), features))

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """All parts in one, sorted by id, which decides between rows that tie."""
        parts = [part for part in parts if len(part)] or parts[:1]
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(ids, kind="stable")
        rows = Rows(
            np.concatenate([part.rows.ids for part in parts]), Features.concat([part.rows.features for part in parts])
        )
        return cls(
            ids[order],
            np.concatenate([part.value for part in parts])[order],
            np.concatenate([part.bound for part in parts])[order],
            rows.take(order),
        )


@dataclass(frozen=True)
class Sieve:
    """Finds the `count` smallest rows of a pool by a ranking. by_id: whether the ranking looks at ids."""

    ranking: Ranking
    count: int
    by_id: bool

    def sift(self, ids: IdArray, features: Features, cut: Any) -> Candidates:
        """The rows of a part that can be among the smallest: their values may be at most `cut`."""
        rows = Rows(as_uint64(ids) if self.by_id else np.zeros(len(features), np.uint64), features)
        kept = np.arange(len(rows))
        if self.ranking.may_reach is not None:
            kept = self.ranking.may_reach(rows, cut)
            rows = rows.take(kept)
        value, bound = self.ranking.values(rows)
        passed = np.flatnonzero(reach(value, bound)[0] <= cut)
        return Candidates(take(ids, kept[passed]), value[passed], bound[passed], rows.take(passed))

    def join(self, parts: Sequence[Candidates]) -> Candidates:
        """The `count` smallest of several parts, in the order of their ids."""
        all_ = Candidates.joined(parts)
        kept, value, bound = among_smallest(
            self.count, all_.value, all_.bound, lambda chunk: self.ranking.exact(all_.rows.take(chunk))
        )
        return Candidates(all_.ids[kept], value, bound, all_.rows.take(kept))

    def cut(self, parts: Sequence[Candidates]) -> Any:
        """The most that a value can be that is among the smallest, as far as these rows show."""
        if self.count == 0:
            return -np.inf
        if sum(map(len, parts)) < self.count:
            return np.inf
        _, most = reach(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("value", "bound")))
        return np.partition(most, self.count - 1)[self.count - 1]


def rise(spans: Iterable[Span]) -> bool:
    """Whether the ranges of ids, one per shard, do not overlap; None stands for ids that do not increase."""
    known = list(spans)
    if any(span is None for span in known):
        return False
    ranges = sorted(span for span in known if span is not None)
    return all(before[1] < after[0] for before, after in itertools.pairwise(ranges))


def check_unique(layout: Layout, rows: int, over_shards: Map) -> None:
    """Refuse a pool that has an id twice, naming both places. A large pool is read several times, for a part of the
    keys each time.
    """
    parts = max(1, math.ceil(8 * rows / PART_BYTES))
    for part in range(parts):
        keys = np.concatenate(list(over_shards(functools.partial(keys_of_part, layout, part, parts), "checking ids")))
        keys.sort()
        suspects = np.unique(keys[1:][keys[1:] == keys[:-1]])
        for start in range(0, len(suspects), SUSPECTS):
            _refuse_equal_ids(layout, suspects[start : start + SUSPECTS], over_shards)


def _refuse_equal_ids(layout: Layout, keys: NDArray[np.uint64], over_shards: Map) -> None:
    """Refuse if rows with the same key also have the same id; different text may share a key by chance."""
    where: dict[Any, list[str]] = {}
    for duplicates in over_shards(functools.partial(places, layout, keys), "finding ids"):
        for id_, place in duplicates:
            where.setdefault(id_, []).append(place)
    twice = {id_: sorted(places) for id_, places in where.items() if len(places) > 1}
    if twice:
        id_ = min(twice)
        raise InputError(f"id {id_!r} occurs twice: {twice[id_][0]}, and {twice[id_][1]}; give every row its own id.")
