"""AccuACL for a part of the picks, another strategy for the rest."""

from __future__ import annotations

import numpy as np

from accuacl.base.progress import portion
from accuacl.strategies.accuacl import accuacl
from accuacl.strategies.coverage import cover, needed
from accuacl.strategies.limits import check_fits, needs
from accuacl.strategies.mix import Mix, in_turn, part
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import Rows
from accuacl.strategies.rows import Context, context_of, finder, row_strategy
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
    part(share, 0)  # refuses a wrong share before anything is read
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
    some, n, d = part(share, query.count), len(query.pool), query.pool.d
    check_fits("accuacl+coverage", needed(n, d, query.pool.K), n, d)
    tick = query.ticker(4 * query.count)
    passes = portion(tick, 2 * query.count, accuacl.passes * max(1, n))
    ranking = accuacl.prepare(context_of(query, passes), **options)
    first, _ = finder(query, passes)(ranking, some)
    covered = cover(query, first=first.tolist(), tick=tick)
    order = in_turn(some, query.count - some)
    picks = covered.indices[order]
    scores = {"accuacl": (order < some).astype(np.float64), "gain": covered.scores["gain"][order]}
    return Selection(picks, scores | ranking.explain(Rows(picks.astype(np.uint64), query.pool.rows(picks))))
