"""How a run's metrics develop: after each task, and after each round of a task."""

from __future__ import annotations

import numpy as np

from accuacl.experiment import metrics
from accuacl.report.statistics.groups import Row


def after_tasks(row: Row, metric: str) -> list[float]:
    """The metric after each task, from the accuracy matrix; forgetting begins with the second task.

    >>> after_tasks({"accuracy_matrix": [[90, None], [60, 80]]}, "forgetting")
    [30.0]
    """
    matrix = row.get("accuracy_matrix") or []
    so_far = [[line[: t + 1] for line in matrix[: t + 1]] for t in range(len(matrix))]
    if metric == "forgetting":
        return [metrics.forgetting(part) for part in so_far[1:]]
    return [metrics.average_accuracy(part) for part in so_far]


def labels_spent(row: Row) -> list[int]:
    """How many labels there were after each round of all tasks: a pool that is used up gives no more.

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
    """The metric after each round of a task, by default the last; empty where the rounds were not tested.

    >>> row = {"accuracy_matrix": [[90, None], [60, 80]], "round_accuracy": [[[85], [90]], [[70, 60], [60, 80]]]}
    >>> over_rounds(row, "forgetting"), over_rounds(row, "average_accuracy")
    ([20.0, 30.0], [65.0, 70.0])
    """
    rounds, matrix = row.get("round_accuracy") or [], row.get("accuracy_matrix") or []
    if not rounds or not matrix:
        return []
    values = []
    for accuracies in rounds[task]:
        before = len(accuracies) - 1  # tasks learned earlier
        if metric == "average_accuracy":
            values.append(float(np.mean(accuracies)))
        elif before:
            values.append(float(np.mean([matrix[j][j] - accuracies[j] for j in range(before)])))
    return values
