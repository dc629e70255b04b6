"""Algorithm 1 of the paper: tasks arrive, rounds of queries and training, then the memory is updated.

Every step goes through the journal, so that the same code starts a run, resumes one that was killed, and waits for
people. Every step gets one immutable value with all that is known at that moment.

This module does not import torch, so that people who wait for their first items need not wait for torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl import strategies
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import numpy_generator
from accuacl.experiments.config import Config
from accuacl.experiments.data import Task
from accuacl.experiments.journal import Journal, weight_files
from accuacl.experiments.strategy_options import options_for, uses
from accuacl.features import Features

S = TypeVar("S", bound="LoopState")
Ids = NDArray[np.int64]
Handle = dict[str, Any]  # of a file in weights/: its name and SHA-256; loaded only by a step that needs it
POOL, QUERY, TEST = 1, 2, 3  # what random numbers are drawn for


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


def remove_old(folder: Path, state: LoopState) -> None:
    """Delete the weights and memories that no later step can need: all but the last task's and the last round's.

    A task without training has no weights of its own, but may have a memory.
    """
    keep = {state.memory["file"]} if state.memory else set()
    for handle in (state.start, state.weights):
        if handle:
            name = handle["file"].removesuffix(".safetensors")
            keep |= {f"{name}.safetensors", f"{name}-memory.safetensors"}
    for path in weight_files(folder):
        if path.name not in keep:
            path.unlink()


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
    seen_before: Ids = field(default_factory=no_ids)  # those when the task began
    earlier: Ids = field(default_factory=no_ids)  # the pools of all finished tasks
    memory: Handle | None = None  # as the last finished task left it
    start: Handle | None = None  # the weights at the end of the last task, which every round trains from
    weights: Handle | None = None  # the weights of the last training

    @property
    def left(self) -> Ids:
        """The ids that can still be asked for, ascending."""
        return np.sort(self.pool[~np.isin(self.pool, self.asked)])  # np.setdiff1d takes 25 times as long

    @property
    def last_round(self) -> bool:
        """Whether this may be the task's last round."""
        return not self.rounds or self.round == self.rounds - 1

    def with_asked(self, ids: list[int]) -> Self:
        return replace(self, asked=np.append(self.asked, np.array(ids, np.int64)))

    def carried_over(self) -> dict[str, Any]:
        """The fields with which the next task begins."""
        seen = {"seen": self.seen, "seen_before": self.seen}
        weights = {"start": self.weights, "weights": self.weights}
        return seen | weights | {"earlier": np.concatenate([self.earlier, self.pool]), "memory": self.memory}

    def progress(
        self, tasks: int, what: str, stage: str, epochs: tuple[int, int] = (0, 1), step: float | None = None
    ) -> Progress:
        """How far a run of this many tasks is.

        A round costs as much as it has labels: round r of R begins at r (r + 1) / (R (R + 1)).
        """
        r, rounds = self.round, self.rounds or self.round + 1
        within = (r * (r + 1) / 2 + (r + 1) * epochs[0] / epochs[1]) / (rounds * (rounds + 1) / 2)
        of = f"/{rounds}" if self.rounds else ""
        text = f"task {self.task.index + 1}/{tasks} round {r + 1}{of} {what}"
        return Progress(self.task.index + within, tasks, text, stage, epochs, step)


def choose(
    config: Config,
    state: LoopState,
    strategy: str,
    budget: int,
    features: Callable[[Ids], Features] | None = None,
    memory: Ids | None = None,
    total_classes: int = 1,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """What a strategy picks: `ids` and `scores`, as the journal has them; and the sizes of a sample and its pool.

    features: of examples by id, which uniform does not need. memory: ids. total_classes: as many as there will ever be.
    on_progress: called once a second with the progress of the choice.
    """
    seed = int(numpy_generator(config.seed, state.task.index, state.round, QUERY).integers(2**62))
    if strategy == "uniform":
        rows = np.ones((len(state.left), 1), np.float32)
        picked = strategies.select(strategy, pool=Features(rows, rows), budget=budget, seed=seed)
        return _as_result(state.left, picked)
    assert features is not None
    memory = no_ids() if memory is None else memory
    options = options_for(config.model_dump(), strategy)
    if state.task.index + 1 < config.lam_from and uses(strategy, "lam"):
        options.pop("lam", None)
    if "total_classes" in strategies.options_of(strategy):
        options["total_classes"] = total_classes
    left = state.left
    looked_at, labelled = _sample(left, config, strategy, min(budget, len(left))), features(state.ids)
    picked = strategies.select(
        strategy,
        pool=features(looked_at),
        labelled=labelled,
        classes=_columns(state) if len(state.seen) == labelled.K else None,
        memory=features(state.earlier if strategy == "accuacl-full" else memory),
        budget=budget,
        past=len(state.earlier),
        seed=seed if strategy in strategies.BUILT_IN else seed % 2**32,  # NumPy's older generators take no larger one
        progress=_every_second(on_progress) if on_progress else None,
        **options,
    )
    result = _as_result(looked_at, picked)
    if len(looked_at) == len(left):
        return result
    if "gain" in result["scores"]:  # an estimate for the pool
        result["scores"]["gain"] = [value * (len(left) / len(looked_at)) for value in result["scores"]["gain"]]
    return result | {"sample": len(looked_at), "pool": len(left)}


def _columns(state: LoopState) -> Ids | None:
    """The columns of the labels in probabilities over the seen classes; None if there is a label of another class."""
    order = np.argsort(state.seen, kind="stable")
    position = np.searchsorted(state.seen[order], state.labels)
    inside = position < len(order)
    columns = order[np.where(inside, position, 0)] if len(order) else position
    return columns if inside.all() and (state.seen[columns] == state.labels).all() else None


def _sample(left: Ids, config: Config, strategy: str, count: int) -> Ids:
    """What the strategy looks at: a part of a large pool, if the run has a sample and the strategy can work on one."""
    if not config.sample or len(left) <= config.sample or not strategies.takes_sample(strategy):
        return left
    size = strategies.sample_size(config.sample, count, len(left))  # refuses one that is too small
    return np.sort(strategies.in_sample_order(left, config.seed)[:size])


def _every_second(on_progress: OnProgress) -> OnProgress:
    last = monotonic()

    def report(progress: Progress) -> None:
        nonlocal last
        if monotonic() - last >= 1:
            last = monotonic()
            on_progress(progress)

    return report


def _as_result(ids: Ids, picked: strategies.Selection) -> dict[str, Any]:
    scores = {name: values.tolist() for name, values in picked.scores.items()}
    return {"ids": ids[picked.indices].tolist(), "scores": scores}
