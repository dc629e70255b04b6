"""Replay buffers: immutable values, and pure functions that offer examples to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import hash_ids, numpy_generator

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

TYPES = {"ids": np.int64, "labels": np.int64, "keys": np.uint64, "scores": np.float64, "logits": np.float32}


@dataclass(frozen=True, eq=False)
class Memory:
    """What is kept of the past, one row per example, every id at most once.

    ids: rows of the dataset. labels: classes of the model. keys: the hashes by which a row was chosen. scores: GSS's
    similarity. logits: DER++'s, NaN in columns that the head did not have yet when a row was stored.
    """

    ids: Ids
    labels: Ids
    keys: NDArray[np.uint64] | None = None
    scores: Floats | None = None
    logits: NDArray[np.float32] | None = None

    @classmethod
    def empty(cls) -> Memory:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> Memory:
        """The rows asked for, in that order."""
        return Memory.from_arrays({name: array[rows] for name, array in self.to_arrays().items()})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are there, by name; `from_arrays` takes them back."""
        return {name: getattr(self, name) for name in TYPES if getattr(self, name) is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Memory:
        given = {name: np.asarray(array, TYPES[name]) for name, array in arrays.items()}
        if len({len(array) for array in given.values()}) != 1 or not {"ids", "labels"} <= given.keys():
            shapes = {name: array.shape for name, array in given.items()}
            raise InputError(f"a memory was given {shapes}; give ids and labels, and one row of everything per id.")
        return cls(**given)


def reservoir(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """A uniform sample of everything ever offered: the `capacity` smallest hashes of (seed, id), in order of id.

    The order of offers does not matter. An id offered again, perhaps under another seed, keeps its smaller hash (and
    the logits that came with that one), so that its share grows with the number of offers and it is kept only once.

    >>> ids = np.arange(100)
    >>> reservoir(Memory.empty(), ids, ids % 2, capacity=4, seed=0).ids
    array([29, 38, 51, 74])
    """
    offered = _offer(memory, ids, labels, capacity, seed, logits)
    return offered.take(np.sort(_smallest(offered)[:capacity]))


def class_balanced(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None) -> Memory:
    """The same number of every class, by the smallest hashes of (seed, id), in order of id.

    A class with fewer than its quota gives its room to the others. What does not divide goes to classes in an order
    drawn from the seed; so do all places if there are fewer of them than classes.

    >>> labels = np.array([0] * 2 + [1] * 50 + [2] * 50)
    >>> np.bincount(class_balanced(Memory.empty(), np.arange(102), labels, capacity=12, seed=0).labels)
    array([2, 5, 5])
    """
    offered = _offer(memory, ids, labels, capacity, seed, logits)
    classes, inverse, counts = np.unique(offered.labels, return_inverse=True, return_counts=True)
    room = quotas(counts, capacity, hash_ids(seed, classes, "keep"))
    by_class = _smallest(offered)
    by_class = by_class[np.argsort(inverse[by_class], kind="stable")]
    rank = np.arange(len(offered)) - np.repeat(np.cumsum(counts) - counts, counts)
    return offered.take(np.sort(by_class[rank < np.repeat(room, counts)]))


def quotas(counts: Ids, capacity: int, order: NDArray[Any]) -> Ids:
    """How many of each class to keep: all alike as far as they go, the odd places to the smallest in `order`.

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
    """GSS while there is room: as many of the examples as fit, with their scores; none that is inside already."""
    new = np.flatnonzero(~np.isin(ids, memory.ids))[: max(0, capacity - len(memory))]
    inside = memory.scores if memory.scores is not None else np.empty(0)
    return Memory(
        np.concatenate([memory.ids, ids[new]]),
        np.concatenate([memory.labels, labels[new]]),
        scores=np.concatenate([inside, scores[new]]),
    )


def replace_scored(memory: Memory, ids: Ids, labels: Ids, scores: Floats, weights: Floats, seed: int) -> Memory:
    """GSS when full: each example draws a slot of its own by `weights`, and takes it with the odds of their scores.

    The odds are (score + 1) / 2 of the one inside, the more alike the likelier it goes, against that of the new one.
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


def _offer(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any) -> Memory:
    """The memory and the new examples together, each id once, under its smallest key."""
    if capacity < 0:
        raise InputError(f"the memory's capacity is {capacity}; give 0 or more.")
    if len(ids) != len(labels):
        raise InputError(f"{len(ids)} ids came with {len(labels)} labels; give one label per id.")
    keys = memory.keys if memory.keys is not None else hash_ids(seed, memory.ids, "keep")
    arrays = {
        "ids": np.concatenate([memory.ids, ids]),
        "labels": np.concatenate([memory.labels, labels]),
        "keys": np.concatenate([keys, hash_ids(seed, np.asarray(ids, np.int64), "keep")]),
    }
    if memory.logits is not None or logits is not None:
        arrays["logits"] = _stack(memory.logits, len(memory), logits, len(ids))
    order = np.lexsort((arrays["keys"], arrays["ids"]))  # stable: of two alike the one inside stays
    first = np.ones(len(order), bool)
    first[1:] = np.diff(arrays["ids"][order]) != 0
    return Memory.from_arrays({name: array[order[first]] for name, array in arrays.items()})


def _stack(above: Any, n: int, below: Any, m: int) -> NDArray[np.float32]:
    """Both blocks in one array, as wide as the wider; NaN where nothing was given."""
    parts = [np.empty((rows, 0)) if part is None else np.asarray(part) for part, rows in ((above, n), (below, m))]
    stacked = np.full((n + m, max(part.shape[1] for part in parts)), np.nan, np.float32)
    stacked[:n, : parts[0].shape[1]], stacked[n:, : parts[1].shape[1]] = parts
    return stacked


def _smallest(memory: Memory) -> NDArray[np.intp]:
    assert memory.keys is not None
    return np.lexsort((memory.ids, memory.keys))
