"""Simple strategies, each a value per row: uniform, entropy, least-confidence, margin."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from accuacl.base.randomness import hash_ids
from accuacl.features import Array, Features
from accuacl.strategies.ranking import Context, Ranking, Rows, Vector, row_strategy

ROWS = 1024  # rows of rough entropies computed at a time
EPS32, TINY32 = float(np.finfo(np.float32).eps), np.finfo(np.float32).tiny


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
    return Ranking(exact=partial(_hashes, context.seed), scores=partial(_draws, context.seed))


def _hashes(seed: int, rows: Rows) -> NDArray[uint64]:
    return hash_ids(seed, rows.ids)


def _draws(seed: int, rows: Rows) -> dict[str, Vector]:
    return {"draw": _hashes(seed, rows) / 2.0**64}


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
    return Ranking(exact=_minus_entropy, rough=_rough_entropy, scores=_entropy_score)


def _minus_entropy(rows: Rows) -> Vector:
    """Minus the entropy of each row in nats, 0 log 0 = 0."""
    p = rows.probabilities.astype(np.float64)
    return np.asarray((p * np.log(np.where(p > 0, p, 1))).sum(axis=1))


def _rough_entropy(rows: Rows) -> tuple[Vector, Vector]:
    """Minus the entropy in float32, and a bound on its error."""
    value = np.empty(len(rows))
    for start in range(0, len(rows), ROWS):
        p = np.ascontiguousarray(rows.probabilities[start : start + ROWS], np.float32)  # rows are added up in pairs
        terms = np.maximum(p, TINY32)
        np.log(terms, out=terms)
        terms *= p
        value[start : start + ROWS] = terms.sum(axis=1)
    return value, EPS32 * (64 + rows.features.K / 16) * (1 - value)


def _entropy_score(rows: Rows) -> dict[str, Vector]:
    return {"entropy": -_minus_entropy(rows)}


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
    return Ranking(exact=_confidence, scores=_confidence_score)


def _confidence(rows: Rows) -> Vector:
    return np.asarray(rows.probabilities.max(axis=1).astype(np.float64))


def _confidence_score(rows: Rows) -> dict[str, Vector]:
    return {"confidence": _confidence(rows)}


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
    return Ranking(exact=_margin, scores=_margin_score)


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


def _margin_score(rows: Rows) -> dict[str, Vector]:
    return {"margin": _margin(rows)}
