"""The contract of memory policies."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from accuacl.experiments.checks.contracts import Broken, CheckResult, check_all, global_randomness_watched, read_only
from accuacl.experiments.memory import POLICIES, Memory, check_kept

CLASSES, EXAMPLES = 3, 60
IDS = np.arange(100, 100 + EXAMPLES)
LABELS = IDS % CLASSES


def check_memory_policy(name: str) -> Iterator[CheckResult]:
    """Offer examples to a registered memory policy, and say for each part of its contract whether it is kept.

    >>> [result for result in check_memory_policy("herding") if result.fault]
    []
    """
    return check_all(Offered(name), CHECKS)


@dataclass(frozen=True)
class Offered:
    """A policy, to be offered examples of three classes."""

    name: str

    def __call__(self, memory: Memory, rows: slice, capacity: int, seed: int = 0, logits: Any = None) -> Memory:
        policy = POLICIES[self.name]
        ids = IDS[rows].copy()
        known = np.concatenate([memory.ids, ids]) - IDS[0]
        features = np.random.default_rng(1).normal(size=(EXAMPLES, 4))[known]
        more = {"predicted": LABELS[known]} if "predicted" in inspect.signature(policy).parameters else {}
        arrays = [*memory.to_arrays().values(), ids, features]
        with read_only(arrays, "what it is given"):
            kept = policy(memory, ids, LABELS[rows].copy(), features, capacity, seed, logits, **more)
        return check_kept(self.name, policy, kept, memory, ids, capacity)


def _capacity(offered: Offered) -> None:
    """It keeps at most as many examples as there is room for, of those that it is offered, each once."""
    for capacity in (0, 1, 2, 7, 12, EXAMPLES, 1000):
        first = offered(Memory.empty(), slice(0, 40), capacity)
        offered(first, slice(40, EXAMPLES), capacity)


def _fills(offered: Offered) -> None:
    """It fills the available room."""
    kept = offered(Memory.empty(), slice(0, EXAMPLES), 12)
    if len(kept) < 12:
        raise Broken(f"it keeps {len(kept)} of {EXAMPLES} examples where there is room for 12")


def _labels(offered: Offered) -> None:
    """It keeps examples with their own labels."""
    first = offered(Memory.empty(), slice(0, 40), 12)
    for kept in (first, offered(first, slice(40, EXAMPLES), 12)):
        if not np.array_equal(kept.labels, LABELS[kept.ids - IDS[0]]):
            raise Broken("labels and ids of what it keeps do not belong together; take both by the same rows")


def _logits(offered: Offered) -> None:
    """It keeps stored logits with their examples."""
    logits = np.stack([IDS, -IDS], axis=1).astype(np.float32)
    kept = offered(Memory.empty(), slice(0, EXAMPLES), 12, logits=logits)
    if len(kept) and (kept.logits is None or not np.array_equal(kept.logits[:, 0], kept.ids)):
        raise Broken("logits are lost or belong to other examples; take them by the same rows as ids and labels")


def _repeatable(offered: Offered) -> None:
    """It keeps the same for the same seed, and draws from no global generator."""
    with global_randomness_watched():
        first, again = (offered(Memory.empty(), slice(0, EXAMPLES), 12, seed=1) for _ in range(2))
    if not np.array_equal(first.ids, again.ids):
        raise Broken("called twice with the same seed, it keeps other examples; use np.random.default_rng(seed)")


CHECKS = (_capacity, _fills, _labels, _logits, _repeatable)
