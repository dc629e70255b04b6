"""Uniform sampling."""

from __future__ import annotations

import numpy as np

from accuacl.base.randomness import hash_ids
from accuacl.strategies.query import Query, Selection


def uniform(query: Query) -> Selection:
    """Picks at random, every example with the same chance: the baseline that is hard to beat.

    The picks are the smallest 64-bit hashes of (seed, index), so that a pool read in shards, in any order, gives the
    same ones. Score: `draw`, the hash as a number in [0, 1).

    Cost: O(n) time and about 24 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((1000, 2)), np.full((1000, 2), 0.5))
    >>> select("uniform", pool=pool, budget=4, seed=0).indices
    array([592, 282, 774, 951])
    """
    hashes = hash_ids(query.seed, np.arange(len(query.pool)))
    query.ticker(len(hashes))(len(hashes))
    rows = np.arange(len(hashes))
    if query.count < len(hashes):
        rows = np.flatnonzero(hashes <= np.partition(hashes, query.count)[query.count])
    rows = rows[np.argsort(hashes[rows], kind="stable")][: query.count]
    return Selection(rows, {"draw": hashes[rows] / 2.0**64})
