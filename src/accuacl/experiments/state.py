"""What is known at one moment of Algorithm 1: one immutable value that every step is given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Progress
from accuacl.experiments.data import Task

Ids = NDArray[np.int64]
Handle = dict[str, Any]  # of a file in weights/: its name and SHA-256; loaded only by a step that needs it
POOL, QUERY, TEST = 1, 2, 3  # what random numbers are drawn for


def no_ids() -> Ids:
    return np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class LoopState:
    """`ids` with their `labels` are what the model is trained on; `asked` may hold more, such as skipped ones."""

    task: Task
    rounds: int  # of this task; 0: as many as the step `query` wants
    pool: Ids  # the task's examples, labelled or not
    round: int = 0
    asked: Ids = field(default_factory=no_ids)
    ids: Ids = field(default_factory=no_ids)
    labels: Ids = field(default_factory=no_ids)  # as the model numbers classes
    seen: Ids = field(default_factory=no_ids)  # classes with a label, in this task or before
    earlier: Ids = field(default_factory=no_ids)  # the pools of all finished tasks
    memory: Handle | None = None  # as the last finished task left it
    start: Handle | None = None  # the weights at the end of the last task, which every round trains from
    weights: Handle | None = None  # the weights of the last training

    @property
    def left(self) -> Ids:
        """What can still be asked for."""
        return np.setdiff1d(self.pool, self.asked)

    @property
    def last_round(self) -> bool:
        """Whether this may be the task's last round."""
        return not self.rounds or self.round == self.rounds - 1

    def with_asked(self, ids: list[int]) -> Self:
        return replace(self, asked=np.append(self.asked, np.array(ids, np.int64)))

    def carried_over(self) -> dict[str, Any]:
        """The fields with which the next task begins."""
        earlier = np.concatenate([self.earlier, self.pool])
        weights = self.weights
        return {"seen": self.seen, "earlier": earlier, "memory": self.memory, "start": weights, "weights": weights}

    def progress(
        self, tasks: int, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> Progress:
        """How far a run of so many tasks is.

        A round costs as much as it has labels: round r of R begins at r (r + 1) / (R (R + 1)).
        """
        r, rounds = self.round, self.rounds or self.round + 1
        within = (r * (r + 1) / 2 + (r + 1) * epochs[0] / epochs[1]) / (rounds * (rounds + 1) / 2)
        of = f"/{rounds}" if self.rounds else ""
        text = f"task {self.task.index + 1}/{tasks} round {r + 1}{of} {what}"
        return Progress(self.task.index + within, tasks, text, stage, epochs, step)
