"""What a memory keeps: policies, pure functions of a memory and of the examples that are offered to it.

`reservoir` and `class_balanced` look at ids and labels, `append_scored` and `replace_scored` at GSS's scores.
`herding`, `coverage`, `typical`, `mixed` and `agreement` also look at the model's features; `--memory-policy` chooses
them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import hash_ids, numpy_generator
from accuacl.experiments.memory.buffer import Array, Floats, Ids, Memory, by_key, offer
from accuacl.strategies import clusters_of, facility_location, mean_distance, squared_width, unit

Order = Callable[[NDArray[np.float64], int], Ids]  # (n rows of length 1, count): which `count` to keep, best first
TIE = 1e-12
PARTS = 20  # coverage: the kernel is as wide as the radius within which an example has 1/PARTS of its class
NEIGHBOURS = 10  # agreement: nearest examples that vote
BLOCK = 512  # rows whose distances are computed at a time


def reservoir(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """A uniform sample of everything ever offered: the `capacity` smallest hashes of (seed, id), in order of id.

    The order of offers does not matter. An id offered again, perhaps under another seed, keeps its smaller hash, with
    the logits that came with it: the chance to be kept grows with the number of offers, but an id is kept only once.

    >>> ids = np.arange(100)
    >>> reservoir(Memory.empty(), ids, ids % 2, capacity=4, seed=0).ids
    array([29, 38, 51, 74])
    """
    offered = offer(memory, ids, labels, seed, logits)
    return offered.take(np.sort(by_key(offered)[:capacity]))


def class_balanced(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """The same number of examples of every class: those with the smallest hashes of (seed, id), in order of id.

    A class with fewer examples than its quota leaves its room to the others. Places that do not divide evenly go to
    classes in an order drawn from the seed, as do all places if there are fewer than classes.

    >>> labels = np.array([0] * 2 + [1] * 50 + [2] * 50)
    >>> np.bincount(class_balanced(Memory.empty(), np.arange(102), labels, capacity=12, seed=0).labels)
    array([2, 5, 5])
    """
    return _first_of_each_class(offer(memory, ids, labels, seed, logits), capacity, seed)


def append_scored(memory: Memory, ids: Ids, labels: Ids, scores: Floats, capacity: int) -> Memory:
    """GSS while there is room: add as many examples as fit, with their scores, but none that is already in memory."""
    new = np.flatnonzero(~np.isin(ids, memory.ids))[: max(0, capacity - len(memory))]
    inside = memory.scores if memory.scores is not None else np.empty(0)
    return Memory(
        np.concatenate([memory.ids, ids[new]]),
        np.concatenate([memory.labels, labels[new]]),
        scores=np.concatenate([inside, scores[new]]),
    )


def replace_scored(memory: Memory, ids: Ids, labels: Ids, scores: Floats, weights: Floats, seed: int) -> Memory:
    """GSS when full: each new example draws a slot of its own by `weights`, and may replace the example there.

    With s = (score + 1) / 2, which is larger the more similar an example is to others, the old one is replaced with
    probability s_old / (s_old + s_new).
    """
    assert memory.scores is not None
    rng = numpy_generator(seed)
    new = np.flatnonzero(~np.isin(ids, memory.ids))[: len(memory)]
    with np.errstate(divide="ignore"):
        slots = np.argsort(rng.exponential(size=len(memory)) / weights, kind="stable")[: len(new)]
    old, fresh = memory.scores[slots] + 1, scores[new] + 1
    taken = rng.random(len(new)) * (old + fresh) < old
    after = Memory(memory.ids.copy(), memory.labels.copy(), scores=memory.scores.copy())
    for name, given in (("ids", ids), ("labels", labels), ("scores", scores)):
        getattr(after, name)[slots[taken]] = given[new[taken]]
    return after


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


def coverage_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: each next row best represents those not yet represented; ties by index.

    Facility location within the class, as the query strategy `coverage` does within the pool; s^2 is the median over
    the n rows of the squared distance to their n/20-th nearest neighbour, or to the nearest if n < 20.

    >>> coverage_order(np.array([[1.0, 0.0], [0.96, 0.28], [0.8, 0.6], [0.0, 1.0]]), 2)
    array([1, 3])
    """
    share = min(1.0, max(1 / PARTS, 1 / max(1, len(x) - 1)))
    return facility_location(x.copy(), squared_width(x, share), count)[0]


