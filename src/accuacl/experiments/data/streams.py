"""Streams of tasks: a data set's examples arrive a part at a time.

`make_stream` makes the paper's stream, in which every task brings new classes, and any other: tasks by domain, by a
column of the data or by a user's function (`register`), with classes that come back, overlap, are rare, or are labelled
wrongly (`StreamOptions`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from accuacl.base.errors import InputError, a_type, check_new_name
from accuacl.base.randomness import derive, hash_ids, rank
from accuacl.base.userfile import REGISTERED, takes, with_place
from accuacl.experiments.data.arrival import (
    Arrival,
    Ids,
    by_classes,
    by_column,
    by_domains,
    ordinals,
    shared_out,
    with_tests,
)
from accuacl.experiments.data.corruptions import wrong_answers
from accuacl.experiments.data.dataset import Dataset

ARRIVALS = ("classes", "given")  # the built-in ways to arrive
OWN_STREAMS: dict[str, Callable[[Dataset, int], Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False)
class Task:
    """Examples that arrive together, and those that test what was learned of them."""

    index: int
    classes: tuple[int, ...]  # the data set's ids; with --blur its pool also holds examples of other classes
    train: NDArray[np.int64]  # row numbers of dataset.train, ascending
    test: NDArray[np.int64]  # row numbers of dataset.test, ascending


class Stream:
    """Tasks in order of arrival: `for task in stream`. The model's id of a class is its position in `order`.

    No training row is in two tasks; a test row may be. `answers` are the labels that the oracle gives: those of the
    data set, or others where labels are noisy.

    >>> from accuacl.experiments.data import load, make_stream
    >>> stream = make_stream(load("digits"), [[8, 3], [0, 1]])
    >>> [task.classes for task in stream], stream.to_model([3, 8, 0])
    ([(8, 3), (0, 1)], array([1, 0, 2]))
    """

    def __init__(self, dataset: Dataset, tasks: Sequence[Task], answers: NDArray[np.int64] | None = None) -> None:
        self.dataset, self.tasks = dataset, tuple(tasks)
        self.answers = dataset.train.labels if answers is None else answers
        self.order = tuple(dict.fromkeys(c for task in tasks for c in task.classes))
        self._model_ids = np.full(len(dataset.classes), -1, np.int64)
        self._model_ids[list(self.order)] = np.arange(len(self.order))

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, index: int) -> Task:
        return self.tasks[index]

    def to_model(self, labels: ArrayLike) -> NDArray[np.int64]:
        """Convert the data set's class ids to the model's."""
        given = np.asarray(labels, np.int64)
        known = np.isin(given, self.order)
        if not known.all():
            raise InputError(f"class {given[~known][0]} is unknown; the classes of this stream are {list(self.order)}.")
        return self._model_ids[given]

    @property
    def tests_once(self) -> bool:
        """Whether no class is tested in several tasks."""
        tested = [np.unique(self.dataset.test.labels[task.test]) for task in self.tasks]
        return len(np.unique(np.concatenate(tested))) == sum(len(classes) for classes in tested)

    def pools(self) -> NDArray[np.int64]:
        """How many training examples of each class, in their order, each task has: (tasks, classes)."""
        labels = self.dataset.train.labels
        counts = [np.bincount(self.to_model(labels[task.train]), minlength=len(self.order)) for task in self.tasks]
        return np.stack(counts)

    def digest(self) -> str:
        """A hash of the rows of each task and of the answers to them."""
        sha256 = hashlib.sha256()
        for task in self.tasks:
            for rows in (task.train, self.answers[task.train], task.test):
                sha256.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
        return sha256.hexdigest()


@dataclass(frozen=True)
class StreamOptions:
    """How a stream differs from one whose tasks bring new classes and nothing else; the seed draws all of it.

    blur: the share of each class's examples that arrive in other tasks. imbalance: the rarest class has this share of
    the commonest class's training examples. label_noise: the share of wrong answers; `noise` says whether these are
    any class that has arrived by then ("uniform") or the one with the nearest mean ("alike"). domains: the number of
    tasks, each with all classes in another domain. recurring: how often all classes return, in other combinations.
    """

    blur: float = 0.0
    imbalance: float = 1.0
    label_noise: float = 0.0
    noise: str = "uniform"
    domains: int = 0
    recurring: int = 0
    seed: int = 0


REGULAR = StreamOptions()


def make_stream(
    dataset: Dataset,
    groups: Sequence[Sequence[int]] | None,
    options: StreamOptions = REGULAR,
    own: str = "",
    used: int | None = None,
) -> Stream:
    """The stream whose tasks have these groups of classes; None: the tasks that the data's column `task` names.

    options.domains makes the tasks instead, and so does `own`, the name of a registered stream. used: how many of the
    tasks are learned, which must have examples (None: all).

    >>> from accuacl.experiments.data import load
    >>> stream = make_stream(load("digits"), [[0, 1], [2, 3]], StreamOptions(blur=0.1, imbalance=0.5))
    >>> stream.pools().tolist()
    [[69, 87, 6, 12], [8, 10, 55, 110]]
    """
    if own:
        arrival = _by_function(dataset, own, options.seed)
    elif options.domains:
        arrival = by_domains(dataset, options.domains, options.seed)
    else:
        arrival = by_column(dataset) if groups is None else by_classes(dataset, groups)
    labels = dataset.train.labels
    units = _long_tailed(arrival.units, labels, options) if options.imbalance < 1 else arrival.units
    groups = _with_returns(arrival.groups, options)
    task_of = _blurred(_tasks_of_rows(units, labels, groups, options), labels, len(groups), options)
    tasks = [_task(arrival, i, group, np.flatnonzero(task_of == i)) for i, group in enumerate(groups)]
    stream = Stream(arrival.dataset, tasks)
    _check_examples(arrival.dataset, tasks[:used], options)
    if not options.label_noise:
        return stream
    answers = wrong_answers(stream, options.label_noise, options.noise == "alike", derive(options.seed, "label noise"))
    return Stream(arrival.dataset, tasks, answers)


def _check_examples(dataset: Dataset, tasks: Sequence[Task], options: StreamOptions) -> None:
    """Refuse a task without training or without test examples."""
    for task in tasks:
        if len(task.train) and len(task.test):
            continue
        names = ", ".join(dataset.classes[c] for c in task.classes[:5]) + (", ..." * (len(task.classes) > 5))
        to_do = "choose other classes, or add examples"
        if options.imbalance < 1 or options.recurring:
            to_do += ", or give a larger --imbalance or a smaller --recurring"
        elif not np.isin(dataset.train.labels, task.classes).any() and dataset.classes[task.classes[0]].isdigit():
            to_do = "number the classes 0, 1, 2, ... without gaps, or add examples"
        raise InputError(
            f"task {task.index + 1} (classes {names}) has {len(task.train)} training and {len(task.test)} test "
            f"examples, and needs at least one of each; {to_do}."
        )


def register(name: str) -> Callable[[F], F]:
    """Register a stream of your own under a name, for `--arrival`.

    It is called with the data set and a seed, and returns the task of each training row: 0 for the first task, -1 for
    rows that never arrive. It may also return the task of each test row, as a second array; otherwise a task is tested
    on the test rows of its classes.

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


