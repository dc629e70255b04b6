"""Data that come as several tasks: a folder or file for each, or a column that names the task of each row."""

from __future__ import annotations

from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.data import IMAGE_SUFFIXES, is_task, natural
from accuacl.labeling.project.items.new_items import NewItems


def parts_of(path: Path, images: bool) -> list[Path]:
    """The folders of images, or the files, `task-1`, `task-2`, ... in a folder, in order; else the path itself."""
    if not path.is_dir():
        return [path]
    inside = [part for part in path.iterdir() if not part.name.startswith(".")]
    parts = [part for part in inside if is_task(part) and part.is_dir() == images]
    if images and not all(part in parts or part.suffix.lower() not in IMAGE_SUFFIXES for part in inside):
        return [path]  # images beside the folders
    if images and any(part.is_dir() and part not in parts for part in inside):
        return [path]  # folders of another kind, such as a class each
    if not parts and not images:
        raise InputError(f"{path} is a folder without files called task-1, task-2, ...; give a file.")
    return sorted(parts, key=lambda part: natural(part.stem)) or [path]


def by_task(items: NewItems) -> list[NewItems]:
    """The items of each task, in the order of the tasks' names: numbers in them count as numbers."""
    if items.arrived is None:
        return [items]
    rows: dict[str, list[int]] = {}
    for row, task in enumerate(items.arrived):
        if task is None or not str(task).strip():
            raise InputError(f"{items.place}: the row {items.names[row]} names no task; give it one.")
        rows.setdefault(str(task).strip(), []).append(row)
    return [items.only(rows[task]) for task in sorted(rows, key=natural)]
