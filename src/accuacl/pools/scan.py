"""Passes over a pool on disk: a function mapped over all shards by an engine, with progress."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import OnProgress, Progress
from accuacl.engines import Engine, Function
from accuacl.fisher import FisherSum
from accuacl.pools import passes
from accuacl.pools.ids import Excluded
from accuacl.pools.passes import Candidates, Sieve, check_unique, rise
from accuacl.pools.pool import Pool, Shard
from accuacl.strategies import Ranking, Rows


class ShardMap:
    """Maps functions over shards with one engine, and reports how many of the expected rows are done."""

    def __init__(self, engine: Engine, progress: OnProgress | None) -> None:
        self.engine, self.progress = engine, progress
        self.done, self.total = 0.0, 0  # rows of all passes

    def expect(self, rows: int) -> None:
        """Expect more rows."""
        self.total += rows

    def over(
        self, function: Function, shards: Sequence[Shard], what: str, items: Sequence[Any] | None = None
    ) -> Iterator[Any]:
        """The function's results, as they come, for one item per shard (unset: the shard itself).

        The first failure is raised.
        """
        rows = [sum(group.rows for group in shard) for shard in shards]
        shares = [0.0] * len(shards)

        def report(index: int, progress: Progress) -> None:
            self.done += (progress.share - shares[index]) * rows[index]
            shares[index] = progress.share
            if self.progress:
                self.progress(Progress(round(self.done), self.total, what))

        watched = report if self.progress and self.engine.cheap_progress else None
        for end in self.engine.map(function, shards if items is None else items, watched):
            if end.failure:
                raise end.failure.error(str(shards[end.index][0]))
            report(end.index, Progress(1.0))
            yield end.value


def count_left_out(shard_map: ShardMap, pool: Pool, shards: list[Shard], left_out: Excluded) -> int:
    """How many rows of the pool are left out; reads the ids alone, and nothing if there is nothing to leave out."""
    if not len(left_out):
        return 0
    shard_map.expect(pool.rows)
    function = functools.partial(passes.count_left_out, pool.layout, left_out)
    return sum(shard_map.over(function, shards, "counting"))


class Scan:
    """The rows of a pool on disk, without the `excluded` ones that are left out, as a strategy asks about them.

    by_id: whether the strategy looks at ids. The first pass checks every row and, unless trust_ids, that no id occurs
    twice.
    """

    def __init__(
        self,
        shard_map: ShardMap,
        pool: Pool,
        shards: list[Shard],
        left_out: Excluded,
        excluded: int,
        by_id: bool,
        trust_ids: bool,
    ) -> None:
        self.shard_map, self.pool, self.shards, self.left_out = shard_map, pool, shards, left_out
        self.excluded, self.by_id, self.trust_ids = excluded, by_id, trust_ids
        self.checked = False  # whether a pass has checked the rows

    def __len__(self) -> int:
        return self.pool.rows - self.excluded

    def fisher_sum(self) -> FisherSum:
        """The sum of all embeddings."""
        layout = self.pool.layout
        d, K = layout.shape
        total, spans = FisherSum(np.zeros((K, d)), 0), []
        for part, span in self._over(functools.partial(passes.add_up, layout, self.left_out), "adding up"):
            total = total + part
            spans.append(span)
        self._check_ids(spans)
        return total

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        """The exact sums of some entries."""
        function = functools.partial(passes.add_exactly, self.pool.layout, self.left_out, entries)
        total = [0] * len(entries)
        for part in self._over(function, "adding up exactly", again=True):
            total = [a + b for a, b in zip(total, part, strict=True)]
        return total

    def best(self, ranking: Ranking, count: int) -> tuple[NDArray[Any], Rows]:
        """The `count` best rows, best first, and their ids."""
        candidates = self._smallest(Sieve(ranking, ranking.wanted(count, len(self)), self.by_id))
        picks = ranking.pick(candidates.rows, np.arange(len(candidates)), count)
        return candidates.ids[picks], candidates.rows.take(picks)

    def _smallest(self, sieve: Sieve) -> Candidates:
        """The smallest rows of all shards."""
        items, spans = _ShardsWithCut(self.shards), []
        parts: list[Candidates] = []
        function = functools.partial(passes.smallest, self.pool.layout, self.left_out, sieve, not self.checked)
        for part, span in self._over(function, "scoring", items):
            parts.append(part)
            spans.append(span)
            if sum(map(len, parts)) > 1.25 * sieve.count:
                parts = [sieve.join(parts)]
            items.cut = min(items.cut, sieve.cut(parts))
        self._check_ids(spans)
        return sieve.join(parts or [Candidates.none(self.pool.layout.shape)])

    def _check_ids(self, spans: list[tuple[Any, Any] | None]) -> None:
        """After the first pass: refuse an id that occurs twice, which cannot be where ids rise from row to row."""
        if not self.checked and not self.trust_ids and not rise(spans):
            check_unique(self.pool.layout, self.pool.rows, functools.partial(self._over, again=True))
        self.checked = True

    def _over(
        self, function: Function, what: str, items: Sequence[Any] | None = None, again: bool = False
    ) -> Iterator[Any]:
        """The function's results over the shards. again: in a pass that the strategy did not announce."""
        if again:
            self.shard_map.expect(self.pool.rows)
        return self.shard_map.over(function, self.shards, what, items)


class _ShardsWithCut(Sequence[Any]):
    """Shards, each with the cut (`Sieve.cut`) that is known when an engine starts it and reads the item.

    The cut falls as results come in, so that later shards send fewer rows; the picks do not depend on it.
    """

    def __init__(self, shards: list[Shard]) -> None:
        self.shards, self.cut = shards, np.inf

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, index: Any) -> Any:
        return self.shards[index], self.cut
