"""AccuACL: one target of Fisher information for the past tasks and the new one."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Literal

import numpy as np

from accuacl import fisher
from accuacl.base.errors import InputError
from accuacl.base.progress import portion
from accuacl.fisher import Target
from accuacl.strategies.api import Query, Selection, check_fits, needs, whole_number
from accuacl.strategies.coverage import cover, needed
from accuacl.strategies.ranking import (
    Context,
    Indices,
    Mix,
    Ranking,
    Rows,
    Vector,
    context_of,
    in_turn,
    part,
    row_strategy,
)
from accuacl.strategies.registry import Option
from accuacl.strategies.simple import uniform

Variant = Annotated[
    Literal["released", "paper"], Option("as in the authors' code (released) or as in their text (paper)")
]
Keep = Annotated[int | None, Option("entries compared per class; unset: by the variant", least=1)]
TotalClasses = Annotated[int | None, Option("how many classes there will ever be; unset: those seen so far", least=1)]
Lam = Annotated[float | None, Option("weight of the past; unset: its share of all data", least=0, most=1)]
Oversample = Annotated[float, Option("candidates per pick", least=1)]
Share = Annotated[float, Option("the fraction that accuacl picks", least=0, most=1)]


@row_strategy("embedding", "probability", passes=2)
def accuacl(
    context: Context,
    *,
    variant: Variant = "released",
    keep: Keep = None,
    total_classes: TotalClasses = None,
    lam: Lam = None,
    oversample: Oversample = 2.0,
) -> Ranking:
    """Picks examples that inform the weights on which both the past (the memory) and the new data (the pool) depend.

    The `oversample * budget` examples whose Fisher embedding is distributed most like the target, lam * memory +
    (1 - lam) * pool, are the candidates; the `budget` with the largest embedding of those are picked, largest first.
    Scores: `distribution` (Jensen-Shannon divergence from the target in nats, smaller is better) and `magnitude`.

    Reference: Park et al., "Active Learning for Continual Learning: Keeping the Past Alive in the Present", ICLR 2025.

    Options: `variant`, "released" for the authors' code (which made the paper's figures) or "paper" for the paper's
    text; `keep`, how many entries per class are compared (released: 5 * total_classes // seen classes; paper: 10 up to
    ten total classes, else 5); `total_classes`, how many classes there will ever be (default: those seen so far);
    `lam`, the weight of the past (default: past / (past + pool + labelled)); `oversample`, candidates per pick.

    Cost: one (K x n)(n x d) product and O(n K keep) more; two reads of the pool; about 80 n bytes and a few blocks
    of rows.

    >>> import numpy as np
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
    target, counted = _target(context, variant, keep, total_classes, lam)
    return Ranking(
        exact=partial(_distribution, target),
        rough=partial(_rough_distribution, target),
        may_reach=partial(_may_reach, target),
        candidates=partial(_candidates, oversample),
        final=partial(_magnitude, counted),
        scores=partial(_scores, target, counted),
    )


@row_strategy("embedding", "probability", passes=2)
def accuacl_distribution(
    context: Context,
    *,
    variant: Variant = "released",
    keep: Keep = None,
    total_classes: TotalClasses = None,
    lam: Lam = None,
) -> Ranking:
    """AccuACL's distribution score alone: the examples whose Fisher embedding is distributed most like the target.

    An ablation from the paper: it picks examples typical of past and new data, even if they teach the model little.
    Scores: as accuacl.

    Reference, options and cost: as accuacl, without candidates.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [0.1, 1.0], [1.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> select("accuacl-distribution", pool=pool, budget=2, keep=2).indices
    array([2, 0])
    """
    target, counted = _target(context, variant, keep, total_classes, lam)
    return Ranking(
        exact=partial(_distribution, target),
        rough=partial(_rough_distribution, target),
        may_reach=partial(_may_reach, target),
        scores=partial(_scores, target, counted),
    )


@row_strategy("embedding", "probability", passes=2)
def accuacl_magnitude(
    context: Context,
    *,
    variant: Variant = "released",
    keep: Keep = None,
    total_classes: TotalClasses = None,
    lam: Lam = None,
) -> Ranking:
    """AccuACL's magnitude score alone: the examples with the largest Fisher embedding.

    An ablation from the paper: it picks the examples that teach the model most, whatever they are about. In the
    released variant the target still matters, because only the entries that it keeps count; in the paper's variant all
    entries count. Scores: as accuacl.

    Reference, options and cost: as accuacl, without candidates.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [3.0, 1.0], [2.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> select("accuacl-magnitude", pool=pool, budget=2).indices
    array([1, 2])
    """
    target, counted = _target(context, variant, keep, total_classes, lam)
    return Ranking(
        exact=partial(_magnitude, counted),
        rough=partial(_rough_magnitude, counted),
        scores=partial(_scores, target, counted),
    )


accuacl_full = accuacl.described(
    """AccuACL with a complete memory: give as `memory` the features of every example of all past tasks.

    The paper's control: it shows how well the replay buffer represents the past. It is computed exactly as accuacl. The
    experiment loop knows this name and keeps all past pools for it.

    Reference, options and cost: as accuacl, with a memory as large as the past.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0.1], [3.0, 1.0], [2.0, 0.2]], [[0.5, 0.5]] * 3)
    >>> everything = Features([[1.0, 0.0]] * 6, [[0.5, 0.5]] * 6)
    >>> select("accuacl-full", pool=pool, budget=1, memory=everything, past=6).indices
    array([2])
    """
)


