"""The state of a project: what it waits for, how many labels it may still ask for, what it has learned and chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from accuacl.base.errors import counted
from accuacl.experiments import Step, read_steps
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.tasks import TaskInfo
from accuacl.labeling.store import Status, Store

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

Waiting = Literal["labels", "training", "data"]


@dataclass(frozen=True)
class ProjectState:
    """What a project waits for, and how much of the budget is used.

    The budget is the current task's, or with --budget-total the whole project's.
    """

    waiting: Waiting
    task: int  # the index of the current task; -1 before there is one
    round: int
    rounds: int  # how many rounds the task has; 0: as many as its share of --budget-total allows
    tasks: int
    used: int  # how many labels of the budget are used; skips do not count
    budget: int
    status: Status | None
    text: str  # the state as a sentence for people

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
        return max(0, self.budget - self.used)

    @property
    def round_name(self) -> str:
        return _round_name(self.round, self.rounds)


def _round_name(round: int, rounds: int) -> str:
    return f"round {round + 1} of {rounds}" if rounds else f"round {round + 1}"


def state_of(project: Project) -> ProjectState:
    """Return the state of a project, from its settings, tasks, label store and journal."""
    settings, tasks, store, status = project.settings, project.tasks.all(), project.store, project.store.status()
    task, round = (status.task, status.round) if status else (0 if tasks else -1, 0)
    used, budget, rounds = *budget_of(settings, tasks, store, task), settings.rounds_of(task)

    def state(waiting: Waiting, text: str) -> ProjectState:
        return ProjectState(waiting, task, round, rounds, len(tasks), used, budget, status, text)

    if status and status.open:
        left = f"{status.left} of {status.total} to be labelled"
        if not project.chosen(task, round):
            return state("training", f"task {task + 1}: {left}; the rest of the round is still to be chosen.")
        if store.complete(task, round, settings.close_at):
            return state("training", f"task {task + 1}, round {round + 1} is complete; ready to train.")
        if not status.left:
            left = f"{counted(status.opinions, 'second opinion')} to be given"
        return state("labels", f"task {task + 1}, {_round_name(round, rounds)}: {left}.")
    if not tasks:
        return state("data", "there is nothing to label yet.")
    if len(tasks) > task + 1 or not project.finished(task):
        return state("training", f"task {task + 1}: ready to train and to choose.")
    if settings.budget_total and used >= budget:
        return state("data", f"everything is learned, and the budget of {budget} labels is used.")
    return state("data", "everything is labelled and learned; add data for the next task.")


def budget_of(settings: ProjectSettings, tasks: Sequence[TaskInfo], store: Store, task: int) -> tuple[int, int]:
    """Return the labels used and the budget: the whole project's under --budget-total, else those of the task."""
    if settings.budget_total:
        return store.used_in_all(), settings.budget_total
    return store.used(task), min(settings.per_round * settings.rounds_of(task), tasks[task].count) if tasks else 0


# --budget-total: a number of labels that is never exceeded, shared evenly by the tasks


def round_limit(settings: ProjectSettings, store: Store, tasks: int, task: int, round: int, coming: int = 0) -> int:
    """Return how many labels a round of a task may have under --budget-total, including those that it already has.

    tasks: how many tasks there are so far. coming: how many labels an earlier round of the task is still to get.
    """
    left = max(0, settings.budget_total - store.used_elsewhere(task, round) - coming)
    used_here = store.used(task) + coming if round else 0
    share = _share(settings, used_here + left, tasks, task)
    return max(0, min(settings.per_round, left, share - used_here))


def describe_budget(settings: ProjectSettings, store: Store, tasks: int) -> list[str]:
    """Return sentences on the use of --budget-total and the present task's share; [] without such a budget."""
    total = settings.budget_total
    if not total:
        return []
    status, used = store.status(), store.used_in_all()
    if used >= total:
        return [f"The whole budget of {total} labels is used."]
    sentences = [f"{used} of {total} labels are used, {total - used} are left."]
    if status is not None:
        used_here = store.used(status.task)
        share = _share(settings, used_here + total - used, tasks, status.task)
        sentences.append(f"The share of task {status.task + 1} is {share} labels, of which {used_here} are used.")
    return sentences


def _share(settings: ProjectSettings, labels: int, tasks: int, task: int) -> int:
    """Return how many of `labels` a task gets if it shares them evenly with the tasks after it.

    labels: those that the task has used, and those that are left.
    """
    expected = settings.budget_tasks - task - 1 if settings.budget_tasks else 1
    later = max(tasks - task - 1, expected)
    return -(-labels // (1 + later))


# What the project has learned and chosen


def describe_sample(journal: Path) -> str:
    """Return a sentence on the sample that the latest round was chosen from; "" if it saw the whole pool."""
    for step in reversed(read_steps(journal, "query")):
        if "sample" in step.result:
            seen, whole = step.result["sample"], step.result["pool"]
            return f"{_where(step)}: chosen from {seen} of the {whole} items left, drawn at random (--sample)."
        if step.result["ids"]:
            break
    return ""


def _where(step: Step) -> str:
    """Return the task and round of a step as a phrase."""
    return f"task {(step.task or 0) + 1}, round {(step.round or 0) + 1}"


class LearningLog:
    """What the project has learned and chosen since this object was made."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._before = {_key(step) for step in read_steps(journal, "train", "query")}

    def learned(self) -> list[str]:
        """Return a sentence for each round that was learned."""
        answers = {(step.task, step.round): step.result for step in read_steps(self._journal, "label")}
        sentences = []
        for step in self._new("train"):
            answer = answers[step.task, step.round]
            labelled = {item for item, _ in answer["labels"]}
            held = labelled & set(answer["held"])
            count = len(labelled - held) + len(answer.get("late", ()))
            more = f"; {len(held)} more are held out to test it" if held else ""
            sentences.append(f"{_where(step)}: learned from {counted(count, 'label')}{more}")
        return sentences

    def chosen(self, task: int, round: int) -> int:
        """Return how many items have been chosen for a round since then; 0 if they were chosen before."""
        return sum(len(step.result["ids"]) for step in self._new("query") if (step.task, step.round) == (task, round))

    def _new(self, kind: str) -> list[Step]:
        return [step for step in read_steps(self._journal, kind) if _key(step) not in self._before]


def _key(step: Step) -> tuple[object, ...]:
    # The time is part of the key, because a round may be learned again after `forget`.
    return step.kind, step.task, step.round, step.finished
