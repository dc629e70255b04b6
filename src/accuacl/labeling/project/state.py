"""What a project is waiting for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from accuacl.labeling.project.items.tasks import TaskInfo
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.store import Status, Store

Waiting = Literal["labels", "training", "data"]


@dataclass(frozen=True)
class ProjectState:
    """What a project is waiting for, and how much of the present task's budget is used."""

    waiting: Waiting
    task: int  # from 0; -1 before there is one
    round: int
    rounds: int
    tasks: int
    used: int  # labels of this task so far; skips do not count
    budget: int
    status: Status | None
    text: str  # the same as a sentence

    @property
    def ready(self) -> bool:
        """Whether `advance` has something to do."""
        return self.waiting == "training"

    @property
    def finished(self) -> bool:
        """Whether all data so far are labelled and learned."""
        return self.waiting == "data"

    @property
    def left(self) -> int:
        return self.budget - self.used


def state_of(
    settings: ProjectSettings,
    tasks: Sequence[TaskInfo],
    store: Store,
    chosen: Callable[[int, int], bool],
    finished: Callable[[int], bool],
) -> ProjectState:
    """What a project is waiting for. `chosen`: all picks of a round are there; `finished`: a task is learned."""
    status = store.status()
    task, round = (status.task, status.round) if status else (0 if tasks else -1, 0)
    waiting: Waiting
    if status and status.open and not chosen(task, round):
        waiting = "training"
        left = f"{status.left} of the first {status.total} to be labelled"
        if not status.left:
            left = f"the first {status.total} are labelled"
        text = f"task {task + 1}: {left}; the rest of the round is still to be chosen."
    elif status and status.open and not store.complete(task, round, settings.close_at):
        waiting = "labels"
        left = f"{status.left} of {status.total} to be labelled"
        if not status.left:
            left = f"{status.opinions} second opinions to be given"
        text = f"task {task + 1}, round {round + 1} of {settings.rounds}: {left}."
    elif status and status.open:
        waiting, text = "training", f"task {task + 1}, round {round + 1} is complete; ready to train."
    elif not tasks:
        waiting, text = "data", "there is nothing to label yet."
    elif len(tasks) > task + 1 or not finished(task):
        waiting, text = "training", f"task {task + 1}: ready to train and to choose."
    else:
        waiting, text = "data", "everything is labelled and learned; add data for the next task."
    budget = min(settings.per_round * settings.rounds, tasks[task].count) if tasks else 0
    used = store.used(task)
    return ProjectState(waiting, task, round, settings.rounds, len(tasks), used, budget, status, text)