def _target(
    context: Context, variant: str, keep: int | None, total_classes: int | None, lam: float | None
) -> tuple[Target, Target | None]:
    """The target of a query, and the target whose entries the magnitude counts (None: all entries)."""
    released = variant == "released"
    total = context.K if total_classes is None else whole_number("total_classes", total_classes, context.K)
    if keep is None:
        keep = 5 * total // context.K if released else (10 if total <= 10 else 5)
    pool, memory = context.pool, context.memory
    weight = weight_of_past(lam, context.past, len(memory or ()), context.current)
    mean = fisher.settle(
        pool.fisher_sum(),
        memory.fisher_sum() if memory is not None else None,
        weight,
        lambda entries: (pool.exact_entries(entries), memory.exact_entries(entries) if memory is not None else []),
    )
    target = Target.of(mean, keep, scaled=released)
    return target, target if released else None


def weight_of_past(lam: float | None, past: int | None, remembered: int, current: int) -> float:
    """`lam` if given, else the past's share of all examples. remembered: how many past examples the memory holds."""
    if lam is not None:
        return lam
    if past is None and remembered:
        raise InputError(
            "memory was given without past or lam; give past (--past), the number of examples that the finished tasks "
            "had, or lam (--lam)."
        )
    return fisher.past_weight(past or 0, current)


def _candidates(oversample: float, count: int, n: int) -> int:
    return math.ceil(min(oversample * count, n))


def _distribution(target: Target, rows: Rows) -> Vector:
    return fisher.distribution(rows.features, target)


def _rough_distribution(target: Target, rows: Rows) -> tuple[Vector, Vector]:
    return fisher.rough_distribution(rows.features, target)


def _may_reach(target: Target, rows: Rows, cut: float) -> Indices:
    return fisher.may_be_below(rows.features, target, cut)


def _magnitude(counted: Target | None, rows: Rows) -> Vector:
    """Minus the magnitude: the largest are the best."""
    return -fisher.magnitude(rows.features, counted)


def _rough_magnitude(counted: Target | None, rows: Rows) -> tuple[Vector, Vector]:
    value, bound = fisher.rough_magnitude(rows.features, counted)
    return -value, bound


def _scores(target: Target, counted: Target | None, rows: Rows) -> dict[str, Vector]:
    return {"distribution": _distribution(target, rows), "magnitude": fisher.magnitude(rows.features, counted)}


@row_strategy("id", "embedding", "probability", passes=3)
def accuacl_uniform(
    context: Context,
    *,
    share: Share = 0.5,
    variant: Variant = "released",
    keep: Keep = None,
    total_classes: TotalClasses = None,
    lam: Lam = None,
    oversample: Oversample = 2.0,
) -> Mix:
    """Picks the fraction `share` of the examples as accuacl does and the rest at random, in turn.

    AccuACL's picks resemble each other; random picks between them add variety. Scores: `accuacl`, 1 for an example that
    accuacl picked and 0 for one drawn at random; `distribution` and `magnitude` as accuacl, `draw` as uniform.

    Reference and options: as accuacl, and `share`. Cost: as accuacl, and one more read of the pool.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(500, 8)), rng.dirichlet(np.ones(4), 500))
    >>> picked = select("accuacl+uniform", pool=pool, budget=4)
    >>> picked.indices, picked.scores["accuacl"]
    (array([294, 282, 100, 463]), array([1., 0., 1., 0.]))
    """
    options = {"variant": variant, "keep": keep, "total_classes": total_classes, "lam": lam, "oversample": oversample}
    return Mix(accuacl.prepare(context, **options), uniform.prepare(context), share, "accuacl")


@needs(needed)
def accuacl_coverage(
    query: Query,
    *,
    share: Share = 0.5,
    variant: Variant = "released",
    keep: Keep = None,
    total_classes: TotalClasses = None,
    lam: Lam = None,
    oversample: Oversample = 2.0,
) -> Selection:
    """Picks the fraction `share` of the examples as accuacl does and the rest as coverage does, in turn.

    Coverage treats AccuACL's picks as labelled. Scores: `accuacl`, 1 for an example that accuacl picked and 0 for one
    that coverage picked; `distribution` and `magnitude` as accuacl, `gain` as coverage, with AccuACL's picks first.

    Reference and options: as accuacl and coverage, and `share`. Cost: that of both.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(500, 8)), rng.dirichlet(np.ones(4), 500))
    >>> picked = select("accuacl+coverage", pool=pool, budget=4)
    >>> picked.indices, picked.scores["accuacl"]
    (array([294, 181, 100, 384]), array([1., 0., 1., 0.]))
    """
    options = {"variant": variant, "keep": keep, "total_classes": total_classes, "lam": lam, "oversample": oversample}
    first_count, n, d = part(share, query.count), len(query.pool), query.pool.d
    check_fits("accuacl+coverage", needed(n, d, query.pool.K), n, d)
    tick = query.ticker(4 * query.count)
    passes = portion(tick, 2 * query.count, accuacl.passes * max(1, n))
    context = context_of(query, passes)
    ranking = accuacl.prepare(context, **options)
    first, _ = context.pool.best(ranking, first_count)
    covered = cover(query, first=first.tolist(), tick=tick)
    order = in_turn(first_count, query.count - first_count)
    picks = covered.indices[order]
    scores = {"accuacl": (order < first_count).astype(np.float64), "gain": covered.scores["gain"][order]}
    return Selection(picks, scores | ranking.explain(Rows(picks.astype(np.uint64), query.pool.rows(picks))))
