"""Streams of tasks: a data set's examples arrive a part at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accuacl.base.errors import InputError
from accuacl.experiments.data.arrival import look_up
from accuacl.experiments.data.dataset import Dataset


@dataclass(frozen=True, eq=False)
class Task:
    """Examples that arrive together, and those that test what was learned of them."""

    index: int
    classes: tuple[int, ...]  # whose task it is, as the data set's ids; its pool may hold examples of others too
    train: NDArray[np.int64]  # row numbers of dataset.train, ascending
    test: NDArray[np.int64]  # row numbers of dataset.test, ascending


class Stream:
    """Tasks in order of arrival: `for task in stream`. The model's id of a class is its position in `order`.

    No training row is in two tasks; a test row may be. `answers` are the labels that are given when one asks for them:
    those of the data set, or others where labels are noisy.

    >>> from accuacl.experiments.data import class_incremental, load
    >>> stream = class_incremental(load("digits"), tasks=5, order=[8, 3, 0, 1, 2, 4, 5, 6, 7, 9])
    >>> [task.classes for task in stream][:2]
    [(8, 3), (0, 1)]
    >>> stream.to_model([3, 8, 0]), stream.to_dataset([1, 0, 2])
    (array([1, 0, 2]), array([3, 8, 0]))
    """

    def __init__(self, dataset: Dataset, tasks: Sequence[Task], answers: NDArray[np.int64] | None = None) -> None:
        self.dataset, self.tasks = dataset, tuple(tasks)
        self.answers = dataset.train.labels if answers is None else answers
        self.order = tuple(dict.fromkeys(c for task in tasks for c in task.classes))
        self._model_ids = np.full(len(dataset.classes), -1, np.int64)
        self._model_ids[list(self.order)] = np.arange(len(self.order))
        for task in tasks:
            if not len(task.train) or not len(task.test):
                names = ", ".join(dataset.classes[c] for c in task.classes[:5]) + (", ..." * (len(task.classes) > 5))
                raise InputError(
                    f"task {task.index + 1} (classes {names}) has {len(task.train)} training and {len(task.test)} test "
                    "examples, and needs at least one of each; choose other classes, add examples, or give a larger "
                    "--imbalance or a smaller --recurring if you gave these."
                )

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[index]

    def to_model(self, labels: ArrayLike) -> NDArray[np.int64]:
        """The data set's class ids as the model's."""
        return look_up(self._model_ids, labels, f"the classes of this stream are {list(self.order)}")

    def to_dataset(self, ids: ArrayLike) -> NDArray[np.int64]:
        """The model's class ids as the data set's."""
        return look_up(np.array(self.order), ids, f"the model's classes are 0 to {len(self.order) - 1}")

    @property
    def tests_once(self) -> bool:
        """Whether no class is tested in several tasks."""
        tested = [np.unique(self.dataset.test.labels[task.test]) for task in self.tasks]
        return len(np.unique(np.concatenate(tested))) == sum(len(classes) for classes in tested)

    def pools(self) -> NDArray[np.int64]:
        """How many training examples of each class, in their order, each task has: (tasks, classes)."""
        labels = self.dataset.train.labels
        counts = [np.bincount(self.to_model(labels[task.train]), minlength=len(self.order)) for task in self.tasks]
        return np.stack(counts)

    def digest(self) -> str:
        """What the stream is known by: which rows each task has, and the answers to them."""
        known = hashlib.sha256()
        for task in self.tasks:
            for part in (task.train, self.answers[task.train], task.test):
                known.update(len(part).to_bytes(8, "little") + part.astype("<i8").tobytes())
        return known.hexdigest()
