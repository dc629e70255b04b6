"""Items that are erased, forgotten or unreadable.

Erasing removes what the project has of items: their embeddings, vectors and texts. It leaves the user's own files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accuacl.base.files import read_json, replacing, write_bytes, write_text, writing
from accuacl.experiments import read_steps
from accuacl.labeling.project.images import why_unusable
from accuacl.labeling.project.tasks import (
    ERASED,
    FOLDERS,
    TaskInfo,
    Tasks,
    identities,
    never_add_again,
    parquet_of,
)

FORGET_PLAN = "forgetting.json"  # a file in the project's directory that lists what still has to be forgotten
FORGOTTEN = "(forgotten)"  # the name of an item that was forgotten
PARTS = "rows"  # a folder in a task's folder with the inputs made so far, until all are made


def erase_finished(tasks: Tasks, journal: Path) -> None:
    """Erase the examples of all finished tasks, except those that were held out."""
    for step in read_steps(journal, "evaluate"):
        assert step.task is not None
        task = tasks.all()[step.task]
        held = {item for label in read_steps(journal, "label", task=task.index) for item in label.result["held"]}
        rows = [row for row in range(task.count) if task.first + row not in held]
        _remove_uploaded(tasks, task, rows)
        if not set(rows) <= erased_rows(tasks, task):
            erase(tasks, task, rows)


def erased_rows(tasks: Tasks, task: TaskInfo) -> set[int]:
    """Return the rows of a task that are completely erased."""
    erased = read_json(tasks.folder_of(task.index) / ERASED)
    return set(erased["rows"]) if erased else set()


def forgotten_rows(tasks: Tasks, task: TaskInfo) -> set[int]:
    """Return the rows of a task that the project was asked to forget."""
    rows = erased_rows(tasks, task)
    return {row for row in rows if tasks.table(task.index)["name"][row] == FORGOTTEN} if rows else set()


def erase(tasks: Tasks, task: TaskInfo, rows: Collection[int], names: bool = False) -> None:
    """Replace the arrays of these rows of a task by zeros and their texts by nothing; `names`: replace names too.

    `erased.json` is written first, with the hash that the list of items will have, and once more at the end. If the
    process is killed in between, a second call does the rest.
    """
    _remove_uploaded(tasks, task, rows)  # first, because the names that it needs may be erased below
    folder, before = tasks.folder_of(task.index), erased_rows(tasks, task)
    table, chosen = {name: list(column) for name, column in tasks.table(task.index).items()}, sorted(rows)
    nothings = {"text": "", "shown": "{}", "label": None} | ({"name": FORGOTTEN} if names else {})
    for column, nothing in nothings.items():
        for row in chosen if column in table else ():
            table[column][row] = nothing
    data = parquet_of(table)
    digest = hashlib.sha256(data).hexdigest()
    write_text(folder / ERASED, json.dumps({"sha256": digest, "rows": sorted(before)}) + "\n")
    write_bytes(folder / "items.parquet", data)
    for name in ("inputs.npy", "vectors.npy"):
        if (folder / name).exists():
            array = np.array(tasks.array(task.index, name))
            array[chosen] = 0
            with replacing(folder / name) as file:
                np.save(file, array)
    remove_parts(folder)
    write_text(folder / ERASED, json.dumps({"sha256": digest, "rows": sorted(before | set(chosen))}) + "\n")
    Tasks._read_table.cache_clear()


def remove_parts(folder: Path) -> None:
    """Remove a task's unfinished inputs; those that are still needed are computed again."""
    for name in (PARTS, "parts"):  # the latter, and the file, are of projects that 0.2.0 began
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "first.safetensors").unlink(missing_ok=True)


def forget_items(tasks: Tasks, task: TaskInfo, rows: Collection[int]) -> None:
    """Erase rows of a task with their names, and record their hashes so that they are not added again."""
    table = tasks.table(task.index)
    gone = forgotten_rows(tasks, task) if task.kind in FOLDERS else erased_rows(tasks, task)
    there = [row for row in rows if row not in gone]
    if there and task.kind in (*FOLDERS, "texts"):
        names, texts = ([table[name][row] for row in there] for name in ("name", "text" if "text" in table else "name"))
        never_add_again(tasks.folder, identities(task.kind, task.place, names, texts))
    erase(tasks, task, rows, names=True)
    if task.kind == "tables" and task.index == 0:
        _forget_values(tasks, task)


def _forget_values(tasks: Tasks, task: TaskInfo) -> None:
    """Remove categories that no row of the first task has any more from `table.json`.

    Where only statistics are kept, nobody knows which those are.
    """
    gone = forgotten_rows(tasks, task)
    if erased_rows(tasks, task) <= gone:
        rows = tasks.rows(0, slice(None))
        tasks.schema().without_values([row for i, row in enumerate(rows) if i not in gone]).save(tasks.folder_of(0))
        Tasks.schema.cache_clear()


def _remove_uploaded(tasks: Tasks, task: TaskInfo, rows: Collection[int]) -> None:
    """Delete uploaded files of these rows: images one by one, and tables as a whole.

    The other rows of a table are not lost, because the list of items has them too.
    """
    place, uploads = Path(task.place), tasks.folder.parent.resolve() / "uploads"
    if not place.is_relative_to(uploads) or not place.exists():
        return
    names = tasks.table(task.index)["name"]
    files = [place / names[row] for row in rows] if task.kind in FOLDERS else [place]
    for file in files:
        if file.resolve().is_relative_to(uploads) and file.is_file():
            with writing(file):
                file.unlink()


def usable_items(tasks: Tasks, task: TaskInfo) -> NDArray[np.int64]:
    """Return the items of a task that people can be asked for: those that can be read and have not been erased."""
    return np.delete(task.ids, sorted(erased_rows(tasks, task).union(_unreadable_rows(tasks, task))))


def unreadable_images(tasks: Tasks, task: TaskInfo) -> list[str]:
    """Return the names of images that cannot be read. People are never asked about them."""
    if task.kind not in FOLDERS:
        return []
    names, gone = tasks.table(task.index)["name"], erased_rows(tasks, task)
    return [names[row] for row in _unreadable_rows(tasks, task) if row not in gone]


def _unreadable_rows(tasks: Tasks, task: TaskInfo) -> list[int]:
    """Return the rows without inputs, including erased ones; none before the inputs are made."""
    made = tasks.inputs(task.index)
    return made["bad"] if made else []


def why_unreadable(task: TaskInfo, name: str) -> str:
    """Return in a few words why an image or file cannot be read."""
    if task.kind == "files":
        return "your model could not read it"
    return why_unusable(Path(task.place), name) or "could not be read when it was embedded, and can be now"
