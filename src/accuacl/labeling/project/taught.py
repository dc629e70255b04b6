"""What people have taught a project so far, as the loop passes it from step to step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import counted
from accuacl.base.files import Lock, reading, write_text
from accuacl.base.randomness import held_out_rank
from accuacl.experiments import Ids, LoopState, Step, read_steps
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.store import GivenLabel, Pick, Store, living

Labels = dict[int, int]  # item: its class, as last corrected


@dataclass(frozen=True, eq=False)
class KnownFromPeople(LoopState):
    """What a project knows besides: labels change when people correct them, and some are held out."""

    taught: Labels = field(default_factory=dict)  # all items that are trained on, of this task and the ones before
    held: tuple[Labels, ...] = ()  # the held-out items of each task
    merged: Labels = field(default_factory=dict)  # classes that count as others; where only sums are kept
    answered: int = 0  # how many items of this task people have labelled, held-out ones too
    ended: bool = False  # whether a lead had ended the task when the round was closed, so that only the last trains


def with_answer(known: KnownFromPeople, answer: dict[str, Any]) -> KnownFromPeople:
    """What is known with the answer of a round: all but its held-out items are trained on, as they were corrected."""
    corrected, held_out_now = dict(answer["corrected"]), set(answer["held"])
    taught, *held = (
        {item: corrected.get(item, label) for item, label in labels.items()} for labels in (known.taught, *known.held)
    )
    late = dict(answer.get("late", ()))
    new = late | {item: label for item, label in answer["labels"] if item not in held_out_now}
    held[-1] |= {item: label for item, label in answer["labels"] if item in held_out_now}
    taught |= new
    ids = np.append(known.ids, np.array(list(new), np.int64))
    return replace(
        known,
        ids=ids,
        labels=labels_of(ids, taught),
        seen=np.unique(np.array(list(taught.values()), np.int64)),
        taught=taught,
        held=tuple(held),
        merged=dict(answer.get("merged", ())),
        answered=known.answered + len(answer["labels"]) + len(late) - len(answer.get("given", ())),
        ended=answer.get("ended", False),
    )


def taught_by(answers: Iterable[Step]) -> Labels:
    """The items that are trained on after these answers of people, with the labels that they have then."""
    taught: Labels = {}
    for step in answers:
        new, held = dict(step.result["labels"]) | dict(step.result.get("late", ())), set(step.result["held"])
        corrected = {item: label for item, label in step.result["corrected"] if item in taught}
        taught |= corrected | {item: label for item, label in new.items() if item not in held}
    return taught


def labels_of(ids: Ids, taught: Labels) -> Ids:
    return np.array([taught[item] for item in ids.tolist()], np.int64)


def held_out(ids: list[int], share: float, seed: int) -> list[int]:
    """The share of a uniform round that is held out: those with the smallest hashes of (seed, id), at most all but one.

    >>> held_out([4, 5, 6, 7], 0.5, seed=0) == held_out([7, 6, 5, 4], 0.5, seed=0)
    True
    """
    return sorted(sorted(ids, key=lambda item: held_out_rank(seed, item))[: held_out_count(share, len(ids))])


def held_out_count(share: float, count: int) -> int:
    """How many of so many items are held out: one at least is trained on."""
    return max(0, min(round(share * count), count - 1))


FILE = "given.json"
WITH_DATA = "given with the data"  # the person who such labels are by

GivenLabels = dict[int, tuple[str, str]]  # by item: its class, and who gave it


def take_given(store: Store, tasks: Tasks, task: int) -> int:
    """Take the labels of a task that has a round into the store; how many are new."""
    labels = to_give(store, tasks, task)
    return store.give(task, labels) if labels else 0


def to_give(store: Store, tasks: Tasks, task: int) -> list[GivenLabel]:
    """The labels of a task as the store takes them. Classes and people that are new are added."""
    labels = given_labels(tasks, task)
    classes = {c.name: c.id for c in living(store.classes())}
    for name in dict.fromkeys(label for label, _ in labels.values()):
        if name not in classes:
            classes[name] = store.add_class(name).id
    people = {name: store.person_named(name) for name in dict.fromkeys(who for _, who in labels.values())}
    return [GivenLabel(item, classes[label], people[who]) for item, (label, who) in labels.items()]


def given_labels(tasks: Tasks, task: int) -> GivenLabels:
    """All labels that the items of a task were given; those of a file count more than those of the data."""
    info = tasks.all()[task]
    column = tasks.table(task).get("label", [])
    with_data = {info.first + row: (name, WITH_DATA) for row, name in enumerate(column) if name is not None}
    return with_data | from_files(tasks, task)


def waiting(store: Store, tasks: Tasks) -> GivenLabels:
    """The labels that were given for tasks that have not begun, which will be taken when these do."""
    labels: GivenLabels = {}
    for task in tasks.all():
        if not store.rounds(task.index):
            labels |= given_labels(tasks, task.index)
    return labels


def given_text(store: Store, tasks: Tasks, task: int) -> list[str]:
    """How many labels were there before anybody was asked: those of a task that count, and those that wait."""
    sentences = []
    labels = store.labels() if task >= 0 else {}
    if free := sum(item in labels for item in (store.unasked(task) if labels else [])):
        more = counted(free, "more label")
        sentences.append(f"task {task + 1} has {more}, given before anybody was asked, which cost none of the budget.")
    if wait := len(waiting(store, tasks)):
        more = counted(wait, "label")
        sentences.append(f"{more} given for tasks that have not begun will be taken when these begin.")
    return sentences


def from_files(tasks: Tasks, task: int) -> GivenLabels:
    """The labels of a task that came in files."""
    path = tasks.folder_of(task) / FILE
    if not path.exists():
        return {}
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
    return {int(item): (label, who) for item, (label, who) in content.items()}


def keep(tasks: Tasks, labels: GivenLabels) -> None:
    """Write labels down, task by task; those that are there for the same items are replaced."""
    with Lock(tasks.folder / "lock", wait=True):
        for task in tasks.all():
            own = {item: label for item, label in labels.items() if item in task.ids}
            if own:
                together = from_files(tasks, task.index) | own
                write_text(tasks.folder_of(task.index) / FILE, json.dumps(together, ensure_ascii=False) + "\n")


def drop(tasks: Tasks, items: set[int]) -> None:
    """Remove the labels of items from the files."""
    for task in tasks.all():
        labels = from_files(tasks, task.index)
        left = {item: label for item, label in labels.items() if item not in items}
        if left != labels:
            write_text(tasks.folder_of(task.index) / FILE, json.dumps(left, ensure_ascii=False) + "\n")


def picks_of(picked: dict[str, Any]) -> list[Pick]:
    """The result of a query as the store takes it."""
    picks = []
    for rank, item in enumerate(picked["ids"]):
        scores = {name: float(values[rank]) for name, values in picked["scores"].items() if values[rank] is not None}
        guess, confidence = (picked[name][rank] if picked["guess"] else None for name in ("guess", "confidence"))
        picks.append(Pick(item, rank, scores, guess, confidence))
    return picks


def late_labels(journal: Path, now: Labels, kept: Set[int], known: Set[int]) -> list[list[int]]:
    """Labels given only after their round was closed without them; what is held out is never trained on.

    kept: the items that can still be learned from. Where only sums are kept, nothing is left of earlier tasks' items.
    """
    late = {item: label for item, label in now.items() if item not in known and item in kept}
    if late:
        for step in read_steps(journal, "label"):
            late = {item: label for item, label in late.items() if item not in set(step.result["held"])}
    return [[item, label] for item, label in late.items()]
