"""Examples whose gradients point in many directions: GSS's memory. The learner computes their scores."""

from __future__ import annotations

import numpy as np

from accuacl.base.randomness import numpy_generator
from accuacl.memory.buffer import Floats, Ids, Memory


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
