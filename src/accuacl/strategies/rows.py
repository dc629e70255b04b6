"""Row strategies: every row of a pool has a value that depends on that row alone; those with the smallest are picked.

A row strategy is declared once, in a file of its own: a function from a `Context` to a `Ranking`, decorated with
`@row_strategy` and the columns that it reads. The same declaration ranks arrays in memory, here, and Parquet files in
`accuacl.pools`, which processes them in parts and in several processes.
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
from accuacl.features import Features
from accuacl.fisher import SUM_ROWS, FisherSum, exact_entries
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import Choice, Find, Ranking, Rows
from accuacl.strategies.smallest import Indices, among_smallest

BLOCK = 1 << 14  # rows ranked at a time
WORK = 2000  # floating-point operations, roughly, to rank a row, for each class
Column = Literal["id", "embedding", "probability"]


class Examples(Protocol):
    """A set of examples, in memory or on disk: what a strategy can ask before it ranks the rows."""

    def __len__(self) -> int: ...

    def fisher_sum(self) -> FisherSum:
        """The sum of all Fisher embeddings; reads the set once."""
        ...

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        """The exact sums of single entries, as `fisher.exact_entries`; reads the set once more."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Examples in memory, added up `rows` at a time."""

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
    """What a row strategy knows of a query before it ranks rows; d and K are 1 for columns that it does not read.

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

    prepare: makes the ranking from a context and the options. reads: the columns that it needs. passes: how often it
    reads the pool, including the ranking itself.
    """

    def __init__(self, prepare: Callable[..., Prepared], reads: tuple[Column, ...], passes: int) -> None:
        self.prepare, self.reads, self.passes = prepare, reads, passes
        functools.update_wrapper(self, prepare)  # its name, docstring and signature

    def described(self, doc: str) -> RowStrategy[Prepared]:
        """The same strategy with another docstring, to be registered by another name."""
        other = RowStrategy(self.prepare, self.reads, self.passes)
        other.__doc__ = doc
        return other

    def __call__(self, query: Query, **options: Any) -> Selection:
        tick = query.ticker(self.passes * len(query.pool))
        choice = self.prepare(context_of(query, tick), **options)
        return Selection(*choice.choose(finder(query, tick), query.count))


def context_of(query: Query, tick: Tick) -> Context:
    """What a row strategy knows of a query in memory."""
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
    """A function that finds the best rows of a query's pool in memory; their ids are their indices."""
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
    """A decorator: makes a strategy, which reads these columns, of a function from a `Context` to a `Ranking`.

    >>> def norm(rows: Rows) -> Vector:
    ...     return np.square(rows.embeddings.astype(np.float64)).sum(axis=1)
    >>> @row_strategy("embedding")
    ... def smallest_norm(context: Context) -> Ranking:
    ...     return Ranking(exact=norm, scores=lambda rows: {"norm": norm(rows)})
    >>> picked = smallest_norm(Query(Features([[3.0], [1.0], [2.0]], [[1.0]] * 3), budget=2))
    >>> picked.indices, picked.scores["norm"]
    (array([1, 2]), array([1., 4.]))
    """
    return lambda prepare: RowStrategy(prepare, reads, passes)
