"""Data of a project's kind, read from files: the same for new tasks, for predictions, and for items read again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from accuacl.base.progress import OnProgress, ignore
from accuacl.labeling.project.items.images import read_images
from accuacl.labeling.project.items.new_items import TASK, NewItems
from accuacl.labeling.project.items.table_files import read_table
from accuacl.labeling.project.items.tables import read_texts, read_vectors
from accuacl.labeling.project.items.tasks import Tasks


def read_like(
    tasks: Tasks,
    kind: str,
    path: Path,
    column: str,
    tell: OnProgress = ignore,
    task: str | None = None,
    label_column: str = "",
) -> NewItems:
    """What is at the path, with columns as those of the project's first task.

    task: the column that names tasks; label_column: the one of texts or vectors that has labels.
    """
    if kind == "images":
        return read_images(path, tell)
    if kind == "texts":
        return read_texts(path, column, task, label_column)
    if kind == "tables":
        options = tasks.schema().options
        return tasks.as_first(read_table(path, options if task is None else replace(options, task=task), True))
    columns = tasks.all()[0].columns
    feature = TASK in (columns or ())
    return tasks.as_first(read_vectors(path, "" if feature and task is None else task, label_column, columns))
