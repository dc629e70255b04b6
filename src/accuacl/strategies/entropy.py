"""Entropy sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import largest

ROWS = 1024
EPS32 = float(np.finfo(np.float32).eps)


def entropy(query: Query) -> Selection:
    """Picks the examples whose predicted distribution has the largest entropy: where the model is least decided.

    Looks at one example at a time, so near-copies of a confusing example are all picked.
    Score: `entropy` in nats. Reference: Shannon, 1948; Settles, "Active Learning Literature Survey", 2009.

    Cost: one read of the probabilities, O(n K) time, about 60 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    >>> picked = select("entropy", pool=pool, budget=2)
    >>> picked.indices, picked.scores["entropy"].round(3)
    (array([1, 2]), array([0.693, 0.5  ]))
    """
    p = query.pool.probabilities
    rows, values = largest(query.count, *sweep(p, query.chunk, query.ticker(len(p))), lambda rows: exact(p[rows]))
    return Selection(rows, {"entropy": values})


def sweep(
    p: NDArray[np.floating], rows: int = 0, tick: Callable[[int], None] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """`exact` in float32 and, for each row, a bound on how far it is from the exact value."""
    rough, size = np.empty(len(p)), rows or ROWS
    tiny = float(np.finfo(np.float32).tiny)
    for start in range(0, len(p), size):
        block = torch.from_numpy(np.array(p[start : start + size], np.float32))
        rough[start : start + size] = -(block.clamp(min=tiny).log_().mul_(block).sum(1)).numpy()
        if tick:
            tick(len(block))
    return rough, EPS32 * (64 + p.shape[1] / 16) * (rough + 1)


def exact(p: NDArray[np.floating]) -> NDArray[np.float64]:
    """Entropy of each row in nats, 0 log 0 = 0."""
    p = p.astype(np.float64)
    return -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
