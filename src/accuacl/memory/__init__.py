"""Replay buffers: an immutable value, and policies, pure functions of the examples offered to it.

A policy is a small file here. One that chooses by what it is offered alone has the signature of `reservoir` and a line
in POLICIES; one that also looks at the features of all examples has that of `herding` and a line in FEATURE_POLICIES;
GSS's two functions need the gradients' scores.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from accuacl.memory.buffer import Ids, Memory
from accuacl.memory.class_balanced import class_balanced
from accuacl.memory.coverage import coverage
from accuacl.memory.gradient_diverse import append_scored, replace_scored
from accuacl.memory.herding import herding
from accuacl.memory.reservoir import reservoir

__all__ = [
    "FEATURE_POLICIES",
    "POLICIES",
    "FeaturePolicy",
    "Memory",
    "Policy",
    "append_scored",
    "class_balanced",
    "coverage",
    "herding",
    "replace_scored",
    "reservoir",
]


class Policy(Protocol):
    """What to keep of a memory and of the examples that are offered to it, `capacity` at most."""

    def __call__(
        self, memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None
    ) -> Memory: ...


class FeaturePolicy(Protocol):
    """The same, by how a model sees the examples. features: of those in the memory, then of those offered."""

    def __call__(
        self,
        memory: Memory,
        ids: Ids,
        labels: Ids,
        features: NDArray[Any],
        capacity: int,
        seed: int,
        logits: Any = None,
    ) -> Memory: ...


POLICIES: dict[str, Policy] = {"reservoir": reservoir, "class-balanced": class_balanced}
FEATURE_POLICIES: dict[str, FeaturePolicy] = {"herding": herding, "coverage": coverage}
