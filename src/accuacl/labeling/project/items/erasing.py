"""Erase what a project has of items: their embeddings, vectors and texts. The user's own files are not touched."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

from accuacl.base.files import reading, replacing, write_bytes, write_text, writing
from accuacl.experiment import read_steps
from accuacl.labeling.project.items.suppressed import identities, suppress
from accuacl.labeling.project.items.tasks import ERASED, TaskInfo, Tasks

FORGOTTEN = "(forgotten)"  # the name of what was forgotten


def erase_finished(tasks: Tasks, journal: Path) -> None:
    """Erase the examples of all tasks that have ended, but for those that were held out."""
    for step in read_steps(journal, "evaluate"):
        assert step.task is not None
        task = tasks.all()[step.task]
        held = {item for label in read_steps(journal, "label", task=task.index) for item in label.result["held"]}
        rows = [row for row in range(task.count) if task.first + row not in held]
        _remove_uploaded(tasks, task, rows)
        if not set(rows) <= erased_rows(tasks, task):
            erase(tasks, task, rows)


def erased_rows(tasks: Tasks, task: TaskInfo) -> set[int]:
    """The rows of a task that have been erased to the end."""
    path = tasks.folder_of(task.index) / ERASED
    if not path.exists():
        return set()
    with reading(path):
        return set(json.loads(path.read_text())["rows"])


def forgotten_rows(tasks: Tasks, task: TaskInfo) -> set[int]:
    """The rows of a task that the project was asked to forget."""
    rows = erased_rows(tasks, task)
    return {row for row in rows if tasks.table(task.index)["name"][row] == FORGOTTEN} if rows else set()


def erase(tasks: Tasks, task: TaskInfo, rows: Collection[int], names: bool = False) -> None:
    """Put zeros and nothing in place of what there is of these rows of a task; `names`: of their names too.

    Done again after a kill it does the rest. The file that says so is written before, with what the list of items is
    going to be, and after.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _remove_uploaded(tasks, task, rows)  # while their names are there
    folder, before = tasks.folder_of(task.index), erased_rows(tasks, task)
    table, chosen = {name: list(column) for name, column in tasks.table(task.index).items()}, sorted(rows)
    nothings = {"text": "", "shown": "{}", "label": None} | ({"name": FORGOTTEN} if names else {})
    for column, nothing in nothings.items():
        for row in chosen if column in table else ():
            table[column][row] = nothing
    sink = io.BytesIO()
    pq.write_table(pa.table(table), sink)
    digest = hashlib.sha256(sink.getvalue()).hexdigest()
    write_text(folder / ERASED, json.dumps({"sha256": digest, "rows": sorted(before)}) + "\n")
    write_bytes(folder / "items.parquet", sink.getvalue())
    for path in (folder / "inputs.npy", folder / "vectors.npy"):
        if path.exists():
            with reading(path):
                array = np.load(path, allow_pickle=False)
            array[chosen] = 0
            with replacing(path) as file:
                np.save(file, array)
    write_text(folder / ERASED, json.dumps({"sha256": digest, "rows": sorted(before | set(chosen))}) + "\n")
    Tasks.table.cache_clear()


def forget_items(tasks: Tasks, task: TaskInfo, rows: Collection[int]) -> None:
    """Erase rows of a task with their names, and see to it that the same images and texts are not taken in again."""
    table = tasks.table(task.index)
    gone = forgotten_rows(tasks, task) if task.kind == "images" else erased_rows(tasks, task)
    there = [row for row in rows if row not in gone]
    if there and task.kind in ("images", "texts"):
        names, texts = ([table[name][row] for row in there] for name in ("name", "text" if "text" in table else "name"))
        suppress(tasks.folder, identities(task.kind, task.place, names, texts))
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
    """Delete what was sent to the project's own folder: images one by one, the file of others as a whole.

    The other rows of such a file are in the list of items, where they are needed.
    """
    place, uploads = Path(task.place), tasks.folder.parent.resolve() / "uploads"
    if not place.is_relative_to(uploads) or not place.exists():
        return
    names = tasks.table(task.index)["name"]
    files = [place / names[row] for row in rows] if task.kind == "images" else [place]
    for file in files:
        if file.resolve().is_relative_to(uploads) and file.is_file():
            with writing(file):
                file.unlink()
