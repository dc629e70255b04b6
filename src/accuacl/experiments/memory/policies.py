"""A uniform sample of everything ever offered."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import hash_ids, numpy_generator
from accuacl.experiments.memory.buffer import Floats, Ids, Memory, by_key, offer


def reservoir(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """A uniform sample of everything ever offered: the `capacity` smallest hashes of (seed, id), in order of id.

    The order of offers does not matter. An id offered again, perhaps under another seed, keeps its smaller hash, with
    the logits that came with it: the chance to be kept grows with the number of offers, but an id is kept only once.

    >>> ids = np.arange(100)
    >>> reservoir(Memory.empty(), ids, ids % 2, capacity=4, seed=0).ids
    array([29, 38, 51, 74])
    """
    offered = offer(memory, ids, labels, capacity, seed, logits)
    return offered.take(np.sort(by_key(offered)[:capacity]))


def class_balanced(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """The same number of examples of every class: those with the smallest hashes of (seed, id), in order of id.

    A class with fewer examples than its quota leaves its room to the others. Places that do not divide evenly go to
    classes in an order drawn from the seed, as do all places if there are fewer than classes.

    >>> labels = np.array([0] * 2 + [1] * 50 + [2] * 50)
    >>> np.bincount(class_balanced(Memory.empty(), np.arange(102), labels, capacity=12, seed=0).labels)
    array([2, 5, 5])
    """
    return first_of_each_class(offer(memory, ids, labels, capacity, seed, logits), capacity, seed)


def first_of_each_class(memory: Memory, capacity: int, seed: int) -> Memory:
    """The examples of every class with the smallest keys, as many as its quota, in order of id."""
    classes, inverse, counts = np.unique(memory.labels, return_inverse=True, return_counts=True)
    room = quotas(counts, capacity, hash_ids(seed, classes, "keep"))
    rows = by_key(memory)
    by_class = rows[np.argsort(inverse[rows], kind="stable")]
    rank = np.arange(len(memory)) - np.repeat(np.cumsum(counts) - counts, counts)
    return memory.take(np.sort(by_class[rank < np.repeat(room, counts)]))


def quotas(counts: Ids, capacity: int, order: NDArray[Any]) -> Ids:
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
