"""Facility location: rows that stand for all the others, chosen greedily, one by one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick, portion
from accuacl.base.threads import count as threads_for
from accuacl.base.threads import spread
from accuacl.greedy.kernel import Array, Indices, Kernel, Vector, distinct

LIMIT = 2 << 30  # bytes for the parts of the kernel that are kept
BLOCK = 1 << 22  # numbers in a block of the kernel
TIE = 1e-12  # gains this close, relatively, are a tie
NOTHING = 1e-30  # less than any kernel that is not 0
MANY = 16  # contenders, beyond which a product in float64 comes before the definition
Near = tuple[NDArray[np.int32], NDArray[np.float32]]  # columns that matter to a row, and the kernel from above there
STALE, ROUGH, FINE, EXACT = range(4)  # how well the gain of a row is known


def facility_location(
    x: Vector,
    squared_width: float,
    count: int,
    *,
    weights: Vector | None = None,
    start: Vector | None = None,
    first: Sequence[int] = (),
    rows: int = 0,
    limit: int = LIMIT,
    tick: Tick | None = None,
) -> tuple[Indices, Vector]:
    """`count` rows of x whose nearest kernels, k(x, y) = exp(-|x - y|^2 / squared_width), sum to the most; and gains.

    Greedy: each pick adds most to the sum over x of weight_x * the largest kernel of x with a pick or with a row of
    `start`. Its gain is what it adds. Gains that agree to twelve digits are ties, which go to the smaller index; when
    nothing is left to gain the rest follows in the order of indices. The rows in `first` are picked before all others.
    `rows` at a time are dealt with (0: chosen for you), which does not change the picks; `tick` is told 2 * count.
    `x` is overwritten.

    Exact and lazy: one n x n product in blocks, of which up to `limit` bytes are kept, and few others.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> picks, gains = facility_location(x, 1.0, 3)
    >>> picks, gains.round(2)
    (array([3, 0, 1]), array([2.98, 1.99, 0.01]))
    """
    tick, total = tick or (lambda more: None), min(count, len(x))
    picks, gains = list(first)[:total], []
    if total:
        keep, group = distinct(x)
        kernel = Kernel(x[keep] if len(keep) < len(x) else x, squared_width)
        state = Coverage(kernel, np.bincount(group, weights, len(keep)).astype(np.float64), rows, limit)
        if start is not None:
            state.add(kernel.scaled(start))
        gains = state.add(kernel.x[group[picks]]).tolist()
        state.first_bounds(portion(tick, total, len(keep)))
        tick(len(picks))
    while len(picks) < total:
        row, gain = state.pick()
        if gain <= 0:
            picks += np.setdiff1d(np.arange(len(x)), picks)[: total - len(picks)].tolist()
            tick(total - len(gains))
            gains += [0.0] * (total - len(gains))
            break
        picks.append(int(keep[row]))
        gains.append(gain)
        tick(1)
    return np.array(picks, np.int64), np.array(gains)


class Coverage:
    """How well each row is covered, its largest kernel with a point added so far, and how much a row would add.

    The gain of row c is the sum over rows x of weight_x * max(0, k(c, x) - covered_x). It only falls as points are
    added, so an old gain is an upper bound, and so is one from a kernel that errs upwards. Only the rows whose bound is
    the largest are looked at more closely: many at a time by a product in float32, then one in float64 by the
    definition. A row x matters to c for as long as k(c, x) > covered_x: these x become fewer with every point, and once
    they fit into c's share of `limit` bytes they are kept, with their kernel, and no product is made for c again.
    """

    def __init__(self, kernel: Kernel, weights: Vector, rows: int = 0, limit: int = LIMIT) -> None:
        n = len(kernel.x)
        self.kernel, self.weights = kernel, weights
        self.rows = rows or max(8, min(256, BLOCK // max(1, n)))
        self.covered = np.zeros(n)
        self.bounds = np.full(n, np.inf)
        self.level = np.full(n, STALE, np.int8)
        self.exact: dict[int, tuple[Array, Vector]] = {}  # columns and kernel of rows whose gain is known exactly
        self.whole = np.empty((n, n), np.float32) if 5 * n * n <= limit else None  # the kernel from above
        self.most = n // 8 if self.whole is not None else limit // (8 * n)
        self.near: list[Near | None] = [None] * n
        self.far = np.ones(n, bool)  # rows of which no columns are kept
        self.work = 2.0 * n * kernel.x.shape[1]  # floating-point operations of the product of one row with all
        self.local = threading.local()

    def add(self, points: Vector) -> Vector:
        """Cover by points given; how much each has added."""
        gains = np.empty(len(points))
        for i in range(0, len(points), self.rows):
            block = points[i : i + self.rows]
            for j, above in enumerate(self.kernel.above(block)):
                columns = np.flatnonzero(above > self._floor(above.dtype))
                gains[i + j] = self._cover(columns, self.kernel.exact(block[j], columns))
        return gains

    def first_bounds(self, tick: Tick) -> None:
        """Bound the gains of all rows."""
        n = len(self.bounds)

        def bound(first: int) -> int:
            x = self.kernel.x[first : first + self.rows]
            out = self._buffers(len(x))[0] if self.whole is None else self.whole[first : first + len(x)]
            self._bound(np.arange(first, first + len(x)), self.kernel.above(x, out=out), ROUGH)
            return len(x)

        for done in spread(bound, range(0, n, self.rows), n * self.work):
            tick(done)

    def pick(self) -> tuple[int, float]:
        """Add the row that gains most, the first of those that tie; it and its gain, 0 if there is none left."""
        while True:
            largest = int(np.argmax(self.bounds))
            top = self.bounds[largest]
            row = int(np.argmax(self.bounds >= top * (1 - TIE)))
            if top <= 0:
                return row, 0.0
            if self.level[row] != EXACT:
                self._look_closer(row)
            elif self.level[largest] != EXACT and top > max(self.bounds[list(self.exact)]) * (1 + TIE / 8):
                self._look_closer(largest)  # its gain may be less, and then an earlier row may tie with the largest
            else:
                break
        gain = float(self.bounds[row])
        self._cover(*self.exact[row])
        self.bounds[row] = -np.inf
        self.level[:] = STALE
        self.exact.clear()
        return row, gain

    def _look_closer(self, row: int) -> None:
        """Lower the bound of a row by one more step."""
        if self.level[row] == STALE:
            if self.far[row]:
                rows = self._largest((self.level == STALE) & self.far)
                work = 0.0 if self.whole is not None else len(rows) * self.work
                list(spread(self._bound_far, np.array_split(rows, threads_for(work)), work))
            else:
                self._bound_near(row)
            return
        known = max((self.bounds[row] for row in self.exact), default=np.inf)
        contenders = self._largest((self.level == ROUGH) & (self.bounds > known))
        if self.level[row] == ROUGH and len(contenders) > MANY:
            self._bound(contenders, self.kernel.above(self.kernel.x[contenders], fine=True), FINE)
        else:
            self._compute(row)

    def _bound_far(self, rows: Indices) -> None:
        """Bound the gains of rows of which no columns are kept."""
        out = self._buffers(len(rows))[0]
        if self.whole is not None:
            self._bound(rows, np.take(self.whole, rows, axis=0, out=out), ROUGH)
        else:
            self._bound(rows, self.kernel.above(self.kernel.x[rows], out=out), ROUGH)

    def _bound(self, rows: Indices, above: Array, level: int) -> None:
        """Bound the gains of rows by their kernel from above, and keep what matters of it when that is little."""
        kind = above.dtype
        more = np.subtract(above, self._floor(kind), out=self._buffers(len(rows))[1] if kind == np.float32 else None)
        np.maximum(more, 0, out=more)
        more *= self.weights.astype(kind)
        gains = more.sum(axis=1) * (1 + 128 * np.finfo(kind).eps) + NOTHING * self.weights.sum()
        self.bounds[rows] = np.minimum(self.bounds[rows], gains)
        self.level[rows] = level
        if kind == np.float32:
            matters = more > 0
            counts = np.count_nonzero(matters, axis=1)
            for i in np.flatnonzero(counts <= self.most).tolist():
                columns = np.flatnonzero(matters[i])
                self.near[rows[i]] = columns.astype(np.int32), above[i, columns]
                self.far[rows[i]] = False

    def _bound_near(self, row: int) -> None:
        """Bound the gain of a row by what is kept of its kernel, and let go of what no longer matters."""
        near = self.near[row]
        assert near is not None
        columns, above = near
        more = above - self.covered[columns]
        matters = more > 0
        if 2 * np.count_nonzero(matters) <= len(columns):
            columns, more = columns[matters], more[matters]
            self.near[row] = columns, above[matters]
        bound = float(self.weights[columns] @ np.maximum(more, 0, out=more)) * (1 + len(more) * 2.0**-52)
        self.bounds[row] = min(self.bounds[row], bound)
        self.level[row] = ROUGH

    def _compute(self, row: int) -> None:
        """The gain of a row by the definition."""
        columns, above = self.near[row] or (np.arange(len(self.covered)), 1 if self.whole is None else self.whole[row])
        columns = columns[above > self.covered[columns]]
        kernel = self.kernel.exact(self.kernel.x[row], columns)
        more = kernel - self.covered[columns]
        self.bounds[row] = (self.weights[columns] * more)[more > 0].sum()
        self.level[row] = EXACT
        self.exact[row] = columns, kernel

    def _buffers(self, rows: int) -> tuple[Array, Array]:
        """Two arrays in float32, for so many rows and all columns, which each thread has of its own."""
        if not hasattr(self.local, "buffers"):
            self.local.buffers = np.empty((2, min(self.rows, len(self.bounds)), len(self.bounds)), np.float32)
        return self.local.buffers[0, :rows], self.local.buffers[1, :rows]

    def _largest(self, which: Array) -> Indices:
        """Of the rows asked for those with the largest bounds, as many as a block has."""
        rows = np.flatnonzero(which & np.isfinite(self.bounds))
        return rows[np.argsort(-self.bounds[rows], kind="stable")[: self.rows]]

    def _floor(self, kind: Any) -> Array:
        """Not more than how well each row is covered: what an upper bound of a kernel must exceed to matter."""
        return np.maximum(self.covered * (1 - np.finfo(kind).eps), NOTHING).astype(kind)

    def _cover(self, columns: Array, kernel: Vector) -> float:
        more = kernel - self.covered[columns]
        gains = more > 0
        self.covered[columns[gains]] = kernel[gains]
        return float((self.weights[columns] * more)[gains].sum())
