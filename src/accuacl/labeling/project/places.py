"""Where the data of a project lie: folders of images and files, which may be moved.

A place inside of the project's directory is kept relative to it, so that it moves with the directory. Where others have
gone is written to `tasks/places.json`, {number of the task: place}; the tasks themselves never change.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, reading, write_text

if TYPE_CHECKING:
    from accuacl.labeling.project.tasks import TaskInfo, Tasks

FILE = "places.json"


@dataclass(frozen=True)
class Moved:
    """A task whose data lie elsewhere now, and the images of it that are not there."""

    task: int
    place: str
    missing: list[str]


def to_write(place: str, directory: Path) -> str:
    """The place as a task keeps it."""
    inside = Path(place).resolve()
    root = directory.resolve()
    return str(inside.relative_to(root)) if inside.is_relative_to(root) else place


def find(place: str, directory: Path) -> str:
    """Where a place that a task has kept is now."""
    root = directory.resolve()
    if not os.path.isabs(place) and (root / place).exists():
        return str(root / place)
    _, uploads, inside = place.rpartition("/uploads/")  # earlier versions kept the whole path of what was uploaded
    if uploads and not Path(place).exists() and (root / "uploads" / inside).exists():
        return str(root / "uploads" / inside)
    return place


def moved_places(folder: Path) -> dict[int, str]:
    """Where data have gone, by task. folder: the project's `tasks`."""
    path = folder / FILE
    if not path.exists():
        return {}
    with reading(path):
        return {int(task): place for task, place in json.loads(path.read_text(encoding="utf-8")).items()}


def relocate_data(tasks: Tasks, old: Path, new: Path) -> list[Moved]:
    """Say that what was at `old`, or below, is at `new` now; the tasks that this moves. All of them or none."""
    before, after = old.resolve(), new.resolve()
    with Lock(tasks.folder / "lock", wait=True):
        moved = []
        for task in tasks.all():
            place = Path(task.place)
            if place == before or before in place.parents:
                moved.append(_moved(tasks, task, after / place.relative_to(before)))
        if not moved:
            places = ", ".join(dict.fromkeys(task.place for task in tasks.all())) or "no data"
            raise InputError(f"no data of this project lie at {before}; give one of its places: {places}.")
        all_moved = moved_places(tasks.folder) | {one.task: one.place for one in moved}
        write_text(tasks.folder / FILE, json.dumps(all_moved, ensure_ascii=False) + "\n")
    return moved


def _moved(tasks: Tasks, task: TaskInfo, place: Path) -> Moved:
    what, there = ("folder", place.is_dir()) if task.kind == "images" else ("file", place.is_file())
    if not there:
        raise InputError(f"there is no {what} {place} for the {task.kind} of task {task.index + 1}; give where it is.")
    if task.kind != "images":
        return Moved(task.index, str(place), [])
    names = tasks.table(task.index)["name"]
    missing = [name for name in names if not (place / name).is_file()]
    if len(missing) == len(names):
        raise InputError(
            f"{place} has none of the {len(names)} images of task {task.index + 1}, such as {names[0]}; give the "
            "folder that has them under the same names."
        )
    return Moved(task.index, str(place), missing)
