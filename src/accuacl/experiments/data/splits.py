"""Training and test split: which files belong to which, and what is held out if there is no test split.

Files are train.csv and test.csv, shards of these, or folders that Hugging Face `datasets` saved.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.base.randomness import derive, hash_ids
from accuacl.experiments.data.arrival import ordinals
from accuacl.experiments.data.dataset import RawSplit, Split
from accuacl.experiments.data.table_files import SUFFIXES, table_suffix

SAVED = "state.json"  # what Hugging Face `datasets` writes beside the Arrow files of a split
TESTS = (r"test", r"val(id|idation)?")
READING = "a fifth held out"  # what `Source.reading` has then


@dataclass(frozen=True)
class SplitFiles:
    """The files of each split. No test files: a column says which rows test, or a fifth is held out."""

    place: Path
    train: tuple[Path, ...]
    test: tuple[Path, ...] = ()


def find_tables(path: Path) -> SplitFiles | None:
    """The tables in a folder, or the one that a file is; None if there are none."""
    if path.is_file():
        return SplitFiles(path, (path,)) if table_suffix(path) else None
    if (path / SAVED).is_file():
        return SplitFiles(path, saved_files(path))
    for folder in (path, path / "data"):
        for suffix in SUFFIXES:
            train = shards(folder, "train", suffix)
            if train:
                tests = (shards(folder, split, suffix) for split in TESTS)
                return SplitFiles(folder, tuple(train), tuple(next((files for files in tests if files), ())))
        if (folder / "train" / SAVED).is_file():
            names = ("test", "validation", "valid", "val")
            test = next((folder / name for name in names if (folder / name / SAVED).is_file()), None)
            return SplitFiles(folder, saved_files(folder / "train"), saved_files(test) if test else ())
    return None


def shards(folder: Path, split: str, suffix: str) -> list[Path]:
    """The files of a split: `train.csv`, or all of `train-00000-of-00003.parquet` and so on."""
    named = rf"{split}(-.*)?"
    files = sorted(p for p in folder.glob(f"*{suffix}") if re.fullmatch(named, p.name.removesuffix(suffix)))
    for file in files:
        of = re.fullmatch(r".*-\d+-of-(\d+)", file.name.removesuffix(suffix))
        if of and int(of[1]) != len(files):
            raise InputError(f"{folder} has {len(files)} of the {int(of[1])} shards of {file.name}; add the others.")
    return files


def saved_files(folder: Path) -> tuple[Path, ...]:
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
        raise InputError(f"{folder} is saved as a choice of other rows; call flatten_indices() and save it again.")
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


def split_rows(split: Split) -> tuple[Split, Split]:
    """Training and test split of one."""
    chosen = held_out(split.labels)
    train, test = (
        Split(split.inputs[rows], split.labels[rows], {name: values[rows] for name, values in split.columns.items()})
        for rows in (~chosen, chosen)
    )
    return train, test


def split_raw(raw: RawSplit) -> tuple[RawSplit, RawSplit]:
    """Training and test split of one whose images are not decoded yet."""
    chosen = held_out(raw.labels)

    def part(rows: NDArray[np.bool_]) -> RawSplit:
        columns: dict[str, list[Any]] = {n: list(itertools.compress(v, rows)) for n, v in raw.columns.items()}
        return RawSplit(raw.labels[rows], lambda: itertools.compress(raw.images(), rows), columns)

    return part(~chosen), part(chosen)