def typical_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: typical examples of ever more clusters, so that any part of it is spread out.

    k-means finds 1, 2, 4, 8, ... clusters. Each time, of the clusters in which no row has been taken, the largest
    first, the row with the smallest mean distance to its 20 nearest neighbours in the class is taken; ties by index.

    Reference: Shaul-Ariel and Weinshall, "TEAL: New Selection Strategy for Small Buffers in Experience Replay Class
    Incremental Learning", 2024, which reclusters a class for each size of the memory.

    >>> typical_order(np.array([[1.0, 0.0], [0.96, 0.28], [0.8, 0.6], [0.0, 1.0]]), 2)
    array([1, 3])
    """
    distinct, inverse = np.unique(x, axis=0, return_inverse=True)
    inverse = inverse.ravel()
    distance, taken = np.round(mean_distance(x), 12), np.zeros(len(x), bool)
    picks: list[int] = []
    clusters = 1
    while len(picks) < min(count, len(distinct)):
        number = min(clusters, len(distinct))
        of_row = clusters_of(distinct.astype(np.float32), number, 0)[inverse]
        sizes = np.bincount(of_row, minlength=number)
        free = [cluster for cluster in range(number) if sizes[cluster] and not taken[of_row == cluster].any()]
        for cluster in sorted(free, key=lambda cluster: (-sizes[cluster], cluster))[: count - len(picks)]:
            rows = np.flatnonzero(of_row == cluster)
            picks.append(int(rows[np.argmin(distance[rows])]))
            taken[picks[-1]] = True
        if number == len(distinct) and not free:  # k-means has put different rows into one cluster
            break
        clusters *= 2
    rest = np.flatnonzero(~taken)  # copies
    order = np.append(np.array(picks, np.int64), rest[np.argsort(distance[rest], kind="stable")])
    return order[:count]


def mixed(
    memory: Memory, ids: Ids, labels: Ids, features: Array, capacity: int, seed: int, logits: Any = None
) -> Memory:
    """As many of every class as `class_balanced` keeps: one that covers the class and one at random, in turn."""

    def first(rows: Ids, keys: Array) -> Ids:
        covering = coverage_order(unit(features[rows]), min(capacity, len(rows)))
        by_chance = np.argsort(keys, kind="stable")[: len(covering)]
        turns = np.stack([covering, by_chance], axis=1).ravel()
        places = np.sort(np.unique(turns, return_index=True)[1])  # each row where it comes first
        return turns[places][: len(covering)]

    return _keep_first(first, memory, ids, labels, capacity, seed, logits)


def agreement(
    memory: Memory,
    ids: Ids,
    labels: Ids,
    features: Array,
    capacity: int,
    seed: int,
    logits: Any = None,
    *,
    predicted: Ids,
) -> Memory:
    """As many of every class as `class_balanced` keeps: those whose labels have the most `votes`, ties by hash.

    features and predicted: the model's for the memory's examples, then for those offered. Ties are drawn at random: a
    memory of the most typical examples alone would teach less than a random one.
    """
    against = 2 - votes(features, np.concatenate([memory.labels, labels]), predicted)

    def first(rows: Ids, keys: Array) -> Ids:
        return np.lexsort((keys, against[rows]))

    return _keep_first(first, memory, ids, labels, capacity, seed, logits)


def votes(features: Array, labels: Ids, predicted: Ids) -> Ids:
    """How many of two confirm each label: the model, if it predicts the label, and the ten nearest other examples.

    The nearest, by features scaled to length 1, confirm a label if no other class is more frequent among them.

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


def quotas(counts: Ids, capacity: int, order: Array) -> Ids:
    """How many of each class to keep: equally many as far as possible, the odd places to the smallest in `order`.

    >>> quotas(np.array([1, 9, 9, 9]), 12, order=np.array([3, 2, 1, 0]))
    array([1, 3, 4, 4])
    """
    low, high = 0, int(counts.max(initial=0))
    while low < high:  # the highest level to which all classes can be filled
        level = (low + high + 1) // 2
        low, high = (level, high) if np.minimum(counts, level).sum() <= capacity else (low, level - 1)
    room = np.minimum(counts, low)
    more = np.flatnonzero(counts > low)
    more = more[np.argsort(order[more], kind="stable")][: capacity - int(room.sum())]
    room[more] += 1
    return room


def _first_of_each_class(memory: Memory, capacity: int, seed: int) -> Memory:
    """The examples of every class with the smallest keys, as many as its quota, in order of id."""
    classes, inverse, counts = np.unique(memory.labels, return_inverse=True, return_counts=True)
    room = quotas(counts, capacity, hash_ids(seed, classes, "keep"))
    rows = by_key(memory)
    by_class = rows[np.argsort(inverse[rows], kind="stable")]
    rank = np.arange(len(memory)) - np.repeat(np.cumsum(counts) - counts, counts)
    return memory.take(np.sort(by_class[rank < np.repeat(room, counts)]))


def _keep_in_order(
    order: Order, memory: Memory, ids: Ids, labels: Ids, features: Array, capacity: int, seed: int, logits: Any = None
) -> Memory:
    """As many examples of every class as `class_balanced` keeps: the first in the class's order, sorted by id.

    features: of the memory's examples, then of those offered.
    """

    def first(rows: Ids, keys: Array) -> Ids:
        return order(unit(features[rows]), min(capacity, len(rows)))

    return _keep_first(first, memory, ids, labels, capacity, seed, logits)


def _keep_first(
    first: Callable[[Ids, Array], Ids], memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any
) -> Memory:
    """As many examples of every class as `class_balanced` keeps, those that `first` puts first, sorted by id.

    first: takes the rows of a class (the memory's, then those offered) and their hashes, and returns positions among
    them, best first.
    A class that is offered examples is ordered again, together with its examples in memory; the other classes keep
    their order. Keys are ranks in the class's order, so that a smaller quota drops the last ones. An example that is
    already in memory is not offered again.
    """
    offered = offer(memory, ids, labels, seed, logits)  # each id once, in order of id
    assert offered.keys is not None
    together = np.concatenate([memory.ids, np.asarray(ids, np.int64)])
    hashes = hash_ids(seed, together, "keep")
    first_row = np.unique(together, return_index=True)[1]  # of each id, in order of id
    keys, new = offered.keys.copy(), ~np.isin(offered.ids, memory.ids)
    for label in np.unique(offered.labels[new]):
        rows = np.flatnonzero(offered.labels == label)
        leading = rows[first(first_row[rows], hashes[first_row[rows]])]
        keys[rows] = len(rows)
        keys[leading] = np.arange(len(leading))
    return _first_of_each_class(Memory.from_arrays(offered.to_arrays() | {"keys": keys}), capacity, seed)


herding = partial(_keep_in_order, herding_order)
coverage = partial(_keep_in_order, coverage_order)
typical = partial(_keep_in_order, typical_order)
