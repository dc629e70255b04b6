"""The first examples of every class, in an order that depends on the model's features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import hash_ids
from accuacl.experiments.memory.buffer import Ids, Memory, offer
from accuacl.experiments.memory.policies import first_of_each_class
from accuacl.strategies.facility import facility_location, squared_width, unit

Order = Callable[[NDArray[np.float64], int], Ids]  # (n rows of length 1, count): which `count` to keep, best first


def keep_in_order(
    order: Order,
    memory: Memory,
    ids: Ids,
    labels: Ids,
    features: NDArray[Any],
    capacity: int,
    seed: int,
    logits: Any = None,
) -> Memory:
    """As many examples of every class as `class_balanced` keeps: the first in the class's order, sorted by id.

    features: of the memory's examples, then of those offered.
    """
    check_features(features, memory, ids)

    def first(rows: Ids) -> Ids:
        return order(unit(features[rows]), min(capacity, len(rows)))

    return keep_first(first, memory, ids, labels, capacity, seed, logits)


def keep_first(
    first: Callable[[Ids], Ids], memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any
) -> Memory:
    """The same with any order. first: given the examples of a class, which of them come first.

    It is given positions in the memory and, behind it, in what is offered; it gives positions in what it is given.
    A class that is offered examples is ordered again, together with its examples in memory; the other classes keep
    their order. Keys are ranks in the class's order, so a smaller quota drops the last ones. An example that is already
    in memory is not offered again.
    """
    offered = offer(memory, ids, labels, capacity, seed, logits)  # each id once, in order of id
    assert offered.keys is not None
    together = np.concatenate([memory.ids, np.asarray(ids, np.int64)])
    first_row = np.unique(together, return_index=True)[1]  # of each id, in order of id
    keys, new = offered.keys.copy(), ~np.isin(offered.ids, memory.ids)
    for label in np.unique(offered.labels[new]):
        rows = np.flatnonzero(offered.labels == label)
        leading = rows[first(first_row[rows])]
        keys[rows] = len(rows)
        keys[leading] = np.arange(len(leading))
    return first_of_each_class(Memory.from_arrays(offered.to_arrays() | {"keys": keys}), capacity, seed)


def check_features(features: NDArray[Any], memory: Memory, ids: Ids) -> None:
    """There must be a row for each example."""
    if len(features) != len(memory) + len(ids):
        raise InputError(
            f"{len(features)} rows of features came with {len(memory)} examples in the memory and {len(ids)} offered; "
            "give one for each, the memory's first."
        )


TIE = 1e-12


def herding_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: each next row brings the mean so far closest to the mean of all; ties by index.

    Reference: Rebuffi et al., "iCaRL: Incremental Classifier and Representation Learning", CVPR 2017.

    >>> herding_order(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), 3)
    array([1, 2, 0])
    """
    mean, total, picks = x.mean(axis=0), np.zeros(x.shape[1]), np.empty(count, np.int64)
    squares, left = np.square(x).sum(axis=1), np.ones(len(x), bool)
    for k in range(count):
        missing = (k + 1) * mean - total  # the row that would bring the mean exactly there
        distance = np.where(left, squares - 2 * (x * missing).sum(axis=1), np.inf)
        picks[k] = np.argmax(distance <= distance.min() + TIE * (1 + np.abs(missing).sum()))
        left[picks[k]] = False
        total += x[picks[k]]
    return picks


herding = partial(keep_in_order, herding_order)


PARTS = 20  # the kernel is as wide as the radius within which an example has 1/PARTS of its class


def coverage_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: each next row best represents those not yet represented; ties by index.

    Facility location within the class, as the query strategy `coverage` does within the pool; s^2 is the median over
    the n rows of the squared distance to their n/20-th nearest neighbour, or to the nearest if n < 20.

    >>> coverage_order(np.array([[1.0, 0.0], [0.96, 0.28], [0.8, 0.6], [0.0, 1.0]]), 2)
    array([1, 3])
    """
    share = min(1.0, max(1 / PARTS, 1 / max(1, len(x) - 1)))
    return facility_location(x.copy(), squared_width(x, share), count)[0]


coverage = partial(keep_in_order, coverage_order)


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
