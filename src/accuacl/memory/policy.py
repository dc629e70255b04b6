"""What memory policies take and give."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from accuacl.memory.buffer import Ids, Memory


class Policy(Protocol):
    """Chooses what to keep of a memory and of the examples offered to it, at most `capacity`."""

    def __call__(
        self, memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None
    ) -> Memory: ...


class FeaturePolicy(Protocol):
    """The same with the model's features, first of the examples in the memory, then of those offered."""

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
