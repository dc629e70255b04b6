"""Labels that are there before anybody is asked: in a column of the data, or in a file of labels.

A file's labels are kept in `given.json` in the folder of their task, so that those of a task that has not begun wait
for it. Both kinds join the task's open round, or its last one, and cost none of its budget.
"""

from __future__ import annotations

import json

from accuacl.base.files import Lock, reading, write_text
from accuacl.base.names import counted
from accuacl.labeling.project.items.tasks import Tasks
from accuacl.labeling.store import GivenLabel, Store, living

FILE = "given.json"
WITH_DATA = "given with the data"  # the person who such labels are by

Labels = dict[int, tuple[str, str]]  # by item: its class, and who gave it


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


def given_labels(tasks: Tasks, task: int) -> Labels:
    """All labels that the items of a task were given; those of a file count more than those of the data."""
    info = tasks.all()[task]
    column = tasks.table(task).get("label", [])
    with_data = {info.first + row: (name, WITH_DATA) for row, name in enumerate(column) if name is not None}
    return with_data | from_files(tasks, task)


def waiting(store: Store, tasks: Tasks) -> Labels:
    """The labels that were given for tasks that have not begun, which will be taken when these do."""
    labels: Labels = {}
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


def from_files(tasks: Tasks, task: int) -> Labels:
    """The labels of a task that came in files."""
    path = tasks.folder_of(task) / FILE
    if not path.exists():
        return {}
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
    return {int(item): (label, who) for item, (label, who) in content.items()}


def keep(tasks: Tasks, labels: Labels) -> None:
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
