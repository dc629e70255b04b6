"""Algorithm 1 of the paper: tasks arrive, rounds of queries and training, then the memory is updated.

Every step goes through the journal, so that the same code starts a run, resumes one that was killed, and waits for
people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Protocol, TypeVar

from accuacl.experiments.checkpoints import tidy
from accuacl.experiments.data import Task
from accuacl.experiments.journal import Journal
from accuacl.experiments.state import Handle, LoopState

K = TypeVar("K", bound=LoopState)


class Steps(Protocol[K]):
    """The steps of Algorithm 1. Results are JSON, and depend on nothing but what is known and the settings."""

    @property
    def tasks(self) -> Sequence[Task]:
        """The tasks that have arrived."""

    @property
    def test_every_round(self) -> bool:
        """Whether to evaluate after every round, not only after every task."""

    def begin(self, task: Task, before: K | None) -> K:
        """What is known when a task begins; before: at the end of the last one."""

    def query(self, known: K) -> dict[str, Any]:
        """Which examples shall be labelled: their `ids`; `over` if the task has no such round."""

    def label(self, known: K, picked: dict[str, Any]) -> dict[str, Any]:
        """Their labels; raises `LabelsPending` while some are missing."""

    def with_labels(self, known: K, answer: dict[str, Any]) -> K:
        """What is known with these labels. Not a step: it is done again by a run that is resumed."""

    def needs_training(self, known: K) -> bool:
        """Whether the weights of this round will be looked at."""

    def train(self, known: K) -> Handle:
        """Train from `known.start` on all labels of the task; the weights."""

    def memory(self, known: K) -> dict[str, Any]:
        """Update the memory with the task; what it holds, and its `file`."""

    def evaluate(self, known: K) -> dict[str, Any]:
        """The `accuracy` on each task so far, and more."""


def all_tasks(steps: Steps[K], journal: Journal) -> tuple[list[list[float | None]], dict[str, Any], Handle | None]:
    """Algorithm 1; the accuracy matrix, the last evaluation and the last weights."""
    once = journal.once
    known: K | None = None
    matrix: list[list[float | None]] = []
    row: dict[str, Any] = {}
    for task in steps.tasks:
        known = steps.begin(task, known)
        for r in range(known.rounds) if known.rounds else count():
            now, at = replace(known, round=r), {"task": task.index, "round": r}
            picked = once("query", steps.query, now, **at)
            if "over" in picked:
                break
            known = now.with_asked(picked["ids"])
            answer = once("label", steps.label, known, picked, **at)
            known = steps.with_labels(known, answer)
            if not len(known.ids) or not steps.needs_training(known):
                continue
            done = journal.has("train", **at)
            known = replace(known, weights=once("train", steps.train, known, **at))
            if not done:
                tidy(journal.weights, known)
            if steps.test_every_round:
                once("test", steps.evaluate, known, **at)
        known = replace(known, memory=once("memory", steps.memory, known, task=task.index)["file"])
        row = once("evaluate", steps.evaluate, known, task=task.index)
        matrix.append(row["accuracy"] + [None] * (len(steps.tasks) - len(row["accuracy"])))
    if known is not None:
        tidy(journal.weights, known)
    return matrix, row, known.weights if known is not None else None
