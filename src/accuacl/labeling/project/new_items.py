"""New data: the items of a task before it is added to a project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, counted
from accuacl.experiments.data import IMAGE_SUFFIXES, check_column, is_task, natural

TASK = "task"  # the column that names the task of each row if no other is given
SHOWN = 20  # the most columns of numbers that a description names


@dataclass(frozen=True)
class TableOptions:
    """The roles of a table's columns.

    `id` names the rows ("": the column `id` if there is one); `label` is never an input and never shown; those ignored
    are left out. `task` names the task of each row ("": none, None: the column `task` if there is one).
    """

    id: str = ""
    label: str = ""
    ignored: tuple[str, ...] = ()
    task: str | None = None


DEFAULT_OPTIONS = TableOptions()  # used if nobody says what the columns are for


@dataclass(frozen=True, eq=False)
class NewItems:
    """Items of one kind, with unique names. bad: the files or rows that were left out, and why.

    shown: the fields that people see of vectors and table rows. labels: the values of the label column. arrived: the
    task of each item, if a column names it.
    """

    kind: str
    place: str  # the folder or file that the items come from
    names: list[str]
    texts: list[str] | None = None
    vectors: NDArray[np.float32] | None = None
    shown: list[dict[str, Any]] | None = None
    columns: list[str] | None = None  # the columns of numbers that make up a vector; None: a column of lists has it
    bad: dict[str, str] = field(default_factory=dict)
    table: TableOptions | None = None
    labels: list[str | None] | None = None
    arrived: list[Any] | None = None
    lists: str = ""  # the column of lists that has the vectors

    def only(self, rows: list[int]) -> NewItems:
        """Return the items in these rows."""
        lists = {name: getattr(self, name) for name in ("names", "texts", "shown", "labels", "arrived")}
        left: dict[str, Any] = {name: values and [values[row] for row in rows] for name, values in lists.items()}
        return replace(self, vectors=None if self.vectors is None else self.vectors[rows], **left)

    def describe_columns(self) -> str:
        """Return in a few words which columns the vectors are made of."""
        if self.columns is None:
            width = 0 if self.vectors is None else self.vectors.shape[1]
            return f"the column {self.lists}, with {counted(width, 'number')} a row"
        more = f" and {len(self.columns) - SHOWN} more" if len(self.columns) > SHOWN else ""
        return f"{counted(len(self.columns), 'column')} of numbers: {', '.join(self.columns[:SHOWN])}{more}"

    def none_to_label(self) -> str:
        """Return the error message for data without an item, or without one that could be read."""
        if self.bad:
            bad = counted(len(self.bad), "file")
            return f"{self.place} has nothing to label, since {bad} could not be read; repair or replace them."
        if self.kind == "files":
            return f"{self.place} has no files; give a folder that has some, in it or below."
        endings = ", ".join(IMAGE_SUFFIXES)
        return f"{self.place} has no images; give a folder with files that end in {endings}, in it or below."

    def like(self, columns: list[str] | None, width: int) -> NewItems:
        """Return the vectors with their numbers in the order of the first task's columns, which are matched by name."""
        assert self.vectors is not None
        ours, entries = self.columns, self.vectors.shape[1]
        if (columns is None) != (ours is None):
            has = f"the columns {', '.join(ours)}" if ours else f"the lists in `{self.lists}`"
            first = f"the columns {', '.join(columns)}" if columns else "lists in one column"
            raise InputError(f"{self.place} has {has}, the first task {first}; give vectors of one kind.")
        if columns is None or ours is None:
            if entries == width:
                return self
            has = f"{self.place} has vectors of {entries} entries, the first task of {width}"
            raise InputError(f"{has}; give vectors of one kind.")
        if missing := [name for name in columns if name not in ours]:
            names = ", ".join(missing)
            raise InputError(f"{self.place} has no column of numbers {names}, as the first task has; add it.")
        order = [ours.index(name) for name in columns]
        return replace(self, vectors=self.vectors[:, order], columns=list(columns))


def task_column(path: Path, names: Sequence[str], given: str | None) -> str | None:
    """Return the column that names the task of each row; None if there is none.

    given: the column that was asked for; "" asks for none, None for `task` if the table has it.
    """
    check_column(path, given or "", names)
    return (TASK if TASK in names else None) if given is None else given or None


def check_exists(path: Path, what: str) -> None:
    if not path.exists():
        raise InputError(f"{path} does not exist; give {what}.")


def task_paths(path: Path, images: bool) -> list[Path]:
    """The folders of images, or the files, `task-1`, `task-2`, ... in a folder, in order; else the path itself."""
    if not path.is_dir():
        return [path]
    inside = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    tasks = [entry for entry in inside if is_task(entry) and entry.is_dir() == images]
    if images and not all(entry in tasks or entry.suffix.lower() not in IMAGE_SUFFIXES for entry in inside):
        return [path]  # there are images beside the folders, so the whole is one task
    if images and any(entry.is_dir() and entry not in tasks for entry in inside):
        return [path]  # the folders have other names, such as those of classes, so the whole is one task
    if not tasks and not images:
        raise InputError(f"{path} is a folder without files called task-1, task-2, ...; give a file.")
    return sorted(tasks, key=lambda entry: natural(entry.stem)) or [path]


def split_by_task(items: NewItems) -> list[NewItems]:
    """Split items by task, in the order of the tasks' names, in which 10 comes after 9."""
    if items.arrived is None:
        return [items]
    rows: dict[str, list[int]] = {}
    for row, task in enumerate(items.arrived):
        if task is None or not str(task).strip():
            raise InputError(f"{items.place}: the row {items.names[row]} names no task; give it one.")
        rows.setdefault(str(task).strip(), []).append(row)
    return [items.only(rows[task]) for task in sorted(rows, key=natural)]
