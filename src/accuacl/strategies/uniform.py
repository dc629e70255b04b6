"""Uniform sampling."""

from __future__ import annotations

from functools import partial

from numpy import uint64
from numpy.typing import NDArray

from accuacl.base.randomness import hash_ids
from accuacl.strategies.ranking import Ranking, Rows
from accuacl.strategies.rows import Context, row_strategy
from accuacl.strategies.smallest import Vector


@row_strategy("id")
def uniform(context: Context) -> Ranking:
    """Picks at random, every example with the same chance: the baseline that is hard to beat.

    The picks are the rows with the smallest 64-bit hashes of (seed, index), so that a pool read in shards, in any
    order, gives the same picks. Score: `draw`, the hash as a number in [0, 1).

    Cost: O(n) time and about 40 n bytes.

    >>> import numpy as np
    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((1000, 2)), np.full((1000, 2), 0.5))
    >>> select("uniform", pool=pool, budget=4, seed=0).indices
    array([592, 282, 774, 951])
    """
    return Ranking(exact=partial(_hashes, context.seed), scores=partial(_scores, context.seed))


def _hashes(seed: int, rows: Rows) -> NDArray[uint64]:
    return hash_ids(seed, rows.ids)


def _scores(seed: int, rows: Rows) -> dict[str, Vector]:
    return {"draw": _hashes(seed, rows) / 2.0**64}
