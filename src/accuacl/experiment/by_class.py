"""What a run is judged by where classes are not alike: by class, and by how soon each class is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.experiment.reader import Step

Evaluation = Mapping[str, Any]  # what the step `evaluate` records
Ids = NDArray[np.int64]


def example_accuracy(accuracy: Sequence[float], tested: Sequence[int]) -> float:
    """The share of all test examples that are right, in percent: tasks count by how many examples they have.

    >>> example_accuracy([90.0, 60.0], [100, 300])
    67.5
    """
    return float(np.dot(accuracy, tested) / np.sum(tested))


def class_accuracy(recall: Mapping[str, float]) -> float:
    """The mean over classes of the share that is right, in percent: a rare class counts as much as a common one.

    >>> class_accuracy({"fraud": 20.0, "fine": 100.0})
    60.0
    """
    return float(np.mean(list(recall.values())))


def forgetting_by_class(evaluations: Sequence[Evaluation]) -> dict[str, float]:
    """By how much the recall of each class has fallen since its task was learned, in points.

    Of a class that several tasks test it is the mean over these tasks, the last one left out. Classes of the last task
    alone have had no time to be forgotten, and are not there.

    >>> forgetting_by_class([{"recall": {"a": 90.0}}, {"recall": {"a": 60.0, "b": 80.0}}])
    {'a': 30.0}
    """
    falls: dict[str, list[float]] = {}
    last = recall_by_task(evaluations, len(evaluations) - 1)
    for task in range(len(evaluations) - 1):
        learned = recall_by_task(evaluations, task)[task]
        for name, recall in learned.items():
            falls.setdefault(name, []).append(recall - last[task][name])
    return {name: float(np.mean(values)) for name, values in falls.items()}


def recall_by_task(evaluations: Sequence[Evaluation], at: int) -> list[dict[str, float]]:
    """The recall of each class in the tests of each task so far, after task `at`.

    Where no class is in several tasks it is not recorded: a class belongs to the first task that knows it.
    """
    recorded: list[dict[str, float]] | None = evaluations[at].get("recall_by_task")
    if recorded is not None:
        return recorded
    known: set[str] = set()
    tasks = []
    for evaluation in evaluations[: at + 1]:
        tasks.append({name: evaluations[at]["recall"][name] for name in evaluation["recall"] if name not in known})
        known |= set(evaluation["recall"])
    return tasks


def labels_by_class(labelled: Sequence[Step], truth: Ids, classes: int) -> list[list[Ids]]:
    """How many labelled examples of each class there are after each round of each task, whatever their labels say."""
    tasks: list[list[Ids]] = []
    counts = np.zeros(classes, np.int64)
    for step in labelled:
        rows = np.array([row for row, _ in step.result["labels"]], np.int64)
        counts = counts + np.bincount(truth[rows], minlength=classes)
        if step.round == 0:
            tasks.append([])
        tasks[-1].append(counts)
    return tasks


def found(labels: Sequence[Sequence[Ids]], pools: NDArray[np.int64]) -> list[list[float]]:
    """The share of the classes that have arrived with at least one label, in percent, after each round of each task.

    >>> found([[np.array([3, 0, 0])], [np.array([3, 1, 0])]], np.array([[5, 5, 0], [0, 2, 2]]))[0]
    [50.0]
    """
    shares = []
    for task, rounds in enumerate(labels):
        arrived = pools[: task + 1].sum(axis=0) > 0
        shares.append([100 * float((counts[arrived] > 0).mean()) for counts in rounds])
    return shares


def rarest(labels: Sequence[Sequence[Ids]], pools: NDArray[np.int64]) -> int:
    """The class with the fewest examples in all pools; of several the one with the fewest labels, then the first.

    >>> rarest([[np.array([4, 2, 1])]], np.array([[9, 3, 3]]))
    2
    """
    examples = pools.sum(axis=0)
    present = np.flatnonzero(examples)
    return int(min(present, key=lambda c: (examples[c], labels[-1][-1][c], c)))
