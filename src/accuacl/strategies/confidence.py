"""Least-confidence sampling."""

from __future__ import annotations

import numpy as np

from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import smallest


def least_confidence(query: Query) -> Selection:
    """Picks the examples whose most probable class has the smallest probability: where the best guess is weakest.

    Looks at one example at a time and at one class, so it ignores how the rest is spread.
    Score: `confidence`. Reference: Lewis and Gale, "A Sequential Algorithm for Training Text Classifiers", 1994.

    Cost: one read of the probabilities, O(n K) time, about 50 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    >>> select("least-confidence", pool=pool, budget=2).indices
    array([1, 2])
    """
    p = query.pool.probabilities
    confidence = p.max(axis=1).astype(np.float64) if len(p) else np.empty(0)
    query.ticker(len(p))(len(p))
    rows, values = smallest(query.count, confidence, 0.0, lambda rows: confidence[rows])
    return Selection(rows, {"confidence": values})