def _by_function(dataset: Dataset, name: str, seed: int) -> Arrival:
    """The tasks that a user's function makes."""
    who = with_place(f"the stream {name}", OWN_STREAMS[name])
    returned = OWN_STREAMS[name](dataset, seed)
    arrays = returned if isinstance(returned, tuple) else (returned,)
    if len(arrays) > 2:
        raise InputError(f"{who} gave {len(arrays)} arrays; give one for the training rows, or one for each split.")
    units = _checked(who, arrays[0], "training", len(dataset.train))
    tested = _checked(who, arrays[1], "test", len(dataset.test)) if len(arrays) == 2 else None
    tasks = int(units.max(initial=-1)) + 1
    missing = sorted(set(range(tasks)) - set(units.tolist()))
    if not tasks or missing:
        raise InputError(f"{who} gave no training row to task {missing[0] if missing else 0}; number tasks from 0 on.")
    return with_tests(dataset, units, tested, tasks)


def _checked(who: str, tasks: Any, split: str, rows: int) -> Ids:
    if not isinstance(tasks, np.ndarray) or tasks.dtype.kind not in "iu" or tasks.shape != (rows,):
        is_array = isinstance(tasks, np.ndarray)
        shape = f"an array of {tasks.dtype}, shape {tasks.shape}" if is_array else f"{a_type(tasks)}"
        raise InputError(f"{who} gave {shape}, but there are {rows} {split} rows; give an array with the task of each.")
    if tasks.min(initial=0) < -1:
        raise InputError(f"{who} gave a row to task {tasks.min()}; number tasks from 0 on, -1 is for rows of no task.")
    return tasks.astype(np.int64)


