"""A test split for data that come without one: a fifth of each class, the same rows every time."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import derive, hash_ids
from accuacl.data.arrival import places
from accuacl.data.dataset import Split
from accuacl.data.source import RawSplit

PART = 5  # one of so many
READING = "a fifth held out"


def held_out(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows test: a fifth of each class, at least one of a class with two.

    Drawn by a hash of row numbers, so that all seeds and strategies are tested on the same examples.

    >>> held_out(np.repeat([0, 1, 2], [10, 2, 1])).nonzero()[0].tolist()
    [3, 7, 11]
    """
    _, kinds, counts = np.unique(labels, return_inverse=True, return_counts=True)
    order = places(kinds, hash_ids(derive("held out to test"), np.arange(len(labels))))
    wanted = np.where(counts > 1, np.maximum(1, counts // PART), 0)
    chosen: NDArray[np.bool_] = order < wanted[kinds]
    return chosen


def tell(place: Path, train: int, test: int) -> None:
    """Say that so many examples are held out."""
    warnings.warn(
        f"{place} has no test split; a fifth of each class, {test} of {train + test} examples, is held out to test "
        "with.",
        stacklevel=3,
    )


def split_rows(split: Split) -> tuple[Split, Split]:
    """Training and test split of one."""
    chosen = held_out(split.labels)
    train, test = (
        Split(split.inputs[rows], split.labels[rows], {name: values[rows] for name, values in split.columns.items()})
        for rows in (~chosen, chosen)
    )
    return train, test


def split_raw(raw: RawSplit) -> tuple[RawSplit, RawSplit]:
    """The same for images that are not decoded yet."""
    chosen = held_out(raw.labels)

    def part(rows: NDArray[np.bool_]) -> RawSplit:
        columns: dict[str, list[Any]] = {n: list(itertools.compress(v, rows)) for n, v in raw.columns.items()}
        return RawSplit(raw.labels[rows], lambda: itertools.compress(raw.images(), rows), columns)

    return part(~chosen), part(chosen)
