"""Agreement: examples whose labels the model and their neighbours confirm, for labels that may be wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import hash_ids
from accuacl.greedy import unit
from accuacl.memory.buffer import Ids, Memory
from accuacl.memory.ordered import check_features, keep_first

NEIGHBOURS = 10
BLOCK = 512  # rows whose distances are computed at a time


def agreement(
    memory: Memory,
    ids: Ids,
    labels: Ids,
    features: NDArray[Any],
    predicted: Ids,
    capacity: int,
    seed: int,
    logits: Any = None,
) -> Memory:
    """As many of every class as `class_balanced` keeps: those whose labels have the most `votes`, drawn by hash.

    features and predicted: what the model makes of the memory's examples, then of those offered. Among examples with
    as many votes none is preferred: a memory of the most typical ones alone would teach less than a random one.
    """
    check_features(features, memory, ids)
    against = 2 - votes(features, np.concatenate([memory.labels, labels]), predicted)
    keys = hash_ids(seed, np.concatenate([memory.ids, np.asarray(ids, np.int64)]), "keep")

    def first(rows: Ids) -> Ids:
        return np.lexsort((keys[rows], against[rows]))

    return keep_first(first, memory, ids, labels, capacity, seed, logits)


def votes(features: NDArray[Any], labels: Ids, predicted: Ids) -> Ids:
    """How many confirm each label, of two: the model, which predicts it, and the ten nearest other examples.

    The nearest, by features at length 1, confirm a label that none of the other classes has more often among them.

    >>> x = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [0.0, 1.0]])
    >>> votes(x, labels=np.array([0, 0, 0, 1]), predicted=np.array([0, 1, 1, 1]))
    array([2, 1, 1, 1])
    """
    count = min(NEIGHBOURS, len(labels) - 1)
    confirmed = (np.asarray(predicted) == labels).astype(np.int64)
    if count < 1:
        return confirmed + 1  # there is no other that could disagree
    x, inverse = unit(features), np.unique(labels, return_inverse=True)[1]
    for start in range(0, len(x), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(x)))
        likeness = x[rows] @ x.T
        likeness[np.arange(len(rows)), rows] = -np.inf  # no example votes for itself
        nearest = np.argsort(-likeness, axis=1, kind="stable")[:, :count]
        tally = np.zeros((len(rows), int(inverse.max()) + 1), np.int64)
        np.add.at(tally, (np.arange(len(rows))[:, None], inverse[nearest]), 1)
        confirmed[rows] += tally[np.arange(len(rows)), inverse[rows]] == tally.max(axis=1)
    return confirmed
