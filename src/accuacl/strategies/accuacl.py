"""AccuACL: Fisher information of the past and the new, in one target."""

from __future__ import annotations

import math

import numpy as np

from accuacl import fisher
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import Indices, Vector, largest, round_off, smallest


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

    Cost: one (K x n)(n x d) product and O(n K keep) more; two reads of the pool; 16 n bytes and a few blocks of rows.

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
    released = _check(variant, keep, total_classes, lam, query)
    if not (isinstance(oversample, int | float) and math.isfinite(oversample) and oversample >= 1):
        raise ValueError(f"oversample is {oversample!r}; give a number of at least 1.")
    target = _target(query, released, keep, total_classes, lam)
    candidates, divergence = _most_alike(query, target, min(len(query.pool), math.ceil(oversample * query.budget)))
    size = fisher.magnitude(query.pool.rows(candidates), target if released else None)
    order = np.lexsort((candidates, -round_off(size)))[: query.count]
    return Selection(candidates[order], {"distribution": divergence[order], "magnitude": size[order]})


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
    released = _check(variant, keep, total_classes, lam, query)
    target = _target(query, released, keep, total_classes, lam)
    rows, divergence = _most_alike(query, target, query.count)
    size = fisher.magnitude(query.pool.rows(rows), target if released else None)
    return Selection(rows, {"distribution": divergence, "magnitude": size})


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
    released = _check(variant, keep, total_classes, lam, query)
    target = _target(query, released, keep, total_classes, lam)
    pool, kept = query.pool, target if released else None
    rough, bound = fisher.sweep_magnitude(pool, kept, query.chunk or None, lambda n: query.tick(n, 2 * len(pool)))
    rows, size = largest(query.count, rough, bound, lambda rows: fisher.magnitude(pool.rows(rows), kept))
    return Selection(rows, {"distribution": fisher.distribution(pool.rows(rows), target), "magnitude": size})


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


def _check(variant: str, keep: int | None, total_classes: int | None, lam: float | None, query: Query) -> bool:
    """Complain of wrong options; tell whether the variant is the released one."""
    if variant not in ("released", "paper"):
        raise ValueError(f"variant is {variant!r}; give 'released' or 'paper'.")
    if keep is not None and (not isinstance(keep, int | np.integer) or keep < 1):
        raise ValueError(f"keep is {keep!r}; give a whole number of at least 1.")
    if total_classes is not None and (not isinstance(total_classes, int | np.integer) or total_classes < query.pool.K):
        raise ValueError(f"total_classes is {total_classes!r}; give at least the {query.pool.K} classes seen.")
    if lam is not None and not (isinstance(lam, int | float | np.floating) and 0 <= lam <= 1):
        raise ValueError(f"lam is {lam!r}; give the weight of the past, a number in [0, 1].")
    if query.memory is not None and len(query.memory) and lam is None and query.past is None:
        raise ValueError("memory was given without past or lam; say how many examples the finished tasks had (past=).")
    return variant == "released"


def _target(
    query: Query, released: bool, keep: int | None, total_classes: int | None, lam: float | None
) -> fisher.Target:
    pool, total = query.pool, total_classes or query.pool.K
    if keep is None:
        keep = 5 * total // pool.K if released else (10 if total <= 10 else 5)
    if lam is None:
        lam = fisher.past_weight(query.past or 0, len(pool) + len(query.labelled or ()))
    rows = query.chunk or fisher.SUM_ROWS
    new = fisher.FisherSum.of(pool, rows, lambda n: query.tick(n, 2 * len(pool)))
    memory = fisher.FisherSum.of(query.memory, rows) if query.memory is not None else None
    return fisher.Target.of(fisher.mix(new, memory, lam), keep, scaled=released)


def _most_alike(query: Query, target: fisher.Target, count: int) -> tuple[Indices, Vector]:
    """The `count` rows of the pool with the smallest distribution score, and that score."""
    pool = query.pool
    rough, bound = fisher.sweep_distribution(pool, target, query.chunk or None, lambda n: query.tick(n, 2 * len(pool)))
    return smallest(count, rough, bound, lambda rows: fisher.distribution(pool.rows(rows), target))
