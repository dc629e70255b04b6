"""The functions that process one shard in each pass over a pool; an engine maps them over all shards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import OnProgress, Progress
from accuacl.features import Features
from accuacl.fisher import SUM_ROWS, FisherSum, exact_entries
from accuacl.pools import ids
from accuacl.pools.chunks import Chunk, chunks
from accuacl.pools.pool import Layout, Shard
from accuacl.pools.sieve import Candidates, Cut, Sieve


@dataclass(frozen=True)
class ShardReport:
    """What a pass finds in a shard: rows left out, and (first, last) id, or None if ids do not increase."""

    excluded: int
    span: tuple[Any, Any] | None


def add_up(layout: Layout, left_out: ids.Excluded, shard: Shard, report: OnProgress) -> tuple[FisherSum, ShardReport]:
    """The sum of a shard's Fisher embeddings; every row is checked."""
    total, row_filter = FisherSum(np.zeros((layout.K, layout.d)), 0), _RowFilter(left_out)
    rows = max(SUM_ROWS, min(512, (1 << 16) // layout.d))
    for chunk in _reported(layout, shard, layout.wanted, report):
        _, features = row_filter.kept(chunk, check=True)
        total = total + FisherSum.of(features, rows)
    return total.settled(), row_filter.report()


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
    layout: Layout, left_out: ids.Excluded, sieve: Sieve, check: bool, item: tuple[Shard, Cut], report: OnProgress
) -> tuple[Candidates, ShardReport]:
    """The rows of a shard that can be among the smallest, at most as many as are wanted in all."""
    shard, cut = item
    parts: list[Candidates] = []
    row_filter = _RowFilter(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        parts.append(sieve.sift(*row_filter.kept(chunk, check), cut))
        if sum(map(len, parts)) > 2 * sieve.count:
            parts = [sieve.join(parts)]
            cut = sieve.tighter(cut, parts)
    return sieve.join(parts), row_filter.report()


def sorted_keys(layout: Layout, shard: Shard, report: OnProgress) -> ids.Keys:
    """The keys of a shard's ids, sorted."""
    keys = [ids.keys(chunk.ids) for chunk in _reported(layout, shard, ("id",), report)]
    return np.sort(np.concatenate(keys))


def places(layout: Layout, wanted: NDArray[np.uint64], shard: Shard, report: OnProgress) -> list[tuple[Any, str]]:
    """The first two rows of each id that has one of these keys, as (id, where it is)."""
    found: list[tuple[Any, str]] = []
    seen: dict[Any, int] = {}
    for chunk in _reported(layout, shard, ("id",), report):
        rows = np.flatnonzero(np.isin(ids.keys(chunk.ids), wanted))
        for row, id_ in zip(rows, ids.take(chunk.ids, rows).tolist(), strict=True):
            seen[id_] = seen.get(id_, 0) + 1
            if seen[id_] <= 2:
                found.append((id_, chunk.group.at(chunk.first + int(row))))
    return found


class _RowFilter:
    """Leaves rows out, and notices whether ids increase from row to row."""

    def __init__(self, left_out: ids.Excluded) -> None:
        self.left_out, self.excluded, self.rising = left_out, 0, ids.Rising()

    def kept(self, chunk: Chunk, check: bool) -> tuple[ids.Column, Features]:
        """The ids and features of the rows that are not left out."""
        features = chunk.features(check)
        if chunk.ids is None:
            return chunk.ids, features
        self.rising.add(chunk.ids)
        gone = self.left_out.among(chunk.ids)
        if not gone.any():
            return chunk.ids, features
        self.excluded += int(gone.sum())
        rows = np.flatnonzero(~gone)
        return ids.take_column(chunk.ids, rows), features.rows(rows)

    def report(self) -> ShardReport:
        return ShardReport(self.excluded, self.rising.span)


def _reported(layout: Layout, shard: Shard, wanted: tuple[str, ...], report: OnProgress) -> Iterator[Chunk]:
    done, rows = 0, sum(group.rows for group in shard)
    for chunk in chunks(layout, shard, wanted):
        yield chunk
        done += len(chunk)
        report(Progress(done, rows))
