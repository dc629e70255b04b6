"""Streams made from any data set: tidy ones, and such as data really arrive in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive, hash_ids, rank
from accuacl.data.answers import wrong_answers
from accuacl.data.arrival import Arrival, as_given, by_classes, by_looks, places, shared_out
from accuacl.data.dataset import Dataset
from accuacl.data.orders import tasks_of
from accuacl.data.own_streams import as_registered
from accuacl.data.streams import Stream, Task

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Untidiness:
    """How a stream differs from a tidy one; all of it can be combined, and is drawn by the seed.

    blur: the share of each class's examples that arrive in other tasks. imbalance: the rarest class has this share of
    the commonest class's training examples. label_noise: the share of answers that are wrong, either any class that
    has arrived by then ("uniform") or the one that looks most alike ("alike"). domains: so many tasks, each with all
    classes in another look. recurring: how often everything comes back, in tasks that are put together anew.
    """

    blur: float = 0.0
    imbalance: float = 1.0
    label_noise: float = 0.0
    noise: str = "uniform"
    domains: int = 0
    recurring: int = 0
    seed: int = 0


TIDY = Untidiness()


def class_incremental(
    dataset: Dataset,
    tasks: int,
    classes_per_task: int | None = None,
    order: str | Sequence[int] = "fixed",
    seed: int = 0,
) -> Stream:
    """Tasks of `classes_per_task` classes each, by default as many as share all classes evenly.

    order: "fixed" (0, 1, 2, ...), "tasks" (the same tasks, permuted by seed), "classes" (classes permuted by seed), or
    the class ids themselves in their order. With fewer tasks than there are classes for, the first ones are taken.
    """
    return make_stream(dataset, tasks_of(len(dataset.classes), tasks, classes_per_task, order, seed))


def make_stream(
    dataset: Dataset, groups: Sequence[Sequence[int]] | None, untidy: Untidiness = TIDY, own: str = ""
) -> Stream:
    """groups: the classes of each task, which `domains` makes superfluous; None: the tasks that the data name.

    own: the name of a stream that was registered, which then makes the tasks.

    >>> from accuacl.data import load
    >>> stream = make_stream(load("digits"), [[0, 1], [2, 3]], Untidiness(blur=0.1, imbalance=0.5))
    >>> stream.pools().tolist()
    [[69, 87, 6, 12], [8, 10, 55, 110]]
    """
    if own:
        arrival = as_registered(dataset, own, untidy.seed)
    elif untidy.domains:
        arrival = by_looks(dataset, untidy.domains, untidy.seed)
    else:
        arrival = as_given(dataset) if groups is None else by_classes(dataset, groups)
    labels = dataset.train.labels
    units = _long_tailed(arrival.units, labels, untidy) if untidy.imbalance < 1 else arrival.units
    groups = _with_returns(arrival.groups, untidy)
    arrives = _blurred(_first_tasks(units, labels, groups, untidy), labels, len(groups), untidy)
    tasks = [_task(arrival, i, group, np.flatnonzero(arrives == i)) for i, group in enumerate(groups)]
    stream = Stream(arrival.dataset, tasks)
    if not untidy.label_noise:
        return stream
    answers = wrong_answers(stream, untidy.label_noise, untidy.noise == "alike", derive(untidy.seed, "label noise"))
    return Stream(arrival.dataset, tasks, answers)


def _task(arrival: Arrival, index: int, group: Sequence[int], train: Ids) -> Task:
    test = np.sort(np.concatenate([arrival.tests[unit] for unit in group]))
    classes = group
    if not arrival.by_class:
        splits = ((arrival.dataset.train, train), (arrival.dataset.test, test))
        classes = np.unique(np.concatenate([split.labels[rows] for split, rows in splits])).tolist()
    return Task(index, tuple(int(c) for c in classes), train, test)


def _long_tailed(units: Ids, labels: Ids, untidy: Untidiness) -> Ids:
    """Without the examples that are too many: class i of K keeps imbalance^(i / (K - 1)) of the commonest's number.

    Classes are ordered by their number of examples, those with as many by the seed. A class that has fewer keeps all.
    """
    counts = np.bincount(labels[units >= 0])
    classes = np.flatnonzero(counts).tolist()
    ordered = sorted(classes, key=lambda c: (-counts[c], rank(f"imbalance {untidy.seed}", c)))
    wanted = np.zeros(int(labels.max()) + 1, np.int64)
    for i, c in enumerate(ordered):
        share = untidy.imbalance ** (i / max(1, len(ordered) - 1))
        wanted[c] = max(1, round(int(counts.max()) * share))
    inside = np.where(units >= 0, labels, -1)
    place = places(inside, hash_ids(derive(untidy.seed, "imbalance"), np.arange(len(labels))))
    return np.where((units >= 0) & (place < wanted[labels]), units, -1)


def _with_returns(groups: list[list[int]], untidy: Untidiness) -> list[list[int]]:
    """The units of each task, and after them, `recurring` times, the same units put together anew."""
    every = [unit for group in groups for unit in group]
    tasks = list(groups)
    for time in range(untidy.recurring):
        ordered = sorted(every, key=lambda unit: rank(f"recurring {untidy.seed} {time}", unit))
        for group in groups:
            tasks.append(ordered[: len(group)])
            ordered = ordered[len(group) :]
    return tasks


def _first_tasks(units: Ids, labels: Ids, groups: Sequence[Sequence[int]], untidy: Untidiness) -> Ids:
    """The task of each training row: one that has its unit, and of several each as often as can be."""
    times = untidy.recurring + 1
    task_of = np.full((times, int(units.max(initial=0)) + 1), -1)
    for index, group in enumerate(groups):
        task_of[index * times // len(groups), list(group)] = index
    if times == 1:
        return np.where(units >= 0, task_of[0][units], -1)
    alike = units * (int(labels.max(initial=0)) + 1) + labels  # rows of one class and unit
    time = shared_out(alike, times, derive(untidy.seed, "recurring"))
    return np.where(units >= 0, task_of[time, units], -1)


def _blurred(arrives: Ids, labels: Ids, tasks: int, untidy: Untidiness) -> Ids:
    """The same with a share of each class's rows moved to the other tasks, to each as many as can be."""
    if not untidy.blur:
        return arrives
    if tasks < 2:
        raise InputError("--blur moves examples to other tasks and there is only one; leave it out.")
    seed, rows = derive(untidy.seed, "blur"), np.arange(len(labels))
    home = np.where(arrives >= 0, arrives * (int(labels.max()) + 1) + labels, -1)
    place = places(home, hash_ids(seed, rows))
    _, inverse, counts = np.unique(home, return_inverse=True, return_counts=True)
    moved = (arrives >= 0) & (place < np.rint(untidy.blur * counts)[inverse])
    first = hash_ids(derive(seed, "first"), home) % np.uint64(tasks - 1)  # which of the others is served first
    step = (place + first.astype(np.int64)) % (tasks - 1) + 1
    return np.where(moved, (arrives + step) % tasks, arrives)
