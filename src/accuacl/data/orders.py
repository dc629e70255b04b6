"""Which classes arrive in which task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import rank
from accuacl.data.benchmarks import BENCHMARKS

ORDERS = ("fixed", "tasks", "classes")


def benchmark_tasks(
    benchmark: str, classes: int, classes_per_task: int = 0, order: str = "fixed", seed: int = 0
) -> list[list[int]]:
    """The classes of each task, of a benchmark or of one's own data with so many classes.

    classes_per_task: 0 for the benchmark's own; needed for one's own data. order: fixed, tasks, classes, or class ids.

    >>> benchmark_tasks("split-digits", 10, order="8,3,0,1")
    [[8, 3], [0, 1]]
    """
    each = classes_per_task or BENCHMARKS[benchmark].classes_per_task
    if each > classes:
        raise InputError(f"classes_per_task is {each}; {benchmark} has {classes} in all, so give at most {classes}.")
    if order not in ORDERS:
        ids = _parsed(order)
        return tasks_of(classes, len(ids) // each, each, ids)
    tasks = classes // each if classes_per_task else BENCHMARKS[benchmark].tasks
    return tasks_of(classes, tasks, each, order, seed)


def tasks_of(
    classes: int, tasks: int, classes_per_task: int | None, order: str | Sequence[int], seed: int = 0
) -> list[list[int]]:
    """The classes of each task, as `class_incremental` shares them out."""
    ids = _permuted(classes, order, seed) if isinstance(order, str) else _given(classes, order)
    each = classes_per_task
    if each is None:
        if tasks < 1 or len(ids) % tasks:
            raise InputError(f"{len(ids)} classes do not make {tasks} equal tasks; give classes_per_task.")
        each = len(ids) // tasks
    if tasks < 1 or each < 1 or tasks * each > len(ids):
        raise InputError(
            f"{tasks} tasks of {each} classes were asked for; the classes are {len(ids)}, so take fewer, at least 1."
        )
    groups = [ids[i : i + each] for i in range(0, len(ids) - each + 1, each)]
    if isinstance(order, str) and order == "tasks":
        groups = [groups[i] for i in sorted(range(len(groups)), key=lambda i: rank(f"tasks {seed}", i))]
    elif not isinstance(order, str) and tasks * each != len(ids):
        raise InputError(f"order names {len(ids)} classes; {tasks} tasks of {each} need {tasks * each}.")
    return groups[:tasks]


def _parsed(order: str) -> list[int]:
    try:
        return [int(c) for c in order.split(",")]
    except ValueError:
        raise InputError(f"order is {order!r}; give {', '.join(ORDERS)} or class ids like 3,1,2.") from None


def _permuted(classes: int, order: str, seed: int) -> list[int]:
    if order not in ORDERS:
        raise InputError(f"order is {order!r}; give {', '.join(ORDERS)} or a sequence of class ids.")
    ids = list(range(classes))
    return sorted(ids, key=lambda c: rank(f"classes {seed}", c)) if order == "classes" else ids


def _given(classes: int, order: Sequence[int]) -> list[int]:
    ids = look_up(np.arange(classes), order, f"the classes are 0 to {classes - 1}").tolist()
    for c in ids:
        if ids.count(c) > 1:
            raise InputError(f"order names class {c} more than once; name every class once.")
    return ids


def look_up(table: NDArray[np.int64], given: Any, known: str) -> NDArray[np.int64]:
    """table[given], where a given id outside the table or a negative entry of it is an unknown class."""
    ids = np.asarray(given)
    if ids.size == 0:
        return np.zeros(ids.shape, np.int64)
    if ids.dtype.kind not in "iu":
        raise InputError(f"classes are given as {ids.dtype}; give integers.")
    outside = (ids < 0) | (ids >= len(table))
    values = np.where(outside, -1, table[np.where(outside, 0, ids)])
    if (values < 0).any():
        raise InputError(f"class {ids[values < 0].flat[0]} is unknown; {known}.")
    return values
