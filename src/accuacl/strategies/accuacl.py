"""AccuACL: Fisher information of the past and the new, in one target."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from accuacl import fisher
from accuacl.base.errors import InputError
from accuacl.base.progress import Tick
from accuacl.features import Features
from accuacl.strategies.query import Query, Selection, number, whole_number
from accuacl.strategies.ranking import Indices, Vector, among_smallest, in_slices, largest, round_off, smallest


def accuacl(
    query: Query,
    *,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
    oversample: float = 2.0,
) -> Selection:
    """Picks examples that inform the very weights which the past (the memory) and the new (the pool) both rest on.

    The `oversample * budget` examples whose Fisher embedding is distributed most like the target, lam * memory +
    (1 - lam) * pool, are the candidates; the `budget` with the largest embedding of those are picked, largest first.
    Scores: `distribution` (Jensen-Shannon divergence from the target in nats, smaller is better) and `magnitude`.

    Reference: Park et al., "Active Learning for Continual Learning: Keeping the Past Alive in the Present", ICLR 2025.

    Options: `variant`, "released" as the authors' code (it made the paper's figures) or "paper" as the text has it;
    `keep`, entries per class that are compared (released: 5 * total_classes // seen classes; paper: 10 up to ten
    total classes, else 5); `total_classes`, all that will ever come (default: the seen ones); `lam`, the weight of the
    past (default: past / (past + pool + labelled)); `oversample`, candidates per pick.

    Cost: one (K x n)(n x d) product and O(n K keep) more; two reads of the pool; about 80 n bytes and a few blocks
    of rows.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> def some(n):
    ...     return Features(rng.normal(size=(n, 8)), rng.dirichlet(np.ones(4), n))
    >>> picked = select("accuacl", pool=some(500), budget=3, memory=some(20), past=1500)
    >>> picked.indices
    array([464, 365, 444])
    >>> {name: score.round(3).tolist() for name, score in picked.scores.items()}
    {'distribution': [0.005, 0.004, 0.003], 'magnitude': [0.197, 0.184, 0.169]}
    """
    oversample = number("oversample", oversample, 1, math.inf, "a number of at least 1")
    scores = _scores(query, variant, keep, total_classes, lam)
    many = candidates(oversample, query.count, len(query.pool))
    return scores.largest_of(among_smallest(many, *scores.sweep_distribution(), scores.distribution), query.count)


def accuacl_distribution(
    query: Query,
    *,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
) -> Selection:
    """AccuACL's distribution score alone: the examples whose Fisher embedding is distributed most like the target.

    An ablation of the paper; it picks what is typical of past and new, however little it teaches. Scores as accuacl.

    Reference, options and cost: as accuacl, without candidates.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [0.1, 1.0], [1.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> select("accuacl-distribution", pool=pool, budget=2, keep=2).indices
    array([2, 0])
    """
    scores = _scores(query, variant, keep, total_classes, lam)
    rows, _ = smallest(query.count, *scores.sweep_distribution(), scores.distribution)
    return scores.explain(rows)


def accuacl_magnitude(
    query: Query,
    *,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
) -> Selection:
    """AccuACL's magnitude score alone: the examples with the largest Fisher embedding.

    An ablation of the paper; it picks what teaches most, about whatever. In the released variant the target still
    matters, for only the entries it keeps are counted; in the paper's all are. Scores as accuacl.

    Reference, options and cost: as accuacl, without candidates.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [3.0, 1.0], [2.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> select("accuacl-magnitude", pool=pool, budget=2).indices
    array([1, 2])
    """
    scores = _scores(query, variant, keep, total_classes, lam)
    rows, _ = largest(query.count, *scores.sweep_magnitude(), scores.magnitude)
    return scores.explain(rows)


def accuacl_full(
    query: Query,
    *,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
    oversample: float = 2.0,
) -> Selection:
    """AccuACL with nothing forgotten: give as `memory` the features of every example of all past tasks.

    The paper's control for the replay buffer as an estimate of the past; computed exactly as accuacl. The experiment
    loop knows this name and keeps all past pools for it.

    Reference, options and cost: as accuacl, with a memory as large as the past.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [3.0, 1.0], [2.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> everything = Features([[1.0, 0.0]] * 6, [[0.5, 0.5]] * 6)
    >>> select("accuacl-full", pool=pool, budget=1, memory=everything, past=6).indices
    array([2])
    """
    return accuacl(query, variant=variant, keep=keep, total_classes=total_classes, lam=lam, oversample=oversample)


def candidates(oversample: float, count: int, n: int) -> int:
    """How many of n are looked at for `count` picks."""
    return math.ceil(min(oversample * count, n))


@dataclass(frozen=True)
class Options:
    """The options of accuacl for K classes, checked and filled in."""

    released: bool
    keep: int
    lam: float | None  # None: the share of the past

    @classmethod
    def of(cls, K: int, variant: str, keep: int | None, total_classes: int | None, lam: float | None) -> Options:
        if variant not in ("released", "paper"):
            raise InputError(f"variant is {variant!r}; give 'released' or 'paper'.")
        released = variant == "released"
        total = K if total_classes is None else whole_number("total_classes", total_classes, K)
        if keep is None:
            keep = 5 * total // K if released else (10 if total <= 10 else 5)
        if lam is not None:
            lam = number("lam", lam, 0, 1, "the weight of the past, a number in [0, 1]")
        return cls(released, whole_number("keep", keep, 1), lam)

    def weight(self, past: int | None, current: int, remembered: int) -> float:
        """The weight of the past, of which `remembered` examples are in the memory."""
        if self.lam is not None:
            return self.lam
        if past is None and remembered:
            raise InputError(
                "memory was given without past or lam; say how many examples the finished tasks had (past=)."
            )
        return fisher.past_weight(past or 0, current)

    def target(self, mean: Vector) -> fisher.Target:
        return fisher.Target.of(mean, self.keep, scaled=self.released)


class Scores:
    """Both scores of a pool against a target: rough ones of all, exact ones of some."""

    def __init__(
        self, pool: Features, target: fisher.Target, released: bool, chunk: int = 0, tick: Tick | None = None
    ) -> None:
        self.pool, self.target, self.chunk, self.tick = pool, target, chunk or None, tick
        self.counted = target if released else None  # whose entries count for the magnitude; None: all

    def sweep_distribution(self) -> tuple[Vector, Vector]:
        return fisher.sweep_distribution(self.pool, self.target, self.chunk, self.tick)

    def sweep_magnitude(self) -> tuple[Vector, Vector]:
        return fisher.sweep_magnitude(self.pool, self.counted, self.chunk, self.tick)

    def distribution(self, rows: Indices) -> Vector:
        return fisher.distribution(self.pool.rows(rows), self.target)

    def magnitude(self, rows: Indices) -> Vector:
        return fisher.magnitude(self.pool.rows(rows), self.counted)

    def largest_of(self, rows: Indices, count: int) -> Selection:
        """The `count` with the largest embedding of these rows, which are in rising order."""
        order = np.argsort(-round_off(in_slices(self.magnitude, rows)), kind="stable")[:count]
        return self.explain(rows[order])

    def explain(self, rows: Indices) -> Selection:
        scores = {"distribution": in_slices(self.distribution, rows), "magnitude": in_slices(self.magnitude, rows)}
        return Selection(rows, scores)


def _scores(query: Query, variant: str, keep: int | None, total_classes: int | None, lam: float | None) -> Scores:
    """The target of a query, and the scores of its pool."""
    options = Options.of(query.pool.K, variant, keep, total_classes, lam)
    pool, memory, tick = query.pool, query.memory, query.ticker(2 * len(query.pool))
    weight = options.weight(query.past, len(pool) + len(query.labelled or ()), len(memory or ()))
    rows = query.chunk or fisher.SUM_ROWS
    mean = fisher.settle(
        fisher.FisherSum.of(pool, rows, tick),
        fisher.FisherSum.of(memory, rows) if memory is not None else None,
        weight,
        lambda entries: (
            fisher.exact_entries(pool, entries),
            fisher.exact_entries(memory, entries) if memory is not None else [],
        ),
    )
    return Scores(pool, options.target(mean), options.released, query.chunk, tick)
