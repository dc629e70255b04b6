"""The smallest of n values, exactly, when most of them need only be known roughly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]

EXACT_ROWS = 4096
DIGITS = 2.0**40


def smallest(
    count: int, value: Vector, bound: Vector | float, exact: Callable[[Indices], Vector]
) -> tuple[Indices, Vector]:
    """Indices and exact values of the `count` smallest in rising order; ties go to the smaller index.

    `value` is within `bound` of the exact one wherever both are finite. Only rows that may be among the smallest are
    given to `exact`. Values that agree to twelve digits are ties.

    >>> rough = np.array([3.0, 1.0, 2.02, 2.01])
    >>> smallest(2, rough, 0.05, lambda rows: np.array([3, 1, 2, 2.04])[rows])
    (array([1, 2]), array([1., 2.]))
    """
    known = np.isfinite(value) & np.isfinite(bound)
    rows = np.arange(len(value))
    if count < len(value):
        reach = np.where(known, value + bound, np.inf)
        limit = np.partition(reach, count - 1)[count - 1] if count else -np.inf
        limit += abs(limit) * 4 / DIGITS  # and whatever ties with it
        with np.errstate(invalid="ignore"):
            rows = np.flatnonzero(~known | (value - bound <= limit)) if count else rows[:0]
    values = np.concatenate([exact(rows[i : i + EXACT_ROWS]) for i in range(0, len(rows), EXACT_ROWS)] or [np.empty(0)])
    order = np.argsort(round_off(values), kind="stable")[:count]  # stable: rows are in rising order already
    return rows[order], values[order]


def round_off(values: NDArray[Any]) -> Vector:
    """Values to twelve significant digits: what differs by rounding errors alone must count as equal.

    >>> round_off(np.array([0.1 + 0.2])) == round_off(np.array([0.3]))
    array([ True])
    """
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.asarray(np.ldexp(np.rint(mantissa * DIGITS) / DIGITS, exponent))


def largest(
    count: int, value: Vector, bound: Vector | float, exact: Callable[[Indices], Vector]
) -> tuple[Indices, Vector]:
    """The same for the largest, in falling order."""
    rows, values = smallest(count, -value, bound, lambda rows: -exact(rows))
    return rows, -values
