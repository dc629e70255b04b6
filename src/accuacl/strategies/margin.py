"""Margin sampling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import smallest

ROWS = 4096


def margin(query: Query) -> Selection:
    """Picks the examples whose two most probable classes are closest: those beside a decision boundary.

    With a single class there is no second one, and its probability counts as 0.
    Score: `margin`. Reference: Scheffer, Decomain and Wrobel, "Active Hidden Markov Models", 2001.

    Cost: one read of the probabilities, O(n K) time, about 50 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    >>> select("margin", pool=pool, budget=2).indices
    array([1, 2])
    """
    values = margins(query.pool.probabilities, query.chunk, query.ticker(len(query.pool)))
    rows, picked = smallest(query.count, values, 0.0, lambda rows: values[rows])
    return Selection(rows, {"margin": picked})


def margins(p: NDArray[np.floating], rows: int = 0, tick: Callable[[int], None] | None = None) -> NDArray[np.float64]:
    """The difference between the two largest of each row."""
    out, size = np.empty(len(p)), rows or ROWS
    for start in range(0, len(p), size):
        block = p[start : start + size]
        if p.shape[1] > 1:
            two = np.partition(block, -2, axis=1)[:, -2:].astype(np.float64)
            out[start : start + size] = two[:, 1] - two[:, 0]
        else:
            out[start : start + size] = block[:, 0]
        if tick:
            tick(len(block))
    return out
