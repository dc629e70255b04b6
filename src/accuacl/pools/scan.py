"""A function mapped over all shards by an engine, with progress; the first failure is raised."""

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
from accuacl.pools.passes import Candidates, Cut, Sieve, check_unique, rise
from accuacl.pools.pool import Pool, Shard


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
        """The function's results, as they come, for one item per shard (unset: the shard itself)."""
        rows = [sum(group.rows for group in shard) for shard in shards]
        shares = [0.0] * len(shards)

        def tell(index: int, progress: Progress) -> None:
            self.done += (progress.share - shares[index]) * rows[index]
            shares[index] = progress.share
            if self.progress:
                self.progress(Progress(round(self.done), self.total, what))

        watched = tell if self.progress and self.engine.cheap_progress else None
        for end in self.engine.map(function, shards if items is None else items, watched):
            if end.failure:
                raise end.failure.error(str(shards[end.index][0]))
            tell(end.index, Progress(1.0))
            yield end.value


class Scan:
    """Passes over a pool on disk. The first pass checks every row and counts those that are `excluded`."""

    def __init__(
        self, shard_map: ShardMap, pool: Pool, shards: list[Shard], left_out: Excluded, trust_ids: bool
    ) -> None:
        self.shard_map, self.pool, self.shards, self.left_out = shard_map, pool, shards, left_out
        self.trust_ids, self.checked, self.excluded = trust_ids, False, 0

    def __len__(self) -> int:
        """How many rows there are, without those left out."""
        return self.pool.rows - self.excluded

    def fisher_sum(self) -> FisherSum:
        """The sum of all embeddings."""
        layout = self.pool.layout
        d, K = layout.shape
        total, reports = FisherSum(np.zeros((K, d)), 0), []
        for part, report in self._over(functools.partial(passes.add_up, layout, self.left_out), "adding up"):
            total = total + part
            reports.append(report)
        self._note(reports)
        return total

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        """The exact sums of some entries."""
        self.shard_map.expect(self.pool.rows)
        function = functools.partial(passes.add_exactly, self.pool.layout, self.left_out, entries)
        total = [0] * len(entries)
        for part in self._over(function, "adding up exactly"):
            total = [a + b for a, b in zip(total, part, strict=True)]
        return total

    def smallest(self, sieve: Sieve) -> Candidates:
        """The smallest rows of all shards."""
        items, reports = _ShardsWithCut(self.shards), []
        parts: list[Candidates] = []
        function = functools.partial(passes.smallest, self.pool.layout, self.left_out, sieve, not self.checked)
        for part, report in self._over(function, "scoring", items):
            parts.append(part)
            reports.append(report)
            if sum(map(len, parts)) > 1.25 * sieve.count:
                parts = [sieve.join(parts)]
            items.cut = sieve.tighter(items.cut, parts)
        self._note(reports)
        return sieve.join(parts or [Candidates.none(self.pool.layout.shape)])

    def _note(self, reports: list[passes.ShardReport]) -> None:
        """After the first pass: how many rows were left out, and whether an id comes twice."""
        if self.checked:
            return
        self.checked, self.excluded = True, sum(report.excluded for report in reports)
        if not self.trust_ids and not rise(report.span for report in reports):
            check_unique(self.pool.layout, self.pool.rows, self._again)

    def _again(self, function: Function, what: str) -> Iterator[Any]:
        self.shard_map.expect(self.pool.rows)
        return self._over(function, what)

    def _over(self, function: Function, what: str, items: Sequence[Any] | None = None) -> Iterator[Any]:
        return self.shard_map.over(function, self.shards, what, items)


class _ShardsWithCut(Sequence[Any]):
    """Shards, each with the cut that is known when it is started."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards, self.cut = shards, Cut()

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, index: Any) -> Any:
        return self.shards[index], self.cut
