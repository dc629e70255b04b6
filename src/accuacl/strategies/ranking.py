"""The smallest of n values, exactly, when most of them need only be known roughly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Vector = NDArray[np.float64]
Exact = Callable[[Indices], Vector]  # the exact values at some rows, the same for a row whatever the rows beside it

EXACT_ROWS = 4096
DIGITS = 2.0**40


def among_smallest(count: int, value: Vector, bound: Vector | float, exact: Exact) -> Indices:
    """Which are the `count` smallest, in rising order of index; ties go to the smaller index.

    `value` is within `bound` of the exact one wherever both are finite. Only rows that could be in or out by that are
    given to `exact`. Values that agree to twelve digits are ties.
    """
    return narrow(count, value, bound, exact)[0]


def narrow(count: int, value: Vector, bound: Vector | float, exact: Exact) -> tuple[Indices, Vector, Vector]:
    """The same rows with their values and bounds, which are 0 where the exact value had to be computed."""
    bound = np.broadcast_to(bound, value.shape)
    if count >= len(value):
        return np.arange(len(value)), value, bound
    if count == 0:
        return np.empty(0, np.int64), np.empty(0), np.empty(0)
    least, most = reach(value, bound)
    inside = most < np.partition(least, count)[count]  # fewer than `count` others can be smaller
    open_ = np.flatnonzero(~inside & (least <= np.partition(most, count - 1)[count - 1]))
    value, bound = value.copy(), bound.copy()
    value[open_], bound[open_] = in_slices(exact, open_), 0.0
    order = np.argsort(round_off(value[open_]), kind="stable")  # stable: rows are in rising order already
    rows = np.sort(np.append(np.flatnonzero(inside), open_[order[: count - int(inside.sum())]]))
    return rows, value[rows], bound[rows]


def reach(value: Vector, bound: Vector) -> tuple[Vector, Vector]:
    """The least and the most that each value can be, so that what lies apart by these is no tie."""
    known = np.isfinite(value) & np.isfinite(bound)
    slack = np.where(known, bound + np.abs(value) * (4 / DIGITS), np.inf)
    value = np.where(known, value, 0.0)
    return value - slack, value + slack


def smallest(count: int, value: Vector, bound: Vector | float, exact: Exact) -> tuple[Indices, Vector]:
    """The same in rising order of the exact values, with these.

    >>> rough = np.array([3.0, 1.0, 2.02, 2.01])
    >>> smallest(2, rough, 0.05, lambda rows: np.array([3, 1, 2, 2.04])[rows])
    (array([1, 2]), array([1., 2.]))
    """
    rows = among_smallest(count, value, bound, exact)
    values = in_slices(exact, rows)
    order = np.argsort(round_off(values), kind="stable")
    return rows[order], values[order]


def in_slices(exact: Exact, rows: Indices) -> Vector:
    """`exact` of many rows, some at a time, so that no large part of a pool is ever copied."""
    parts = [exact(rows[i : i + EXACT_ROWS]) for i in range(0, len(rows), EXACT_ROWS)]
    return np.concatenate([np.empty(0), *parts])


def round_off(values: NDArray[Any]) -> Vector:
    """Values to twelve significant digits: what differs by rounding errors alone must count as equal.

    >>> round_off(np.array([0.1 + 0.2])) == round_off(np.array([0.3]))
    array([ True])
    """
    mantissa, exponent = np.frexp(values.astype(np.float64))
    return np.asarray(np.ldexp(np.rint(mantissa * DIGITS) / DIGITS, exponent))


def largest(count: int, value: Vector, bound: Vector | float, exact: Exact) -> tuple[Indices, Vector]:
    """The `count` largest, in falling order."""
    rows, values = smallest(count, -value, bound, lambda rows: -exact(rows))
    return rows, -values
