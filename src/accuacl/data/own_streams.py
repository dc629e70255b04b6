"""The tasks that a user's function makes: it says which task each example arrives with."""

from __future__ import annotations

from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.userfile import with_place
from accuacl.data.arrival import Arrival, Ids, with_tests
from accuacl.data.dataset import Dataset
from accuacl.data.registry import REGISTRY


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
