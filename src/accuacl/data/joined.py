"""A folder with a data set for each task: `task-1/`, `task-2/`, ... or `task-1.npz`, `task-2.csv`, ..."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.data.arrival import natural
from accuacl.data.dataset import Dataset, Split
from accuacl.data.table import table_suffix

NAME = re.compile(r"task(-.+|[_ ]?\d+.*)", re.IGNORECASE)


def is_task(path: Path) -> bool:
    """Whether a file or folder is called task-1, Task 2, task_3.csv, ..."""
    return NAME.fullmatch(path.stem) is not None


def task_parts(folder: Path) -> list[Path]:
    """The folders, .npz files or tables of the tasks, in order: by the numbers in their names, else by name."""
    named = [part for part in folder.iterdir() if is_task(part)] if folder.is_dir() else []
    parts = [part for part in named if part.is_dir() or part.suffix == ".npz" or table_suffix(part)]
    return sorted(parts, key=lambda part: natural(task_name(part)))


def task_name(path: Path) -> str:
    """What a task is called after its file or folder.

    >>> task_name(Path("task-1.csv.xz")), task_name(Path("Task 2"))
    ('task-1', 'Task 2')
    """
    return path.name[: -len(suffix)] if (suffix := table_suffix(path)) else path.stem


class Joined:
    """Several arrays of images as one, read from each as rows are asked for; it has what is used of an array."""

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self.parts = parts
        self.ends = np.cumsum([len(part) for part in parts])
        self.shape, self.dtype = (int(self.ends[-1]), *parts[0].shape[1:]), parts[0].dtype
        self.ndim = len(self.shape)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, key: Any) -> NDArray[Any]:
        rows = np.arange(len(self))[key]
        flat = np.atleast_1d(rows)
        which = np.searchsorted(self.ends, flat, side="right")
        read = np.empty((len(flat), *self.shape[1:]), self.dtype)
        for i in np.unique(which):
            first = self.ends[i] - len(self.parts[i])
            read[which == i] = self.parts[i][flat[which == i] - first]
        return cast(NDArray[Any], read if np.ndim(rows) else read[0])


def join(name: str, parts: Sequence[tuple[str, Dataset]]) -> Dataset:
    """The tasks' data sets as one; its column `task` says which each row is of. Classes are the same by their names."""
    shapes = {task: data.train.inputs.shape[1:] for task, data in parts}
    first, shape = next(iter(shapes.items()))
    for task, other in shapes.items():
        if other != shape:
            raise InputError(
                f"{name}: inputs of {first} have the shape {shape}, those of {task} {other}; make them alike, images "
                "with --image-size."
            )
    classes = tuple(sorted({c for _, data in parts for c in data.classes}, key=natural))
    ids = {c: i for i, c in enumerate(classes)}
    train = _joined([(task, data.train, data.classes) for task, data in parts], ids)
    return Dataset(name, train, _joined([(task, data.test, data.classes) for task, data in parts], ids), classes)


def _joined(parts: Sequence[tuple[str, Split, tuple[str, ...]]], ids: dict[str, int]) -> Split:
    inputs = [split.inputs for _, split, _ in parts]
    labels = [np.array([ids[c] for c in classes], np.int64)[split.labels] for _, split, classes in parts]
    tasks = np.concatenate([np.full(len(split), task) for task, split, _ in parts])
    together = cast(NDArray[Any], Joined(inputs)) if inputs[0].ndim == 4 else np.concatenate(inputs)
    columns = {"task": tasks}
    if all("domain" in split.columns for _, split, _ in parts):
        columns["domain"] = np.concatenate([split.columns["domain"] for _, split, _ in parts])
    return Split(together, np.concatenate(labels), columns)
