"""How the rows of a pool are ranked: by functions of each row alone, which can be sent to other processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array, Features
from accuacl.strategies.smallest import Indices, Values, Vector, in_slices, round_off, slices


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a pool. A column that the strategy does not read may be ones of width 1 instead.

    `ids`: 64 bits per row: in memory its index, on disk its id (whole numbers unchanged, text hashed).
    """

    ids: NDArray[np.uint64]
    features: Features

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def embeddings(self) -> Array:
        return self.features.embeddings

    @property
    def probabilities(self) -> Array:
        return self.features.probabilities

    def take(self, rows: slice | Indices) -> Rows:
        """The rows at these indices; a slice is a view."""
        return Rows(self.ids[rows], self.features.rows(rows))


@dataclass(frozen=True)
class Ranking:
    """How rows are ranked: rows with smaller values are picked first; of equal values, the smaller id.

    Every field is a function whose result for a row depends on that row alone. Rankings are sent to other processes, so
    use functions defined at the top of a module, with `functools.partial` for more arguments, and no lambdas.

    exact: the value of each row, float64 (equal where they agree to twelve digits) or uint64.
    scores: what explains a pick, by name.
    rough: faster values, and a bound on how far each is from the exact one (0: it is exact).
    may_reach: the indices of the rows whose value may be at most a given number; faster than `rough`.
    candidates: how many of the smallest are ranked again, given how many are picked and how many rows there are (unset:
    as many as are picked). It must not decrease when either increases.
    final: the values by which these candidates are ranked again (unset: `exact`).
    """

    exact: Callable[[Rows], Values]
    scores: Callable[[Rows], dict[str, Vector]]
    rough: Callable[[Rows], tuple[Vector, Vector]] | None = None
    may_reach: Callable[[Rows, float], Indices] | None = None
    candidates: Callable[[int, int], int] | None = None
    final: Callable[[Rows], Values] | None = None

    def values(self, rows: Rows) -> tuple[Values, Vector]:
        """The value of each row, rough if that is faster, and how far it may be from the exact one."""
        if self.rough is not None:
            return self.rough(rows)
        return self.exact(rows), np.zeros(len(rows))

    def wanted(self, count: int, n: int) -> int:
        """How many of the smallest of n rows are needed to pick `count`."""
        return min(n, self.candidates(count, n)) if self.candidates is not None else count

    def pick(self, rows: Rows, candidates: Indices, count: int) -> Indices:
        """The `count` best of the candidates, best first; the candidates are sorted by id."""
        final = self.final or self.exact
        order = np.argsort(round_off(in_slices(lambda some: final(rows.take(some)), candidates)), kind="stable")
        return candidates[order[:count]]

    def explain(self, rows: Rows) -> dict[str, Vector]:
        """The scores of rows that were picked."""
        parts = [self.scores(rows.take(some)) for some in slices(np.arange(len(rows)))]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def choose(self, find: Find, count: int) -> tuple[NDArray[Any], dict[str, Vector]]:
        """The `count` best rows of a pool, through `find`, and their scores."""
        ids, rows = find(self, count)
        return ids, self.explain(rows)


Find = Callable[[Ranking, int], tuple[NDArray[Any], Rows]]  # the best rows of a pool by a ranking, and their ids


class Choice(Protocol):
    """What a row strategy prepares: a `Ranking`, or a `Mix` of two."""

    def choose(self, find: Find, count: int) -> tuple[NDArray[Any], dict[str, Vector]]: ...
