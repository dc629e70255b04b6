"""A map of the pool: items in two dimensions, where those that the model's inputs show as similar lie together.

The axes are the two principal components of a sample of all items. They are computed once for each number of tasks,
and an item keeps its place until then; so that a large pool costs no more than a small one, a part of it is shown.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import derive, hash_ids
from accuacl.labeling.project.erasing import usable_items
from accuacl.labeling.project.settings import NONE, ProjectSettings
from accuacl.labeling.project.tasks import TaskInfo, Tasks

SAMPLE = 2000  # how many items the axes are computed from
MOST = 1200  # the most items that are shown
SIDE = 16  # images that are given as pixels are reduced to this many pixels a side
INSIDE = (1.0, 99.0)  # the percentiles of the sample at the map's edges; items farther out are moved to the edge

Array = NDArray[np.float32]


@dataclass(frozen=True)
class _Axes:
    """The projection of inputs to places in the unit square."""

    mean: Array
    scale: Array
    components: Array
    low: Array
    high: Array

    def places(self, rows: Array) -> Array:
        flat = (rows - self.mean) / self.scale @ self.components.T
        return np.clip((flat - self.low) / np.maximum(self.high - self.low, 1e-9), 0, 1)


class PoolMap:
    """The places of items on the map. One object is used by all threads of a server."""

    def __init__(self, tasks: Tasks, settings: ProjectSettings) -> None:
        self._tasks, self._settings = tasks, settings
        self._turn = threading.Lock()
        self._key: tuple[int, ...] | None = None  # how many items each task had when the axes were computed
        self._items = np.empty(0, np.int64)  # all items, in a shuffled order that stays the same
        self._axes: _Axes | None = None

    def shown(self, first: Sequence[int]) -> tuple[NDArray[np.int64], Array, int]:
        """Return up to MOST items, `first` and then others, their places from 0 to 1, and the number of all items."""
        with self._turn:
            self._refresh()
            items, axes = self._items, self._axes
        if axes is None:
            return np.empty(0, np.int64), np.empty((0, 2), np.float32), len(items)
        wanted = np.array(list(dict.fromkeys(first)), np.int64)
        wanted = wanted[np.isin(wanted, items)][:MOST]
        rest = items[: 2 * MOST]
        chosen = np.concatenate([wanted, rest[~np.isin(rest, wanted)][: MOST - len(wanted)]])
        return chosen, axes.places(self._rows(chosen)), len(items)

    def _refresh(self) -> None:
        """Recompute the axes if the items have changed."""
        by_task = [usable_items(self._tasks, task) for task in self._prepared()]
        key = tuple(len(items) for items in by_task)
        if key == self._key:
            return
        items = np.concatenate([np.empty(0, np.int64), *by_task])
        order = np.argsort(hash_ids(derive(self._settings.seed, "map"), items), kind="stable")
        self._items, self._axes = items[order], self._fit(np.sort(items[order[:SAMPLE]]))
        self._key = key

    def _fit(self, chosen: NDArray[np.int64]) -> _Axes | None:
        from sklearn.decomposition import PCA  # slow to load

        if not len(chosen):
            return None
        rows = self._rows(chosen)
        mean = rows.mean(axis=0)
        unlike = self._settings.kind == "vectors" and self._settings.model == NONE  # each column has its own unit
        scale = rows.std(axis=0) if unlike else np.ones_like(mean)
        scale[scale < 1e-9] = 1
        centred = (rows - mean) / scale
        axes = min(2, *centred.shape)
        components = np.zeros((2, rows.shape[1]), np.float32)
        solver = "randomized" if min(centred.shape) > 2 else "full"
        if centred.any():  # if all items are equal, there is no principal direction
            components[:axes] = PCA(axes, svd_solver=solver, random_state=0).fit(centred).components_
        low, high = np.percentile(centred @ components.T, INSIDE, axis=0).astype(np.float32)
        return _Axes(mean, scale, components, low, high)

    def _prepared(self) -> list[TaskInfo]:
        """Return the tasks whose inputs are made."""
        return list(takewhile(lambda task: self._tasks.inputs(task.index) is not None, self._tasks.all()))

    def _rows(self, items: NDArray[np.int64]) -> Array:
        """Return the inputs of items, one row each; images are reduced to few pixels."""
        parts: list[Array] = []
        order: list[NDArray[np.int64]] = []
        for task in self._prepared():
            order.append(np.flatnonzero((items >= task.first) & (items < task.first + task.count)))
            parts.append(_flat(self._tasks.array(task.index, "inputs.npy"), items[order[-1]] - task.first))
        return np.concatenate(parts)[np.argsort(np.concatenate(order))]


def _flat(array: NDArray[np.generic], rows: NDArray[np.int64]) -> Array:
    if array.ndim > 2:
        step = max(1, array.shape[1] // SIDE)
        return np.asarray(array[:, ::step, ::step][rows], np.float32).reshape(len(rows), -1) / np.float32(255)
    return np.asarray(np.nan_to_num(np.asarray(array[rows], np.float32)), np.float32)
