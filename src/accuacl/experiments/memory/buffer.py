"""The replay buffer as an immutable value, and how examples are offered to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import hash_ids

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

    def require(self, field: str, learner: str) -> None:
        """Refuse a memory that has examples without the field that this learner stores with each of them."""
        if len(self) and getattr(self, field) is None:
            raise InputError(f"the memory has no {field}; give {learner} a memory that {learner} has made.")

    def take(self, rows: NDArray[Any]) -> Memory:
        """These rows, in this order."""
        return Memory.from_arrays({name: array[rows] for name, array in self.to_arrays().items()})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are set, by name; `from_arrays` is the inverse."""
        return {name: getattr(self, name) for name in TYPES if getattr(self, name) is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Memory:
        given = {name: np.asarray(array, TYPES[name]) for name, array in arrays.items()}
        if len({len(array) for array in given.values()}) != 1 or not {"ids", "labels"} <= given.keys():
            shapes = {name: array.shape for name, array in given.items()}
            raise InputError(f"a memory was given {shapes}; give ids and labels, and one row of everything per id.")
        return cls(**given)


def offer(memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any) -> Memory:
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
        arrays["logits"] = _stacked(memory.logits, len(memory), logits, len(ids))
    order = np.lexsort((arrays["keys"], arrays["ids"]))  # stable: of equal keys the one in memory stays
    first = np.ones(len(order), bool)
    first[1:] = np.diff(arrays["ids"][order]) != 0
    return Memory.from_arrays({name: array[order[first]] for name, array in arrays.items()})


def by_key(memory: Memory) -> NDArray[np.intp]:
    """The rows of the memory from the smallest key to the largest."""
    assert memory.keys is not None
    return np.lexsort((memory.ids, memory.keys))


def _stacked(above: Any, n: int, below: Any, m: int) -> NDArray[np.float32]:
    """Both blocks in one array, as wide as the wider of them; NaN where a block has no value."""
    parts = [np.empty((rows, 0)) if part is None else np.asarray(part) for part, rows in ((above, n), (below, m))]
    stacked = np.full((n + m, max(part.shape[1] for part in parts)), np.nan, np.float32)
    stacked[:n, : parts[0].shape[1]], stacked[n:, : parts[1].shape[1]] = parts
    return stacked
