"""Training and test split: which files belong to which, and what is held out if there is no test split.

Files are train.csv and test.csv, shards of these, or folders that Hugging Face `datasets` saved.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.base.randomness import derive, hash_ids
from accuacl.experiments.data.arrival import ordinals
from accuacl.experiments.data.dataset import TESTS, RawSplit, Split
from accuacl.experiments.data.table_files import SUFFIXES, column_names, table_suffix

SAVED = "state.json"  # what Hugging Face `datasets` writes beside the Arrow files of a split
HELD_OUT = "a fifth held out"  # what `Source.reading` has then

S = TypeVar("S", Split, RawSplit)


@dataclass(frozen=True)
class SplitFiles:
    """The files of each split. No test files: a column says which rows test, or a fifth is held out."""

    place: Path
    train: tuple[Path, ...]
    test: tuple[Path, ...] = ()

    @functools.cached_property
    def columns(self) -> list[str]:
        """The names of the columns of the training split."""
        return column_names(self.train[0])

    @property
    def held_out(self) -> bool:
        """Whether neither files nor a column say which rows test."""
        return not self.test and "split" not in self.columns


def find_tables(path: Path, suffixes: Sequence[str] = SUFFIXES) -> SplitFiles | None:
    """The tables in a folder, or the one that a file is; None if there are none."""
    if path.is_file():
        return SplitFiles(path, (path,)) if table_suffix(path) else None
    if (path / SAVED).is_file():
        return SplitFiles(path, _saved_files(path))
    for folder in (path, path / "data"):
        for suffix in suffixes:
            if train := _shards(folder, "train", suffix):
                tests = (_shards(folder, name, suffix) for name in TESTS)
                return SplitFiles(folder, train, next(filter(None, tests), ()))
        if (folder / "train" / SAVED).is_file():
            tests = (_saved_files(folder / name) for name in TESTS if (folder / name / SAVED).is_file())
            return SplitFiles(folder, _saved_files(folder / "train"), next(tests, ()))
    return None


def _shards(folder: Path, split: str, suffix: str) -> tuple[Path, ...]:
    """The files of a split: `train.csv`, or all of `train-00000-of-00003.parquet` and so on."""
    named = rf"{split}(-.*)?"
    files = sorted(p for p in folder.glob(f"*{suffix}") if re.fullmatch(named, p.name.removesuffix(suffix)))
    for file in files:
        of = re.fullmatch(r".*-\d+-of-(\d+)", file.name.removesuffix(suffix))
        if of and int(of[1]) != len(files):
            raise InputError(f"{folder} has {len(files)} of the {int(of[1])} shards of {file.name}; add the others.")
    return tuple(files)


def _saved_files(folder: Path) -> tuple[Path, ...]:
    """The Arrow files of a split that `datasets` saved, in its order."""
    path = folder / SAVED
    with reading(path):
        text = path.read_bytes()
    try:
        state = json.loads(text)
        files: Sequence[Path] = [folder / Path(entry["filename"]).name for entry in state["_data_files"]]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not that of a saved data set ({error}); save it again.") from None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError(f"{folder} is saved as a selection from other rows; call flatten_indices() and save it again.")
    missing = [file for file in files if not file.is_file()]
    if missing or not files:
        raise InputError(f"{folder} has no {missing[0].name if missing else 'Arrow file'}; save the data set again.")
    return tuple(files)


def held_out(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows test: a fifth of each class, at least one of a class with two or more.

    Drawn by a hash of row numbers, so that all seeds and strategies are tested on the same examples.

    >>> held_out(np.repeat([0, 1, 2], [10, 2, 1])).nonzero()[0].tolist()
    [3, 7, 11]
    """
    _, kinds, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = ordinals(kinds, hash_ids(derive("held out to test"), np.arange(len(labels))))
    wanted = np.where(counts > 1, np.maximum(1, counts // 5), 0)
    chosen: NDArray[np.bool_] = order < wanted[kinds]
    return chosen


def in_two(splits: Sequence[S], tests: NDArray[np.bool_] | None = None) -> tuple[S, S]:
    """Training and test split; of a single one, the rows in `tests` are its test split, by default those held out."""
    if len(splits) == 2:
        return splits[0], splits[1]
    tests = held_out(splits[0].labels) if tests is None else tests
    return splits[0].take(~tests), splits[0].take(tests)
