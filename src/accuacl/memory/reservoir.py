"""A uniform sample of everything ever offered."""

from __future__ import annotations

from typing import Any

import numpy as np

from accuacl.memory.buffer import Ids, Memory
from accuacl.memory.offer import by_key, offer


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
