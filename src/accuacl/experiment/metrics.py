"""What a run is judged by, from its accuracy matrix alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError

Matrix = Sequence[Sequence[float | None]]


def average_accuracy(matrix: Matrix) -> float:
    """A_T: the mean over all tasks of the accuracy after the last one.

    >>> average_accuracy([[90, None], [60, 80]])
    70.0
    """
    return float(np.mean(_known(matrix)[-1]))


def forgetting(matrix: Matrix) -> float:
    """F_T: by how much earlier tasks have fallen since they were learned, on average; 0 with a single task.

    >>> forgetting([[90, None], [60, 80]])
    30.0
    """
    rows = _known(matrix)
    return float(np.mean([rows[j][j] - rows[-1][j] for j in range(len(rows) - 1)])) if len(rows) > 1 else 0.0


def forgetting_max(matrix: Matrix) -> float:
    """The same from each task's best, whenever that was.

    >>> forgetting_max([[90, None, None], [95, 80, None], [60, 70, 50]])
    22.5
    """
    rows = _known(matrix)
    last = len(rows) - 1
    falls = [max(rows[t][j] for t in range(j, last + 1)) - rows[last][j] for j in range(last)]
    return float(np.mean(falls)) if falls else 0.0


def learning_accuracy(matrix: Matrix) -> float:
    """LA_T: the mean accuracy on each task just after it was learned.

    >>> learning_accuracy([[90, None], [60, 80]])
    85.0
    """
    return float(np.mean([row[-1] for row in _known(matrix)]))


def summary(matrix: Matrix) -> dict[str, float]:
    """All four by the names that result.json has."""
    return {
        "average_accuracy": average_accuracy(matrix),
        "forgetting": forgetting(matrix),
        "forgetting_max": forgetting_max(matrix),
        "learning_accuracy": learning_accuracy(matrix),
    }


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = 15) -> float:
    """Expected calibration error in percent: how far confidence and accuracy are apart, over bins of confidence.

    >>> calibration_error(np.array([0.75, 0.75, 0.75, 0.75]), np.array([True, True, True, False]))
    0.0
    """
    if len(confidence) == 0:
        return 0.0
    which = np.minimum((confidence * bins).astype(int), bins - 1)
    gap = 0.0
    for b in np.unique(which):
        inside = which == b
        gap += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    return float(100 * gap)


def _known(matrix: Matrix) -> list[list[float]]:
    """The lower triangle; a matrix that is not one is refused."""
    rows = [[float(x) for x in row if x is not None] for row in matrix]
    if not rows or [len(row) for row in rows] != list(range(1, len(rows) + 1)):
        raise InputError("an accuracy matrix has one more entry in each row: that after task t for tasks 1 to t.")
    return rows
