"""Examples offered to a memory: each gets a key, a hash of (seed, id), and those with the smallest keys are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import hash_ids
from accuacl.memory.buffer import Ids, Memory


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
