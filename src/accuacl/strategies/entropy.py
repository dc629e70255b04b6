"""Entropy sampling."""

from __future__ import annotations

import numpy as np

from accuacl.strategies.ranking import Ranking, Rows
from accuacl.strategies.rows import Context, row_strategy
from accuacl.strategies.smallest import Vector

ROWS = 1024
EPS32, TINY32 = float(np.finfo(np.float32).eps), np.finfo(np.float32).tiny


@row_strategy("probability")
def entropy(context: Context) -> Ranking:
    """Picks the examples whose predicted distribution has the largest entropy: where the model is least sure.

    It looks at one example at a time, so near-copies of a confusing example are all picked.
    Score: `entropy` in nats. Reference: Shannon, 1948; Settles, "Active Learning Literature Survey", 2009.

    Cost: one read of the probabilities, O(n K) time, about 80 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    >>> picked = select("entropy", pool=pool, budget=2)
    >>> picked.indices, picked.scores["entropy"].round(3)
    (array([1, 2]), array([0.693, 0.5  ]))
    """
    return Ranking(exact=_exact, rough=_rough, scores=_scores)


def _exact(rows: Rows) -> Vector:
    """Minus the entropy of each row in nats, 0 log 0 = 0."""
    p = rows.probabilities.astype(np.float64)
    return np.asarray((p * np.log(np.where(p > 0, p, 1))).sum(axis=1))


def _rough(rows: Rows) -> tuple[Vector, Vector]:
    """The same in float32."""
    value = np.empty(len(rows))
    for start in range(0, len(rows), ROWS):
        p = np.ascontiguousarray(rows.probabilities[start : start + ROWS], np.float32)  # rows are added up in pairs
        terms = np.maximum(p, TINY32)
        np.log(terms, out=terms)
        terms *= p
        value[start : start + ROWS] = terms.sum(axis=1)
    return value, EPS32 * (64 + rows.features.K / 16) * (1 - value)


def _scores(rows: Rows) -> dict[str, Vector]:
    return {"entropy": -_exact(rows)}
