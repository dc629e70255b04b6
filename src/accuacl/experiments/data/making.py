"""Streams of users by name: functions that say which task each example arrives with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from accuacl.base.errors import InputError, check_new_name
from accuacl.base.randomness import derive, hash_ids, rank
from accuacl.base.userfile import REGISTERED, takes, with_place
from accuacl.experiments.data.arrival import (
    Arrival,
    Ids,
    as_given,
    by_classes,
    by_looks,
    places,
    shared_out,
    tasks_of,
    with_tests,
)
from accuacl.experiments.data.dataset import Dataset
from accuacl.experiments.data.noise import wrong_answers
from accuacl.experiments.data.streams import Stream, Task

ARRIVALS = ("classes", "given")  # the ways to arrive that are not a user's
OWN_STREAMS: dict[str, Callable[[Dataset, int], Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def register(name: str) -> Callable[[F], F]:
    """Make a stream of your own known by its name, for `--arrival`.

    It is called with the data set and a seed, and returns the task of each training row: 0 for the first task, -1 for
    rows that never arrive. It may return the same for the test rows beside it; without that, a task is tested on the
    test rows of its classes.

    >>> import numpy as np
    >>> @register("every-other")
    ... def every_other(dataset, seed):
    ...     return np.arange(len(dataset.train)) % 2
    >>> OWN_STREAMS.pop("every-other") is every_other
    True
    """
    check_new_name("stream", name, [*OWN_STREAMS, *ARRIVALS])

    def keep(stream: F) -> F:
        if not takes(stream, 2):
            who = with_place(f"the stream {name}", stream)
            raise InputError(f"{who} must take two arguments, the data set and a seed.")
        OWN_STREAMS[name] = stream
        REGISTERED.append(("stream", name))
        return stream

    return keep


def as_registered(dataset: Dataset, name: str, seed: int) -> Arrival:
    """The tasks that a user's function makes."""
    who = with_place(f"the stream {name}", OWN_STREAMS[name])
    answer = OWN_STREAMS[name](dataset, seed)
    answers = answer if isinstance(answer, tuple) else (answer,)
    if len(answers) > 2:
        raise InputError(f"{who} gave {len(answers)} arrays; give one for the training rows, or one for each split.")
    units = _checked(who, answers[0], "training", len(dataset.train))
    tested = _checked(who, answers[1], "test", len(dataset.test)) if len(answers) == 2 else np.empty(0, np.int64)
    tasks = int(units.max(initial=-1)) + 1
    missing = sorted(set(range(tasks)) - set(units.tolist()))
    if not tasks or missing:
        raise InputError(f"{who} gave no training row to task {missing[0] if missing else 0}; number tasks from 0 on.")
    return with_tests(dataset, units, tested, tasks)


def _checked(who: str, tasks: Any, split: str, rows: int) -> Ids:
    if not isinstance(tasks, np.ndarray) or tasks.dtype.kind not in "iu" or tasks.shape != (rows,):
        is_array = isinstance(tasks, np.ndarray)
        shape = f"an array of {tasks.dtype}, shape {tasks.shape}" if is_array else f"a {type(tasks).__name__}"
        raise InputError(f"{who} gave {shape}, but there are {rows} {split} rows; give an array with the task of each.")
    if tasks.min(initial=0) < -1:
        raise InputError(f"{who} gave a row to task {tasks.min()}; number tasks from 0 on, -1 is for rows of no task.")
    return tasks.astype(np.int64)


@dataclass(frozen=True)
class StreamOptions:
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


TIDY = StreamOptions()


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
    dataset: Dataset, groups: Sequence[Sequence[int]] | None, untidy: StreamOptions = TIDY, own: str = ""
) -> Stream:
    """groups: the classes of each task, which `domains` makes superfluous; None: the tasks that the data name.

    own: the name of a stream that was registered, which then makes the tasks.

    >>> from accuacl.experiments.data import load
    >>> stream = make_stream(load("digits"), [[0, 1], [2, 3]], StreamOptions(blur=0.1, imbalance=0.5))
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


def _long_tailed(units: Ids, labels: Ids, untidy: StreamOptions) -> Ids:
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


def _with_returns(groups: list[list[int]], untidy: StreamOptions) -> list[list[int]]:
    """The units of each task, and after them, `recurring` times, the same units put together anew."""
    every = [unit for group in groups for unit in group]
    tasks = list(groups)
    for time in range(untidy.recurring):
        ordered = sorted(every, key=lambda unit: rank(f"recurring {untidy.seed} {time}", unit))
        for group in groups:
            tasks.append(ordered[: len(group)])
            ordered = ordered[len(group) :]
    return tasks


def _first_tasks(units: Ids, labels: Ids, groups: Sequence[Sequence[int]], untidy: StreamOptions) -> Ids:
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


def _blurred(arrives: Ids, labels: Ids, tasks: int, untidy: StreamOptions) -> Ids:
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
