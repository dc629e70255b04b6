"""Which examples arrive together: the benchmarks' tasks of classes, domains, or what a column of the data says.

An `Arrival` gives each training row a unit (a class, a domain or a task of the data) and each task its units;
`streams` makes the tasks of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, counted
from accuacl.base.randomness import derive, hash_ids, rank
from accuacl.experiments.data.corruptions import CORRUPTIONS, corrupted
from accuacl.experiments.data.dataset import Dataset, natural

Ids = NDArray[np.int64]
ORDERS = ("fixed", "tasks", "classes")


class Benchmark(NamedTuple):
    """A published data set whose classes are divided among tasks."""

    dataset: str
    tasks: int
    classes_per_task: int


BENCHMARKS = {
    "split-digits": Benchmark("digits", 5, 2),
    "split-cifar10": Benchmark("cifar10", 5, 2),
    "split-cifar100": Benchmark("cifar100", 10, 10),
    "split-tiny-imagenet": Benchmark("tiny-imagenet", 10, 20),
}


def dataset_of(benchmark: str) -> str:
    """The data set that a benchmark is made of; the user's own data are their own benchmark."""
    return BENCHMARKS[benchmark].dataset if benchmark in BENCHMARKS else benchmark


def benchmark_tasks(
    benchmark: str, classes: int, classes_per_task: int = 0, order: str = "fixed", seed: int = 0
) -> list[list[int]]:
    """The classes of each task, of a benchmark or of the user's own data with this many classes.

    classes_per_task: 0 for the benchmark's; needed for the user's own data. order: "fixed" (0, 1, 2, ...), "tasks" (the
    fixed tasks, permuted by seed), "classes" (classes permuted by seed), or class ids.

    >>> benchmark_tasks("split-digits", 10, order="8,3,0,1")
    [[8, 3], [0, 1]]
    """
    each = classes_per_task or BENCHMARKS[benchmark].classes_per_task
    if each > classes:
        raise InputError(f"classes_per_task is {each}; {benchmark} has {classes} in all, so give at most {classes}.")
    ids = list(range(classes)) if order in ORDERS else _parse_ids(order, classes)
    if order == "classes":
        ids.sort(key=lambda c: rank(f"classes {seed}", c))
    elif order not in ORDERS and len(ids) % each:
        raise InputError(
            f"order names {counted(len(ids), 'class')}, and a task has {each}; name a multiple of that, or change "
            "classes_per_task."
        )
    groups = [ids[i : i + each] for i in range(0, len(ids) - each + 1, each)]
    if order == "tasks":
        groups = [groups[i] for i in sorted(range(len(groups)), key=lambda i: rank(f"tasks {seed}", i))]
    return groups


def _parse_ids(order: str, classes: int) -> list[int]:
    try:
        ids = [int(c) for c in order.split(",")]
    except ValueError:
        raise InputError(f"order is {order!r}; give {', '.join(ORDERS)} or class ids like 3,1,2.") from None
    for c in ids:
        if not 0 <= c < classes:
            raise InputError(f"class {c} is unknown; the classes are 0 to {classes - 1}.")
        if ids.count(c) > 1:
            raise InputError(f"order names class {c} more than once; name every class once.")
    return ids


@dataclass(frozen=True, eq=False)
class Arrival:
    """The unit of each training row (-1: none), the test rows of each unit, and the units of each task."""

    dataset: Dataset
    units: Ids
    tests: list[Ids]
    groups: list[list[int]]
    by_class: bool  # a unit is a class


def by_classes(dataset: Dataset, groups: Sequence[Sequence[int]]) -> Arrival:
    """Tasks of these groups of classes."""
    inside = np.unique([c for group in groups for c in group])
    labels = dataset.train.labels
    tests = [np.flatnonzero(dataset.test.labels == c) for c in range(len(dataset.classes))]
    units = np.where(np.isin(labels, inside), labels, -1)
    return Arrival(dataset, units, tests, [list(group) for group in groups], by_class=True)


