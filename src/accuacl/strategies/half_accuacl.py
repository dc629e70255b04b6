"""AccuACL for a part of the picks, another strategy for the rest."""

from __future__ import annotations

import numpy as np

from accuacl.base.progress import portion
from accuacl.strategies.accuacl import accuacl
from accuacl.strategies.coverage import cover, needed
from accuacl.strategies.limits import needs
from accuacl.strategies.mix import Mix, in_turn, part
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.rows import Context, Rows, context_of, finder, row_strategy
from accuacl.strategies.uniform import uniform


@row_strategy("id", "embedding", "probability", passes=3)
def accuacl_uniform(
    context: Context,
    *,
    share: float = 0.5,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
    oversample: float = 2.0,
) -> Mix:
    """Picks this share of the examples as accuacl does and the rest at random, in turn.

    AccuACL's picks crowd; with random ones between them they still inform the weights that past and new rest on.
    Scores: `accuacl`, 1 where it has picked the example and 0 where that was drawn; `distribution` and `magnitude` as
    accuacl, and `draw` as uniform.

    Reference and options: as accuacl, and `share`. Cost: as accuacl, and one more read of the pool.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(500, 8)), rng.dirichlet(np.ones(4), 500))
    >>> picked = select("accuacl+uniform", pool=pool, budget=4)
    >>> picked.indices, picked.scores["accuacl"]
    (array([294, 282, 100, 463]), array([1., 0., 1., 0.]))
    """
    options = {"variant": variant, "keep": keep, "total_classes": total_classes, "lam": lam, "oversample": oversample}
    part(share, 0)  # refused, if it is no share, before anything is read
    return Mix(accuacl.prepare(context, **options), uniform.prepare(context), share, "accuacl")


@needs(needed)
def accuacl_coverage(
    query: Query,
    *,
    share: float = 0.5,
    variant: str = "released",
    keep: int | None = None,
    total_classes: int | None = None,
    lam: float | None = None,
    oversample: float = 2.0,
) -> Selection:
    """Picks this share of the examples as accuacl does and the rest to cover what these leave uncovered, in turn.

    AccuACL's picks are counted as labelled by the coverage. Scores: `accuacl`, 1 where it has picked the example and 0
    where coverage has; `distribution` and `magnitude` as accuacl, and `gain` as coverage, with AccuACL's picks first.

    Reference and options: as accuacl and coverage, and `share`. Cost: of both.

    >>> from accuacl import Features, select
    >>> rng = np.random.default_rng(0)
    >>> pool = Features(rng.normal(size=(500, 8)), rng.dirichlet(np.ones(4), 500))
    >>> picked = select("accuacl+coverage", pool=pool, budget=4)
    >>> picked.indices, picked.scores["accuacl"]
    (array([294, 181, 100, 384]), array([1., 0., 1., 0.]))
    """
    options = {"variant": variant, "keep": keep, "total_classes": total_classes, "lam": lam, "oversample": oversample}
    some, n = part(share, query.count), len(query.pool)
    tick = query.ticker(4 * query.count)
    passes = portion(tick, 2 * query.count, accuacl.passes * max(1, n))
    ranking = accuacl.prepare(context_of(query, passes), **options)
    first, _ = finder(query, passes)(ranking, some)
    covered = cover(query, first=first.tolist(), tick=tick)
    order = in_turn(some, query.count - some)
    picks = covered.indices[order]
    scores = {"accuacl": (order < some).astype(np.float64), "gain": covered.scores["gain"][order]}
    return Selection(picks, scores | ranking.explain(Rows(picks.astype(np.uint64), query.pool.rows(picks))))