def _task(arrival: Arrival, index: int, group: Sequence[int], train: Ids) -> Task:
    test = np.sort(np.concatenate([arrival.tests[unit] for unit in group]))
    classes = group
    if not arrival.by_class:
        splits = ((arrival.dataset.train, train), (arrival.dataset.test, test))
        classes = np.unique(np.concatenate([split.labels[rows] for split, rows in splits])).tolist()
    return Task(index, tuple(int(c) for c in classes), train, test)


def _long_tailed(units: Ids, labels: Ids, options: StreamOptions) -> Ids:
    """The units with -1 for dropped rows: class i of K keeps imbalance^(i / (K - 1)) times the commonest's number.

    Classes are ordered by their number of examples, ties by the seed. A class that has fewer keeps all.
    """
    counts = np.bincount(labels[units >= 0])
    classes = np.flatnonzero(counts).tolist()
    ordered = sorted(classes, key=lambda c: (-counts[c], rank(f"imbalance {options.seed}", c)))
    wanted = np.zeros(int(labels.max()) + 1, np.int64)
    for i, c in enumerate(ordered):
        share = options.imbalance ** (i / max(1, len(ordered) - 1))
        wanted[c] = max(1, round(int(counts.max()) * share))
    arriving = np.where(units >= 0, labels, -1)
    ordinal = ordinals(arriving, hash_ids(derive(options.seed, "imbalance"), np.arange(len(labels))))
    return np.where((units >= 0) & (ordinal < wanted[labels]), units, -1)


def _with_returns(groups: list[list[int]], options: StreamOptions) -> list[list[int]]:
    """The units of each task, followed `recurring` times by all units in other combinations."""
    every = [unit for group in groups for unit in group]
    tasks = list(groups)
    for time in range(options.recurring):
        ordered = sorted(every, key=lambda unit: rank(f"recurring {options.seed} {time}", unit))
        for group in groups:
            tasks.append(ordered[: len(group)])
            ordered = ordered[len(group) :]
    return tasks


def _tasks_of_rows(units: Ids, labels: Ids, groups: Sequence[Sequence[int]], options: StreamOptions) -> Ids:
    """The task of each training row; rows whose unit is in several tasks are shared evenly among these."""
    times = options.recurring + 1
    task_of = np.full((times, int(units.max(initial=0)) + 1), -1)
    for index, group in enumerate(groups):
        task_of[index * times // len(groups), list(group)] = index
    if times == 1:
        return np.where(units >= 0, task_of[0][units], -1)
    alike = units * (int(labels.max(initial=0)) + 1) + labels  # rows of one class and unit
    time = shared_out(alike, times, derive(options.seed, "recurring"))
    return np.where(units >= 0, task_of[time, units], -1)


def _blurred(task_of: Ids, labels: Ids, tasks: int, options: StreamOptions) -> Ids:
    """The task of each row, after a share of each class's rows has moved evenly to the other tasks."""
    if not options.blur:
        return task_of
    if tasks < 2:
        raise InputError("--blur moves examples to other tasks and there is only one; leave it out.")
    seed, rows = derive(options.seed, "blur"), np.arange(len(labels))
    home = np.where(task_of >= 0, task_of * (int(labels.max()) + 1) + labels, -1)
    ordinal = ordinals(home, hash_ids(seed, rows))
    _, inverse, counts = np.unique(home, return_inverse=True, return_counts=True)
    moved = (task_of >= 0) & (ordinal < np.rint(options.blur * counts)[inverse])
    first = hash_ids(derive(seed, "first"), home) % np.uint64(tasks - 1)  # which of the others is served first
    step = (ordinal + first.astype(np.int64)) % (tasks - 1) + 1
    return np.where(moved, (task_of + step) % tasks, task_of)