def by_domains(dataset: Dataset, count: int, seed: int) -> Arrival:
    """Every task has all classes, in a domain of its own.

    The column `domain` names the domains, in order. Without such a column, each class's images are divided evenly among
    the domains: the first has them unchanged, each other one has a kind of corruption.
    """
    if "domain" in dataset.train.columns:
        units, tested, names = _numbered(dataset, "domain")
        if tested is None:
            raise InputError(f"{dataset.name} has a column domain only in the training split; add it to the other.")
        if count != len(names):
            raise InputError(
                f"domains is {count}, but the data have {len(names)}: {_listed(names)}; give --domains {len(names)}."
            )
        return with_tests(dataset, units, tested, count)
    if dataset.train.inputs.ndim != 4:
        raise InputError(
            f"{dataset.name} holds vectors, and --domains can corrupt images only; name the domain of each row in a "
            "column domain of a table or in the arrays domain_train and domain_test."
        )
    if count > len(CORRUPTIONS):
        raise InputError(f"domains is {count}; there are {len(CORRUPTIONS)} kinds of corruption, so give at most that.")
    changed, units_of = {}, {}
    for name, split in (("train", dataset.train), ("test", dataset.test)):
        units_of[name] = shared_out(split.labels, count, derive(seed, "looks", name))  # "looks" is a part of the seed
        inputs = cast(NDArray[Any], corrupted(split.inputs, units_of[name], derive(seed, name)))
        changed[name] = replace(split, inputs=inputs)
    dataset = replace(dataset, train=changed["train"], test=changed["test"])
    return with_tests(dataset, units_of["train"], units_of["test"], count)


def by_column(dataset: Dataset) -> Arrival:
    """The tasks that the column `task` names, in order.

    A task is tested on the test rows that name it or, if the test split has no such column, on those of its classes.
    """
    if "task" not in dataset.train.columns:
        raise InputError(
            f"{dataset.name} does not say which task an example is of; give it a column task, or a folder or file for "
            "each task, or leave out --arrival given."
        )
    units, tested, names = _numbered(dataset, "task")
    return with_tests(dataset, units, tested, len(names))


def with_tests(dataset: Dataset, units: Ids, tested: Ids | None, count: int) -> Arrival:
    """A task for each unit. tested: the unit of each test row; None: a task is tested on its classes."""
    tests = []
    for unit in range(count):
        of_unit = (
            tested == unit if tested is not None else np.isin(dataset.test.labels, dataset.train.labels[units == unit])
        )
        tests.append(np.flatnonzero(of_unit))
    return Arrival(dataset, units, tests, [[unit] for unit in range(count)], by_class=False)


def shared_out(groups: Ids, count: int, seed: int) -> Ids:
    """A number below `count` for each row, as evenly as possible within every group, drawn by the seed.

    >>> np.bincount(shared_out(np.zeros(10, np.int64), 3, seed=0)).tolist()
    [4, 3, 3]
    """
    return ordinals(groups, hash_ids(seed, np.arange(len(groups)))) % count


def ordinals(groups: Ids, keys: NDArray[Any]) -> Ids:
    """The position of each row among those of its group, ordered by their keys.

    >>> ordinals(np.array([0, 1, 0, 1]), np.array([9, 3, 4, 5]))
    array([1, 0, 0, 1])
    """
    order = np.lexsort((keys, groups))
    _, first, counts = np.unique(groups[order], return_index=True, return_counts=True)
    ordinal = np.empty(len(groups), np.int64)
    ordinal[order] = np.arange(len(groups)) - np.repeat(first, counts)
    return ordinal


def _numbered(dataset: Dataset, column: str) -> tuple[Ids, Ids | None, list[str]]:
    """A column's values as numbers in the training and the test split (None: it lacks the column), and their names."""
    values = [
        list(map(str, split.columns.get(column, np.empty(0)).tolist())) for split in (dataset.train, dataset.test)
    ]
    names = sorted(set(values[0]), key=natural)
    number = {name: i for i, name in enumerate(names)}
    for value in values[1]:
        if value not in number:
            raise InputError(
                f"{dataset.name}: the test split has the {column} {value!r}, which has no training example; the "
                f"{column}s are {_listed(names)}."
            )
    units, tested = (np.array([number[value] for value in each], np.int64) for each in values)
    return units, tested if column in dataset.test.columns else None, names


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
