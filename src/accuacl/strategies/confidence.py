"""Least-confidence sampling."""

from __future__ import annotations

import numpy as np

from accuacl.strategies.ranking import Ranking, Rows
from accuacl.strategies.rows import Context, row_strategy
from accuacl.strategies.smallest import Vector


@row_strategy("probability")
def least_confidence(context: Context) -> Ranking:
    """Picks the examples whose most probable class has the smallest probability: where the best guess is weakest.

    It looks at one example and one class at a time, so it ignores how the other probabilities are spread.
    Score: `confidence`. Reference: Lewis and Gale, "A Sequential Algorithm for Training Text Classifiers", 1994.

    Cost: one read of the probabilities, O(n K) time, about 80 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    >>> select("least-confidence", pool=pool, budget=2).indices
    array([1, 2])
    """
    return Ranking(exact=_confidence, scores=_scores)


def _confidence(rows: Rows) -> Vector:
    return np.asarray(rows.probabilities.max(axis=1).astype(np.float64))


def _scores(rows: Rows) -> dict[str, Vector]:
    return {"confidence": _confidence(rows)}
