"""What is done to one shard in each pass over a pool: the functions that every engine shares out."""

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
from accuacl.pools.ranks import Candidates, Cut, Draw, Rank


@dataclass(frozen=True)
class Found:
    """What a pass learnt of a shard: the rows left out, and the first and last id if all rise (None: they do not)."""

    excluded: int
    span: tuple[Any, Any] | None


def add_up(layout: Layout, left_out: ids.Excluded, shard: Shard, report: OnProgress) -> tuple[FisherSum, Found]:
    """Pass 1: the sum of a shard's embeddings, every row checked."""
    total = FisherSum(np.zeros((layout.K, layout.d)), 0)
    watch = _Watch(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        total = total + FisherSum.of(watch.kept(chunk, check=True)[1], max(SUM_ROWS, min(512, (1 << 16) // layout.d)))
    return total.settled(), watch.found()


def add_exactly(
    layout: Layout, left_out: ids.Excluded, entries: NDArray[np.int64], shard: Shard, report: OnProgress
) -> list[int]:
    """Between the passes, and rarely: the exact sums of some entries."""
    total = [0] * len(entries)
    watch = _Watch(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        more = exact_entries(watch.kept(chunk, check=False)[1], entries)
        total = [a + b for a, b in zip(total, more, strict=True)]
    return total


def best(
    layout: Layout, left_out: ids.Excluded, rank: Rank | Draw, check: bool, item: tuple[Shard, Cut], report: OnProgress
) -> tuple[Candidates, Found]:
    """Pass 2: the rows of a shard that can be among the best, at most as many as are wanted in all."""
    shard, cut = item
    parts: list[Candidates] = []
    watch = _Watch(left_out)
    for chunk in _reported(layout, shard, layout.wanted, report):
        parts.append(rank.sift(*watch.kept(chunk, check), cut))
        if sum(map(len, parts)) > 2 * rank.count:
            parts = [rank.join(parts)]
            cut = rank.tighter(cut, parts)
    return rank.join(parts), watch.found()


def sorted_keys(layout: Layout, shard: Shard, report: OnProgress) -> ids.Keys:
    """The keys of a shard's ids, sorted."""
    found = [ids.keys(chunk.ids) for chunk in _reported(layout, shard, ("id",), report)]
    return np.sort(np.concatenate(found))


def places(layout: Layout, wanted: NDArray[np.uint64], shard: Shard, report: OnProgress) -> list[tuple[Any, str]]:
    """(id, where it is) of rows with one of these keys; of each id the first two."""
    found: list[tuple[Any, str]] = []
    seen: dict[Any, int] = {}
    for chunk in _reported(layout, shard, ("id",), report):
        rows = np.flatnonzero(np.isin(ids.keys(chunk.ids), wanted))
        for row, id_ in zip(rows, ids.take(chunk.ids, rows).tolist(), strict=True):
            seen[id_] = seen.get(id_, 0) + 1
            if seen[id_] <= 2:
                found.append((id_, chunk.piece.at(chunk.first + int(row))))
    return found


class _Watch:
    """Leaves rows out, and sees whether ids rise."""

    def __init__(self, left_out: ids.Excluded) -> None:
        self.left_out, self.excluded = left_out, 0
        self.rising = True
        self.first: Any = None
        self.last: Any = None

    def kept(self, chunk: Chunk, check: bool) -> tuple[ids.Column, Features]:
        """The ids and features of the rows that are not left out."""
        features = chunk.features(check)
        if chunk.ids is None:
            return chunk.ids, features
        span = ids.span(chunk.ids) if self.rising else None
        if span is None or (self.last is not None and span[0] <= self.last):
            self.rising = False
        else:
            self.first, self.last = span[0] if self.first is None else self.first, span[1]
        gone = self.left_out.among(chunk.ids)
        if not gone.any():
            return chunk.ids, features
        self.excluded += int(gone.sum())
        rows = np.flatnonzero(~gone)
        return ids.some(chunk.ids, rows), features.rows(rows)

    def found(self) -> Found:
        return Found(self.excluded, (self.first, self.last) if self.rising else None)


def _reported(layout: Layout, shard: Shard, wanted: tuple[str, ...], report: OnProgress) -> Iterator[Chunk]:
    done, rows = 0, sum(piece.rows for piece in shard)
    for chunk in chunks(layout, shard, wanted):
        yield chunk
        done += len(chunk)
        report(Progress(done, rows))
