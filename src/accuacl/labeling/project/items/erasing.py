"""Erase what a project has of items: their embeddings, vectors and texts. The user's own files are not touched."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np

from accuacl.base.files import reading, replacing, write_bytes, write_text
from accuacl.experiment import read_steps
from accuacl.labeling.project.items.tasks import ERASED, TaskInfo, Tasks

FORGOTTEN = "(forgotten)"  # the name of what was forgotten


def erase_finished(tasks: Tasks, journal: Path) -> None:
    """Erase the examples of all tasks that have ended, but for those that were held out."""
    for step in read_steps(journal, "evaluate"):
        assert step.task is not None
        task = tasks.all()[step.task]
        held = {item for label in read_steps(journal, "label", task=task.index) for item in label.result["held"]}
        rows = [row for row in range(task.count) if task.first + row not in held]
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
