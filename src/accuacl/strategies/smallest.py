"""Exactly the smallest of n values, most of which need only be known roughly.

Values are float64, equal where they agree to twelve digits, or whole numbers (uint64).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]
Values: TypeAlias = NDArray[np.float64] | NDArray[np.uint64]
Exact = Callable[[Indices], Any]  # the exact values of some rows; none depends on the other rows

EXACT_ROWS = 4096
DIGITS = 2.0**40


def among_smallest(count: int, value: Values, bound: Vector, exact: Exact) -> tuple[Indices, Values, Vector]:
    """The indices of the `count` smallest, ascending, with their values and bounds; ties go to the smaller index.

    `value` is within `bound` of the exact value wherever both are finite; a bound of 0 means that it is exact. Only
    rows that the bounds leave undecided are passed to `exact`; their bound is 0 afterwards.

    >>> rough = np.array([3.0, 1.0, 2.02, 2.01])
    >>> among_smallest(2, rough, np.full(4, 0.05), lambda rows: np.array([3, 1, 2, 2.04])[rows])[0]
    array([1, 2])
    """
    if count >= len(value):
        return np.arange(len(value)), value, bound
    if count == 0:
        return np.empty(0, np.int64), value[:0], bound[:0]
    least, most = reach(value, bound)
    inside = most < np.partition(least, count)[count]  # fewer than `count` others can be smaller
    undecided = np.flatnonzero(~inside & (least <= np.partition(most, count - 1)[count - 1]))
    value, bound = made_exact(value, bound, undecided, exact)
    order = np.argsort(round_off(value[undecided]), kind="stable")  # stable: rows are in rising order already
    rows = np.sort(np.append(np.flatnonzero(inside), undecided[order[: count - int(inside.sum())]]))
    return rows, value[rows], bound[rows]


def reach(value: Values, bound: Vector) -> tuple[Values, Values]:
    """The least and the most that each value can be; two values whose ranges do not overlap are no tie."""
    if value.dtype == np.uint64:
        return value, value
    known = np.isfinite(value) & np.isfinite(bound)
    slack = np.where(known, bound + np.abs(value) * (4 / DIGITS), np.inf)
    value = np.where(known, value, 0.0)
    return value - slack, value + slack


def made_exact(value: Values, bound: Vector, rows: Indices, exact: Exact) -> tuple[Values, Vector]:
    """The values and bounds, with these rows made exact."""
    rows = rows[bound[rows] != 0]
    if not len(rows):
        return value, bound
    value, bound = value.copy(), bound.copy()
    value[rows], bound[rows] = in_slices(exact, rows), 0.0
    return value, bound


def in_slices(exact: Exact, rows: Indices) -> Values:
    """`exact` of many rows, a slice at a time, so that never much of a pool is copied."""
    return np.concatenate([exact(part) for part in slices(rows)])


def slices(rows: Indices) -> list[Indices]:
    """The rows in slices; at least one, which may be empty."""
    return [rows[i : i + EXACT_ROWS] for i in range(0, max(1, len(rows)), EXACT_ROWS)]


def round_off(values: NDArray[Any]) -> Values:
    """Values rounded to twelve significant digits: those that differ by rounding errors only must count as equal.

    >>> round_off(np.array([0.1 + 0.2])) == round_off(np.array([0.3]))
    array([ True])
    """
    if values.dtype == np.uint64:
        return values
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.asarray(np.ldexp(np.rint(mantissa * DIGITS) / DIGITS, exponent))
