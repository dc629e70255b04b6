"""The passes over one set of examples, on disk or in memory, and what they give together."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.engines.work import Function
from accuacl.features import Features
from accuacl.fisher import FisherSum, exact_entries
from accuacl.pools import passes
from accuacl.pools.crew import Crew
from accuacl.pools.ids import Excluded
from accuacl.pools.pool import Pool, Shard
from accuacl.pools.ranks import Candidates, Cut, Draw, Rank
from accuacl.pools.unique import check_unique, rise


class Scan:
    """Passes over a pool on disk. `excluded` is known after the first."""

    def __init__(self, crew: Crew, pool: Pool, shards: list[Shard], left_out: Excluded, trust_ids: bool) -> None:
        self.crew, self.pool, self.shards, self.left_out = crew, pool, shards, left_out
        self.trust_ids, self.excluded = trust_ids, 0

    def __len__(self) -> int:
        """How many rows there are, without those left out."""
        return self.pool.rows - self.excluded

    def sums(self) -> FisherSum:
        """Pass 1: the sum of all embeddings."""
        layout = self.pool.layout
        total, seen = FisherSum(np.zeros((layout.K, layout.d)), 0), []
        for some, found in self._over(functools.partial(passes.add_up, layout, self.left_out), "adding up"):
            total = total + some
            seen.append(found)
        self._note(seen)
        return total

    def exact(self, entries: NDArray[np.int64]) -> list[int]:
        """Again, exactly, but only some entries."""
        self.crew.expect(self.pool.rows)
        function = functools.partial(passes.add_exactly, self.pool.layout, self.left_out, entries)
        return _added(len(entries), self._over(function, "adding up exactly"))

    def best(self, rank: Rank | Draw, first: bool) -> Candidates:
        """Pass 2, or the only one (`first`): the best rows of all shards."""
        items, seen = _Items(self.shards), []
        parts: list[Candidates] = []
        function = functools.partial(passes.best, self.pool.layout, self.left_out, rank, first)
        for some, found in self._over(function, "scoring", items):
            parts.append(some)
            seen.append(found)
            if sum(map(len, parts)) > 1.25 * rank.count:
                parts = [rank.join(parts)]
            items.cut = rank.tighter(items.cut, parts)
        if first:
            self._note(seen)
        return rank.join(parts or [Candidates.none()])

    def _note(self, seen: list[passes.Found]) -> None:
        self.excluded = sum(found.excluded for found in seen)
        if not self.trust_ids and not rise(found.span for found in seen):
            check_unique(self.pool.layout, self.pool.rows, self._again)

    def _again(self, function: Function, what: str) -> Iterator[Any]:
        self.crew.expect(self.pool.rows)
        return self._over(function, what)

    def _over(self, function: Function, what: str, items: Sequence[Any] | None = None) -> Iterator[Any]:
        return self.crew.over(function, self.shards, what, items)


class InMemory:
    """The same sums of examples in memory."""

    def __init__(self, features: Features) -> None:
        self.features = features

    def __len__(self) -> int:
        return len(self.features)

    def sums(self) -> FisherSum:
        return FisherSum.of(self.features)

    def exact(self, entries: NDArray[np.int64]) -> list[int]:
        return exact_entries(self.features, entries)


class _Items(Sequence[Any]):
    """Shards, each with the cut that is known when its turn comes."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards, self.cut = shards, Cut()

    def __len__(self) -> int:
        return len(self.shards)

    def __getitem__(self, index: Any) -> Any:
        return self.shards[index], self.cut


def _added(count: int, parts: Iterable[list[int]]) -> list[int]:
    return functools.reduce(lambda a, b: [x + y for x, y in zip(a, b, strict=True)], parts, [0] * count)
