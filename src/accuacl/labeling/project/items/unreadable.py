"""Images of a task that were found to be broken only when they were embedded."""

from __future__ import annotations

import json
from pathlib import Path

from accuacl.base.files import reading
from accuacl.labeling.project.items.erasing import erased_rows
from accuacl.labeling.project.items.images import trouble
from accuacl.labeling.project.items.tasks import TaskInfo, Tasks


def unreadable_images(tasks: Tasks, task: TaskInfo) -> list[str]:
    """Their names. They are never asked for, and nothing is learned from them."""
    made = tasks.folder_of(task.index) / "inputs.json"
    if task.kind != "images" or not made.exists():
        return []
    with reading(made):
        rows = json.loads(made.read_text())["bad"]
    names, gone = tasks.table(task.index)["name"], erased_rows(tasks, task)
    return [names[row] for row in rows if row not in gone]


def why_unreadable(task: TaskInfo, name: str) -> str:
    """Why such an image cannot be read, in a few words."""
    return trouble(Path(task.place), name) or "could not be read when it was embedded, and can be now"
