"""Algorithm 1 of the paper: tasks arrive, rounds of queries and training, then the memory is updated.

Every step goes through the journal, so that the same code starts a run, resumes one that was killed, and waits for
people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, TypeVar

from accuacl.experiments.checkpoints import remove_old
from accuacl.experiments.data import Task
from accuacl.experiments.journal import Journal
from accuacl.experiments.state import Handle, LoopState

S = TypeVar("S", bound=LoopState)


class Steps(Protocol[S]):
    """The steps of Algorithm 1. Results are JSON, and depend on nothing but the state and the settings."""

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks that have arrived."""

    @property
    def test_every_round(self) -> bool:
        """Whether to evaluate after every round, not only after every task."""

    def begin(self, task: Task, before: S | None, /) -> S:
        """The state in which a task begins; before: that at the end of the last one."""

    def query(self, state: S, /) -> dict[str, Any]:
        """Which examples to label: their `ids`; `over` if the task has no such round."""

    def label(self, state: S, picked: dict[str, Any], /) -> dict[str, Any]:
        """Their labels; raises `LabelsPending` while some are missing."""

    def with_labels(self, state: S, answer: dict[str, Any], /) -> S:
        """The state with these labels. Not a step: a run that is resumed does it again."""

    def needs_training(self, state: S, /) -> bool:
        """Whether anything will use the weights of this round."""

    def train(self, state: S, /) -> Handle:
        """Train from `state.start` on all labels of the task; the weights."""

    def memory(self, state: S, /) -> dict[str, Any]:
        """Update the memory with the task; what it holds, and its `file`."""

    def evaluate(self, state: S, /) -> dict[str, Any]:
        """The `accuracy` on each task so far, and more."""


def all_tasks(steps: Steps[S], journal: Journal) -> tuple[list[list[float | None]], dict[str, Any], Handle | None]:
    """Algorithm 1; the accuracy matrix, the last evaluation and the last weights."""
    once = journal.once
    state: S | None = None
    matrix: list[list[float | None]] = []
    row: dict[str, Any] = {}
    for task in steps.tasks:
        state = steps.begin(task, state)
        for r in range(state.rounds) if state.rounds else count():
            now, at = replace(state, round=r), {"task": task.index, "round": r}
            picked = once("query", steps.query, now, **at)
            if "over" in picked:
                break
            state = now.with_asked(picked["ids"])
            answer = once("label", steps.label, state, picked, **at)
            state = steps.with_labels(state, answer)
            if not len(state.ids) or not steps.needs_training(state):
                continue
            done = journal.has("train", **at)
            state = replace(state, weights=once("train", steps.train, state, **at))
            if not done:
                remove_old(journal.weights, state)
            if steps.test_every_round:
                once("test", steps.evaluate, state, **at)
        state = replace(state, memory=once("memory", steps.memory, state, task=task.index)["file"])
        row = once("evaluate", steps.evaluate, state, task=task.index)
        matrix.append(row["accuracy"] + [None] * (len(steps.tasks) - len(row["accuracy"])))
    if state is not None:
        remove_old(journal.weights, state)
    return matrix, row, state.weights if state is not None else None
