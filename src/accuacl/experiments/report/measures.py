"""What is measured of runs: metrics by name, along tasks, rounds and labels, their means, and which mean is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from accuacl.experiments import Row, metrics


@dataclass(frozen=True)
class Metric:
    """A metric's short and full name, whether larger is better (None: neither), and the decimals that are shown."""

    short: str
    name: str
    larger: bool | None
    digits: int = 1

    @property
    def head(self) -> str:
        """The short name with an arrow to the better side."""
        return self.short + {True: " ↑", False: " ↓", None: ""}[self.larger]


METRICS = {
    "average_accuracy": Metric("A", "average accuracy (%)", True),
    "forgetting": Metric("F", "forgetting (points)", False),
    "learning_accuracy": Metric("LA", "learning accuracy (%)", True),
    "forgetting_max": Metric("F max", "forgetting from each task's best (points)", False),
    "class_accuracy": Metric("class A", "mean recall of the classes (%)", True),
    "example_accuracy": Metric("example A", "accuracy over all test examples (%)", True),
    "class_forgetting": Metric("class F", "mean forgetting of the classes (points)", False),
    "found_mean": Metric("found", "classes with a label, mean over all rounds (%)", True),
    "rarest_end": Metric("rarest", "labels of the rarest class at the end", None),
    "calibration_error": Metric("ECE", "calibration error (points)", False),
    "picked_least": Metric("rarest class", "labels of a task's rarest class, of an even share", None, 2),
    "picked_most": Metric("commonest class", "labels of a task's commonest class, of an even share", None, 2),
    "seconds_query": Metric("query s", "seconds for all queries", None),
    "seconds_cpu": Metric("CPU s", "CPU seconds of the run", None),
}
MAIN_METRICS = ("average_accuracy", "forgetting")  # the metrics by which the paper compares strategies


def value_of(row: Row, metric: str) -> float | None:
    """Return the metric of a run; None where it was not measured."""
    if metric in ("picked_least", "picked_most"):
        extreme = min if metric == "picked_least" else max
        shares = [extreme(counts) * len(counts) / sum(counts) for counts in row.get("picked") or [] if sum(counts)]
        return float(np.mean(shares)) if shares else None
    if metric == "found_mean":
        shares = [share for task in row.get("found") or [] for share in task]
        return float(np.mean(shares)) if shares else None
    if metric == "rarest_end":
        return float(row["rarest_labels"][-1][-1]) if row.get("rarest_labels") else None
    value = row.get(metric)
    return None if value is None else float(value)


def after_tasks(row: Row, metric: str) -> list[float]:
    """Return the metric after each task, from the accuracy matrix; forgetting begins with the second task.

    >>> after_tasks({"accuracy_matrix": [[90, None], [60, 80]]}, "forgetting")
    [30.0]
    """
    matrix = row.get("accuracy_matrix") or []
    so_far = [[line[: t + 1] for line in matrix[: t + 1]] for t in range(len(matrix))]
    if metric == "forgetting":
        return [metrics.forgetting(part) for part in so_far[1:]]
    return [metrics.average_accuracy(part) for part in so_far]


def labels_spent(row: Row) -> list[int]:
    """Return how many labels there were after each round of all tasks; a round adds fewer once its pool is used up.

    >>> row = {"labels": 10, "rounds": 2, "found": [[50.0, 100.0], [80.0, 80.0]], "picked": [[7, 3], [4, 2]]}
    >>> labels_spent(row)
    [5, 10, 15, 16]
    """
    labels, rounds = int(row["labels"]), int(row["rounds"])
    spent, before = [], 0
    for task, done in enumerate(row["found"]):
        total = sum(row["picked"][task])
        spent += [before + min(labels * (r + 1) // rounds, total) for r in range(len(done))]
        before += total
    return spent


def over_rounds(row: Row, metric: str, task: int = -1) -> list[float]:
    """Return the metric after each round of a task, by default the last; empty where the rounds were not tested.

    >>> row = {"accuracy_matrix": [[90, None], [60, 80]], "round_accuracy": [[[85], [90]], [[70, 60], [60, 80]]]}
    >>> over_rounds(row, "forgetting"), over_rounds(row, "average_accuracy")
    ([20.0, 30.0], [65.0, 70.0])
    """
    rounds, matrix = row.get("round_accuracy") or [], row.get("accuracy_matrix") or []
    if not rounds or not matrix:
        return []
    values = []
    for accuracies in rounds[task]:
        before = len(accuracies) - 1  # how many tasks were learned earlier
        if metric == "average_accuracy":
            values.append(float(np.mean(accuracies)))
        elif before:
            values.append(float(np.mean([matrix[j][j] - accuracies[j] for j in range(before)])))
    return values


@dataclass(frozen=True)
class MeanStd:
    """Mean and sample standard deviation (None for a single value) of n values."""

    mean: float
    std: float | None
    n: int

    def __str__(self) -> str:
        """
        >>> str(MeanStd(12.34, 0.56, 3)), str(MeanStd(12.34, None, 1))
        ('12.3 ± 0.6', '12.3')
        """
        return number(self.mean) + ("" if self.std is None else f" ± {number(self.std)}")


def mean_std(values: Sequence[float]) -> MeanStd:
    """
    >>> mean_std([1.0, 2.0, 3.0])
    MeanStd(mean=2.0, std=1.0, n=3)
    """
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return MeanStd(float(np.mean(values)), std, len(values))


def number(value: float, digits: int = 1) -> str:
    """Return the value as text with this many decimals, never as -0.0.

    >>> number(-0.01), number(12.34)
    ('0.0', '12.3')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def ranks(values: Sequence[MeanStd | float | None], metric: Metric) -> list[Literal["", "best", "second"]]:
    """Return for each mean whether it is the best or second best; means that print the same are tied.

    A mean that cannot be compared with another is not called the best.

    >>> ranks([1.0, 3.0, 2.0, 3.01, None], METRICS["average_accuracy"])
    ['', 'best', 'second', 'best', '']
    """
    means = [value.mean if isinstance(value, MeanStd) else value for value in values]
    shown = [None if mean is None else round(mean, metric.digits) for mean in means]
    known = [mean for mean in shown if mean is not None]
    if metric.larger is None or len(known) < 2:
        return [""] * len(shown)
    ordered = sorted(set(known), reverse=metric.larger)
    names: dict[float | None, Literal["", "best", "second"]] = {ordered[0]: "best"}
    if len(known) > 2 and len(ordered) > 1:  # the second of two is the worst, so it gets no mark
        names[ordered[1]] = "second"
    return [names.get(mean, "") for mean in shown]
