"""Streams of users: a function of theirs says which task each example arrives with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.userfile import REGISTERED, with_place
from accuacl.data.arrival import Arrival, Ids, with_tests
from accuacl.data.dataset import Dataset

ARRIVALS = ("classes", "given")  # the ways to arrive that are not a user's
REGISTRY: dict[str, Callable[[Dataset, int], Any]] = {}

F = TypeVar("F", bound=Callable[..., Any])


def register(name: str) -> Callable[[F], F]:
    """Make a stream of your own known by its name, for `--arrival`.

    It is called with the data set and a seed, and returns the task of each training row: 0 for the first task, -1 for
    rows that never arrive. It may return the same for the test rows beside it; without that, a task is tested on the
    test rows of its classes.

    >>> @register("every-other")
    ... def every_other(dataset, seed):
    ...     return np.arange(len(dataset.train)) % 2
    >>> REGISTRY.pop("every-other") is every_other
    True
    """
    if not name or name in REGISTRY or name in ARRIVALS:
        raise InputError(f"a stream cannot be called {name!r}; give it a name that is not taken.")

    def keep(stream: F) -> F:
        if not callable(stream) or not _takes_two(stream):
            who = with_place(f"the stream {name}", stream)
            raise InputError(f"{who} must take two arguments, the data set and a seed.")
        REGISTRY[name] = stream
        REGISTERED.append(("stream", name))
        return stream

    return keep


def as_registered(dataset: Dataset, name: str, seed: int) -> Arrival:
    """The tasks that a user's function makes."""
    who = with_place(f"the stream {name}", REGISTRY[name])
    answer = REGISTRY[name](dataset, seed)
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


def _takes_two(stream: Callable[..., Any]) -> bool:
    try:
        inspect.signature(stream).bind(None, 0)
    except TypeError:
        return False
    return True
