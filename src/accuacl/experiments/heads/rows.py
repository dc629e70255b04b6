"""Labelled rows as a fit takes them: checked, in an order of their own, and a part of them that is spread over all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.experiments.heads.calibration import Floats, Ints


def checked(
    x: NDArray[Any], labels: Ints, weights: Floats | None, classes: int, ids: Ints | None = None
) -> tuple[NDArray[Any], Ints, Floats, int]:
    """Rows, labels, weights and the number of classes; refused if they do not go together."""
    x, labels = table_of(x, "rows"), _whole(np.asarray(labels))
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights, np.float64)
    if len(x) == 0 or len(x) != len(labels):
        raise InputError(f"{len(x)} rows came with {len(labels)} labels; give one label per row, and at least one row.")
    for name, values in (("weights", weights), ("ids", ids)):
        if values is not None and np.shape(values) != (len(x),):
            raise InputError(f"{len(x)} rows came with {name} of the shape {np.shape(values)}; give one per row.")
    classes = classes or int(labels.max()) + 1
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise InputError(f"labels run from {labels.min()} to {labels.max()}; give labels from 0 to {classes - 1}.")
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InputError("the weights of rows must be finite and above 0; remove rows with weight 0.")
    return x, labels, weights, classes


def _whole(labels: NDArray[Any]) -> Ints:
    """Labels as int64; floats that are whole numbers are taken."""
    what = "give one whole number from 0 for each row; KernelRidgeHead takes names."
    if labels.ndim != 1:
        raise InputError(f"the labels have the shape {labels.shape}; {what}")
    if labels.dtype.kind not in "biuf":
        raise InputError(f"the labels are not numbers, such as {next(iter(labels.tolist()), '')!r}; {what}")
    if labels.dtype.kind == "f":
        other = labels[~(np.abs(labels) < 2**53) | (labels != np.floor(labels))]  # NaN among them
        if len(other):
            raise InputError(f"the labels have {other[0]}; {what}")
    return labels.astype(np.int64)


def table_of(x: Any, name: str, columns: int | None = None) -> NDArray[Any]:
    """Rows as an array of numbers, n x d; refused if they are none, or not as wide as those that a head was fitted to.

    name: what they are called in the sentence.
    """
    x = np.asarray(x)
    if x.ndim != 2:
        raise InputError(f"the {name} have the shape {x.shape}; give a table, n x d.")
    if x.dtype.kind not in "biuf":
        raise InputError(f"the {name} are not numbers but of the type {x.dtype}; give an array of numbers.")
    if columns not in (None, x.shape[1]):
        raise InputError(f"the {name} have {x.shape[1]} columns and the head was fitted to {columns}; give the same.")
    return x


def order_of(x: NDArray[Any], labels: Ints, weights: Floats, ids: Ints | None) -> NDArray[np.intp]:
    """The order in which rows are fitted: by their ids; without ids, and among rows with the same id, by content."""
    if ids is not None and len(np.unique(ids)) == len(ids):
        return np.argsort(ids)
    order = canonical_order(x, labels, weights)
    return order if ids is None else order[np.argsort(np.asarray(ids)[order], kind="stable")]


def canonical_order(x: NDArray[Any], labels: Ints, weights: Floats) -> NDArray[np.intp]:
    """An order of rows that depends on what is in them alone; rows that are equal have equal places."""
    parts = (np.ascontiguousarray(x), labels[:, None], weights[:, None])
    content = np.hstack([part.view(np.uint8).reshape(len(x), -1) for part in parts])
    return np.argsort(np.ascontiguousarray(content).view(f"V{content.shape[1]}")[:, 0], kind="stable")


def part_of(own: Ints, count: int) -> NDArray[np.intp]:
    """This many rows, in order, as evenly from all classes as possible, spread over each class."""
    if len(own) <= count:
        return np.arange(len(own))
    turn = np.empty(len(own))
    for c in range(int(own.max()) + 1):
        mine = np.flatnonzero(own == c)
        turn[mine[_spread(len(mine))]] = np.arange(len(mine))
    return np.sort(np.argsort(turn, kind="stable")[:count])


def _spread(n: int) -> NDArray[np.intp]:
    """0 .. n - 1 in an order of which every beginning is spread over all: by the golden ratio's multiples."""
    return np.argsort((np.arange(n) * 0.6180339887498949) % 1.0, kind="stable")
