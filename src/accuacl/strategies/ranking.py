"""Strategies that rank rows one by one: in memory, or shard by shard from files of any size.

A row strategy prepares a `Ranking` from what it can ask about the pool and the memory (`Context`). The pool, in memory
or on disk, then finds its best rows by that ranking. Most values need only be known roughly: `among_smallest` computes
those exactly that the error bounds leave undecided. Values are float64, equal where they agree to twelve digits, or
whole numbers (uint64).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.base.threads import spread
from accuacl.features import Array, Features
from accuacl.fisher import SUM_ROWS, FisherSum, exact_entries
from accuacl.strategies.api import Query, Selection

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]
Values: TypeAlias = NDArray[np.float64] | NDArray[np.uint64]
ExactValues = Callable[[Indices], Any]  # the exact values of some rows; none depends on the other rows

Column = Literal["id", "embedding", "probability"]

BLOCK = 1 << 14  # rows ranked at a time
WORK = 2000  # floating-point operations, roughly, to rank a row, for each class
EXACT_ROWS = 4096  # rows computed exactly at a time
DIGITS = 2.0**40  # values that agree to one part in 2^40 (twelve decimal digits) are equal


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
        order = np.argsort(round_off(in_slices(lambda chunk: final(rows.take(chunk)), candidates)), kind="stable")
        return candidates[order[:count]]

    def explain(self, rows: Rows) -> dict[str, Vector]:
        """The scores of rows that were picked."""
        parts = [self.scores(rows.take(chunk)) for chunk in slices(np.arange(len(rows)))]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def choose(self, pool: Examples, count: int) -> tuple[NDArray[Any], dict[str, Vector]]:
        """The ids of the `count` best rows of a pool, and their scores."""
        ids, rows = pool.best(self, count)
        return ids, self.explain(rows)


@dataclass(frozen=True)
class Mix:
    """Two rankings that take turns: `first` has this share of the picks, `second` the rest; none is picked twice.

    name: of the score that is 1 for picks of the first and 0 for the others.
    """

    first: Ranking
    second: Ranking
    share: float
    name: str

    def choose(self, pool: Examples, count: int) -> tuple[NDArray[Any], dict[str, Vector]]:
        """The ids of the picks of both in turn, and their scores by both."""
        first_count = part(self.share, count)
        ids, rows = pool.best(self.first, first_count)
        others, other_rows = pool.best(self.second, count)  # enough even if the first has picked the same rows
        inside = set(ids.tolist())
        new = np.array([i for i, id_ in enumerate(others.tolist()) if id_ not in inside], np.int64)[
            : count - first_count
        ]
        order = in_turn(len(ids), len(new))
        scores = {self.name: np.repeat([1.0, 0.0], [len(ids), len(new)])[order]}
        for ranking in (self.first, self.second):
            mine, theirs = ranking.explain(rows), ranking.explain(other_rows.take(new))
            scores |= {name: np.concatenate([mine[name], theirs[name]])[order] for name in mine}
        return np.concatenate([ids, others[new]])[order], scores


def part(share: float, count: int) -> int:
    """How many of `count` picks the first ranking makes."""
    return math.floor(share * count + 0.5)


def in_turn(first: int, second: int) -> Indices:
    """An order of `first` things and `second` others in which every prefix has the same mix as the whole.

    >>> in_turn(2, 4)
    array([2, 0, 3, 4, 1, 5])
    """
    places = np.concatenate([(np.arange(count) + 0.5) / max(1, count) for count in (first, second)])
    return np.argsort(places, kind="stable")


class Examples(Protocol):
    """A set of examples, in memory or on disk: what a strategy can ask about it, and its best rows by a ranking."""

    def __len__(self) -> int: ...

    def fisher_sum(self) -> FisherSum:
        """The sum of all Fisher embeddings; reads the set once."""
        ...

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        """The exact sums of single entries, as `fisher.exact_entries`; reads the set once more."""
        ...

    def best(self, ranking: Ranking, count: int) -> tuple[NDArray[Any], Rows]:
        """The `count` best rows, best first, and their ids; reads the set once more."""
        ...


@dataclass(frozen=True)
class InMemory:
    """Examples in memory, processed `chunk` rows at a time (0: chosen for you). Their ids are their indices."""

    features: Features
    chunk: int = 0
    tick: Tick | None = None

    def __len__(self) -> int:
        return len(self.features)

    def fisher_sum(self) -> FisherSum:
        return FisherSum.of(self.features, self.chunk or SUM_ROWS, self.tick)

    def exact_entries(self, entries: NDArray[np.int64]) -> list[int]:
        return exact_entries(self.features, entries)

    def best(self, ranking: Ranking, count: int) -> tuple[Indices, Rows]:
        n, size = len(self), self.chunk or BLOCK
        rows = Rows(np.arange(n, dtype=np.uint64), self.features)
        blocks = (rows.take(slice(start, start + size)) for start in range(0, max(1, n), size))
        values: list[NDArray[Any]] = []
        bounds: list[Vector] = []
        for value, bound in spread(ranking.values, blocks, float(WORK) * n * self.features.K):
            values.append(value)
            bounds.append(bound)
            if self.tick:
                self.tick(len(value))
        candidates, _, _ = among_smallest(
            ranking.wanted(count, n),
            np.concatenate(values),
            np.concatenate(bounds),
            lambda chunk: ranking.exact(rows.take(chunk)),
        )
        picks = ranking.pick(rows, candidates, count)
        return picks, rows.take(picks)


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


Declared = TypeVar("Declared", bound=Ranking | Mix)


class RowStrategy(Generic[Declared]):
    """A strategy that ranks rows one by one. Called with a `Query` and its options, it ranks a pool in memory.

    prepare: makes the ranking from a context and the options. reads: the columns that it needs. passes: how often it
    reads the pool, including the ranking itself.
    """

    def __init__(self, prepare: Callable[..., Declared], reads: tuple[Column, ...], passes: int) -> None:
        self.prepare, self.reads, self.passes = prepare, reads, passes
        functools.update_wrapper(self, prepare)  # its name, docstring and signature

    def described(self, doc: str) -> RowStrategy[Declared]:
        """A copy with another docstring, to be registered by another name."""
        other = RowStrategy(self.prepare, self.reads, self.passes)
        other.__doc__ = doc
        return other

    def __call__(self, query: Query, **options: Any) -> Selection:
        context = context_of(query, query.ticker(self.passes * len(query.pool)))
        return Selection(*self.prepare(context, **options).choose(context.pool, query.count))


def context_of(query: Query, tick: Tick) -> Context:
    """What a row strategy knows of a query in memory."""
    return Context(
        query.pool.d,
        query.pool.K,
        InMemory(query.pool, query.chunk, tick),
        InMemory(query.memory, query.chunk) if query.memory is not None else None,
        len(query.pool) + len(query.labelled or ()),
        query.past,
        query.seed,
    )


def row_strategy(*reads: Column, passes: int = 1) -> Callable[[Callable[..., Declared]], RowStrategy[Declared]]:
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


def among_smallest(count: int, value: Values, bound: Vector, exact: ExactValues) -> tuple[Indices, Values, Vector]:
    """The indices of the `count` smallest, ascending, with their values and bounds; ties go to the smaller index.

    `value` is within `bound` of the exact value wherever both are finite; a bound of 0 means that it is exact. Only
    rows that the bounds leave undecided are passed to `exact`; their bound is 0 afterwards.

    >>> rough = np.array([3.0, 1.0, 2.02, 2.01])
    >>> among_smallest(2, rough, np.full(4, 0.05), lambda rows: np.array([3, 1, 2, 2.04])[rows])[0]
    array([1, 2])
    """
    if count >= len(value):
        return np.arange(len(value)), value, bound
    if count == 0:
        return np.empty(0, np.int64), value[:0], bound[:0]
    least, most = reach(value, bound)
    inside = most < np.partition(least, count)[count]  # fewer than `count` others can be smaller
    undecided = np.flatnonzero(~inside & (least <= np.partition(most, count - 1)[count - 1]))
    value, bound = made_exact(value, bound, undecided, exact)
    order = np.argsort(round_off(value[undecided]), kind="stable")  # stable: rows are in rising order already
    rows = np.sort(np.append(np.flatnonzero(inside), undecided[order[: count - int(inside.sum())]]))
    return rows, value[rows], bound[rows]


def reach(value: Values, bound: Vector) -> tuple[Values, Values]:
    """The least and the most that each value can be; values whose ranges do not overlap do not tie."""
    if value.dtype == np.uint64:
        return value, value
    known = np.isfinite(value) & np.isfinite(bound)
    slack = np.where(known, bound + np.abs(value) * (4 / DIGITS), np.inf)
    value = np.where(known, value, 0.0)
    return value - slack, value + slack


def made_exact(value: Values, bound: Vector, rows: Indices, exact: ExactValues) -> tuple[Values, Vector]:
    """The values and bounds, with these rows made exact."""
    rows = rows[bound[rows] != 0]
    if not len(rows):
        return value, bound
    value, bound = value.copy(), bound.copy()
    value[rows], bound[rows] = in_slices(exact, rows), 0.0
    return value, bound


def in_slices(exact: ExactValues, rows: Indices) -> Values:
    """`exact` of many rows, a slice at a time, so that never much of a pool is copied."""
    return np.concatenate([exact(part) for part in slices(rows)])


def slices(rows: Indices) -> list[Indices]:
    """The rows in slices; at least one, which may be empty."""
    return [rows[i : i + EXACT_ROWS] for i in range(0, max(1, len(rows)), EXACT_ROWS)]


def round_off(values: NDArray[Any]) -> Values:
    """Values rounded to twelve significant digits: those that differ by rounding errors only must count as equal.

    >>> round_off(np.array([0.1 + 0.2])) == round_off(np.array([0.3]))
    array([ True])
    """
    if values.dtype == np.uint64:
        return values
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.asarray(np.ldexp(np.rint(mantissa * DIGITS) / DIGITS, exponent))
