"""Uniform sampling."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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


def hash_ids(seed: int, ids: NDArray[np.int64] | NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A 64-bit hash of (seed, id): each passes the finaliser of SplitMix64, the seed first."""
    start = mix64(np.array([seed % 2**64], np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    return mix64(ids.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + start)


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of x moves half of the bits, and no two x end alike."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
