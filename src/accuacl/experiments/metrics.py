"""Metrics of a run: from its accuracy matrix alone, and by class, from the recorded recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.experiments.journal import Step

Matrix = Sequence[Sequence[float | None]]
Evaluation = Mapping[str, Any]  # what the step `evaluate` records
Ids = NDArray[np.int64]
BINS = 15  # of confidence


def summary(matrix: Matrix) -> dict[str, float]:
    """The metrics of an accuracy matrix, by the names that result.json has.

    average_accuracy is A_T, the mean over all tasks after the last one; learning_accuracy is LA_T, the mean accuracy
    on each task just after it was learned. forgetting is F_T, how far accuracy on earlier tasks has fallen since then,
    on average, and forgetting_max since its best, whenever that was; both are 0 with a single task.

    >>> summary([[90, None, None], [95, 80, None], [60, 70, 50]])
    {'average_accuracy': 60.0, 'forgetting': 20.0, 'forgetting_max': 22.5, 'learning_accuracy': 73.33333333333333}
    """
    rows = [[float(x) for x in row if x is not None] for row in matrix]
    if not rows or [len(row) for row in rows] != list(range(1, len(rows) + 1)):
        raise InputError("row t of an accuracy matrix has t entries, the accuracies on tasks 1 to t after task t.")
    last, earlier = rows[-1], range(len(rows) - 1)
    learned = [row[-1] for row in rows]
    best = [max(row[j] for row in rows[j:]) for j in earlier]
    return {
        "average_accuracy": float(np.mean(last)),
        "forgetting": float(np.mean([learned[j] - last[j] for j in earlier])) if earlier else 0.0,
        "forgetting_max": float(np.mean([best[j] - last[j] for j in earlier])) if earlier else 0.0,
        "learning_accuracy": float(np.mean(learned)),
    }


def average_accuracy(matrix: Matrix) -> float:
    return summary(matrix)["average_accuracy"]


def forgetting(matrix: Matrix) -> float:
    return summary(matrix)["forgetting"]


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_]) -> float:
    """Expected calibration error in percent: how far confidence and accuracy are apart, over bins of confidence.

    >>> calibration_error(np.array([0.75, 0.75, 0.75, 0.75]), np.array([True, True, True, False]))
    0.0
    """
    if len(confidence) == 0:
        return 0.0
    which = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gap = 0.0
    for b in np.unique(which):
        inside = which == b
        gap += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return float(100 * gap)


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
