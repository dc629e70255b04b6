"""What every strategy is asked and what every strategy answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Features, check_alike

Progress = Callable[[int, int], None]  # (done, total), in units of the strategy's own


@dataclass(frozen=True)
class Query:
    """Which `budget` examples of `pool` should be labelled, given what is known?

    `labelled`: those labelled earlier in this task. `memory`: the replay buffer. `past`: how many examples all
    finished tasks had. `chunk` is the number of rows dealt with at a time (0: the strategy's own choice); the answer
    does not depend on it.
    """

    pool: Features
    budget: int
    labelled: Features | None = None
    memory: Features | None = None
    past: int | None = None
    seed: int = 0
    chunk: int = 0
    progress: Progress | None = None
    _done: list[int] = field(default_factory=lambda: [0], repr=False)

    def __post_init__(self) -> None:
        for name in ("pool", "labelled", "memory"):
            value = getattr(self, name)
            if not isinstance(value, Features) and (value is not None or name == "pool"):
                raise ValueError(f"{name} is a {type(value).__name__}; give Features(embeddings, probabilities).")
        for name in ("budget", "seed", "chunk", "past"):
            value = getattr(self, name)
            if value is None and name == "past":
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise ValueError(f"{name} is {value!r}; give a whole number of at least 0.")
        check_alike(self.pool, labelled=self.labelled, memory=self.memory)

    @property
    def count(self) -> int:
        """How many will be picked."""
        return min(self.budget, len(self.pool))

    def tick(self, done: int, total: int) -> None:
        """Report `done` more of `total`."""
        if self.progress:
            self._done[0] += done
            self.progress(min(self._done[0], total), total)


@dataclass(frozen=True)
class Selection:
    """The picked rows of the pool in selection order, and for each the scores that explain it."""

    indices: NDArray[np.int64]
    scores: dict[str, NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.indices)
