"""Row strategies: every row of a pool has a value that depends on it alone, and the smallest are picked.

A row strategy is declared once, in a file of its own: a function from a `Context` to a `Ranking`, below
`@row_strategy` with the columns that it reads. The same declaration ranks arrays in memory, here, and Parquet files in
`accuacl.pools`: in parts, in processes that know nothing of each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.base.threads import spread
from accuacl.features import Array, Features
from accuacl.fisher import SUM_ROWS, FisherSum, exact_entries
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.smallest import Indices, Values, Vector, among_smallest, in_slices, round_off, slices

BLOCK = 1 << 14  # rows ranked at a time
WORK = 2000  # floating-point operations, about, that the rank of a row takes for each class
Column = Literal["id", "embedding", "probability"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a pool. Of a column that the strategy does not read there may be ones instead, of width 1.

    `ids`: 64 bits for each row: its index in memory, its id on disk (whole numbers as they are, text hashed).
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
    """How rows are ranked: the smaller its value, the sooner a row is picked; of equal ones the smaller id first.

    Every field is a function whose answer for a row depends on that row alone. Rankings are sent to workers: use
    functions at the top of a module, and `functools.partial` for what else they need, not lambdas.

    exact: the value of each row, float64 (equal where they agree to twelve digits) or uint64.
    scores: what explains a pick, by name.
    rough: values that are computed faster, and a bound on how far each is from the exact one (0: it is exact).
    may_reach: of rows and a number, the indices of the rows whose value may be at most that, faster than by `rough`.
    candidates: of how many are picked and how many there are, how many of the smallest are looked at again (unset:
    as many as are picked). It must not fall when either rises.
    final: what those candidates are ranked by (unset: `exact`).
    """

    exact: Callable[[Rows], Values]
    scores: Callable[[Rows], dict[str, Vector]]
    rough: Callable[[Rows], tuple[Vector, Vector]] | None = None
    may_reach: Callable[[Rows, float], Indices] | None = None
    candidates: Callable[[int, int], int] | None = None
    final: Callable[[Rows], Values] | None = None

    def values(self, rows: Rows) -> tuple[Values, Vector]:
        """The value of each row, rough where that is quicker, and how far it may be from the exact one."""
        if self.rough is not None:
            return self.rough(rows)
        return self.exact(rows), np.zeros(len(rows))

    def wanted(self, count: int, n: int) -> int:
        """How many of the smallest of n rows are needed to pick `count`."""
        return min(n, self.candidates(count, n)) if self.candidates is not None else count

    def pick(self, rows: Rows, candidates: Indices, count: int) -> Indices:
        """The `count` best of the candidates, which are in the order of their ids; best first."""
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


class Examples(Protocol):
    """A set of examples, in memory or on disk, as far as it can be known before its rows are ranked."""

    def __len__(self) -> int: ...

    def fisher_sum(self) -> FisherSum:
        """The sum of all Fisher embeddings; reads the set once."""
        ...

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        """The exact sums of single entries, as `fisher.exact_entries`; reads the set once more."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Examples in memory; `rows` are added up at a time."""

    features: Features
    rows: int = SUM_ROWS
    tick: Tick | None = None

    def __len__(self) -> int:
        return len(self.features)

    def fisher_sum(self) -> FisherSum:
        return FisherSum.of(self.features, self.rows, self.tick)

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        return exact_entries(self.features, entries)


@dataclass(frozen=True)
class Context:
    """What a row strategy may know of a query before it ranks rows: d and K are 1 for columns that it does not read.

    `current`: how many examples this task has, labelled or not. `past`: how many all finished tasks had.
    """

    d: int
    K: int
    pool: Examples
    memory: Examples | None
    current: int
    past: int | None
    seed: int


Prepared = TypeVar("Prepared", bound=Choice)


class RowStrategy(Generic[Prepared]):
    """A strategy that ranks rows one by one. Called with a `Query` and its options, it ranks a pool in memory.

    prepare: the ranking for a context, its options by name. reads: the columns that it needs. passes: how often it
    reads the pool, the ranking included.
    """

    def __init__(self, prepare: Callable[..., Prepared], reads: tuple[Column, ...], passes: int) -> None:
        self.prepare, self.reads, self.passes = prepare, reads, passes
        functools.update_wrapper(self, prepare)  # its name, docstring and signature

    def described(self, doc: str) -> RowStrategy[Prepared]:
        """The same strategy, to be registered by another name, with a docstring of its own."""
        other = RowStrategy(self.prepare, self.reads, self.passes)
        other.__doc__ = doc
        return other

    def __call__(self, query: Query, **options: Any) -> Selection:
        tick = query.ticker(self.passes * len(query.pool))
        choice = self.prepare(context_of(query, tick), **options)
        return Selection(*choice.choose(finder(query, tick), query.count))


def context_of(query: Query, tick: Tick) -> Context:
    """What a row strategy may know of a query in memory."""
    pool, memory, size = query.pool, query.memory, query.chunk or SUM_ROWS
    return Context(
        pool.d,
        pool.K,
        InMemory(pool, size, tick),
        InMemory(memory, size) if memory is not None else None,
        len(pool) + len(query.labelled or ()),
        query.past,
        query.seed,
    )


def finder(query: Query, tick: Tick) -> Find:
    """How to find the best rows of a query's pool, which is in memory; their ids are their indices."""
    n, size = len(query.pool), query.chunk or BLOCK
    rows = Rows(np.arange(n, dtype=np.uint64), query.pool)

    def find(ranking: Ranking, count: int) -> tuple[Indices, Rows]:
        parts = []
        blocks = (rows.take(slice(start, start + size)) for start in range(0, max(1, n), size))
        for part in spread(ranking.values, blocks, float(WORK) * n * query.pool.K):
            parts.append(part)
            tick(len(part[0]))
        value, bound = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        wanted = ranking.wanted(count, n)
        candidates, _, _ = among_smallest(wanted, value, bound, lambda some: ranking.exact(rows.take(some)))
        picks = ranking.pick(rows, candidates, count)
        return picks, rows.take(picks)

    return find


def row_strategy(*reads: Column, passes: int = 1) -> Callable[[Callable[..., Prepared]], RowStrategy[Prepared]]:
    """Make a function from a `Context` (and options) to a `Ranking` a strategy that reads these columns.

    >>> def norm(rows: Rows) -> Vector:
    ...     return np.square(rows.embeddings.astype(np.float64)).sum(axis=1)
    >>> @row_strategy("embedding")
    ... def smallest_norm(context: Context) -> Ranking:
    ...     return Ranking(exact=norm, scores=lambda rows: {"norm": norm(rows)})
    >>> smallest_norm(Query(Features([[3.0], [1.0], [2.0]], [[1.0]] * 3), budget=2))
    Selection(indices=array([1, 2]), scores={'norm': array([1., 4.])})
    """
    return lambda prepare: RowStrategy(prepare, reads, passes)
