"""Margin sampling."""

from __future__ import annotations

import numpy as np

from accuacl.features import Array, Features
from accuacl.strategies.ranking import Ranking, Rows
from accuacl.strategies.rows import Context, row_strategy
from accuacl.strategies.smallest import Vector


@row_strategy("probability")
def margin(context: Context) -> Ranking:
    """Picks the examples whose two most probable classes are closest: those beside a decision boundary.

    With a single class the second probability counts as 0.
    Score: `margin`. Reference: Scheffer, Decomain and Wrobel, "Active Hidden Markov Models", 2001.

    Cost: one read of the probabilities, O(n K) time, about 80 n bytes.

    >>> from accuacl import Features, select
    >>> pool = Features(np.ones((3, 1)), [[0.5, 0.3, 0.2], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]])
    >>> select("margin", pool=pool, budget=2).indices
    array([1, 2])
    """
    return Ranking(exact=_margin, scores=_scores)


def margins(p: Array) -> Vector:
    """The difference between the two largest probabilities of each row."""
    if p.shape[1] == 1:
        return np.asarray(p[:, 0].astype(np.float64))
    two = np.partition(p, -2, axis=1)[:, -2:].astype(np.float64)
    return np.asarray(two[:, 1] - two[:, 0])


def uncertainties(features: Features) -> Vector:
    """1 - margin of each example."""
    return np.concatenate([np.empty(0)] + [1 - margins(block.probabilities) for _, block in features.blocks(4096)])


def _margin(rows: Rows) -> Vector:
    return margins(rows.probabilities)


def _scores(rows: Rows) -> dict[str, Vector]:
    return {"margin": _margin(rows)}
