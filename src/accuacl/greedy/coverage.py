"""How well each row is covered by the points added so far, and exactly which row would add most."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.base.threads import count as threads_for
from accuacl.base.threads import spread
from accuacl.greedy.kernel import Array, Indices, Kernel, Vector

LIMIT = 2 << 30  # bytes for the parts of the kernel that are kept
BLOCK = 1 << 22  # numbers in a block of the kernel
TIE = 1e-12  # gains this close, relatively, are a tie
NOTHING = 1e-30  # less than any kernel that is not 0
MANY = 16  # with more contenders than this, a float64 product comes before the definition
Near = tuple[NDArray[np.int32], NDArray[np.float32]]  # columns that matter to a row, and the kernel's upper bound
STALE, ROUGH, FINE, EXACT = range(4)  # how well the gain of a row is known


class Coverage:
    """How well each row is covered (its largest kernel with a point added so far) and how much a row would add.

    The gain of row c is the sum over rows x of weight_x * max(0, k(c, x) - covered_x). It only decreases as points are
    added, so an old gain is an upper bound, as is a gain from an upper bound of the kernel. Only rows with the largest
    bounds are computed more precisely: many at a time by a float32 product, then one at a time in float64 by the
    definition. A row x matters to c as long as k(c, x) > covered_x. Every point leaves fewer such x; once they fit into
    c's share of `limit` bytes they are kept, with their kernel, and no more products are made for c.
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
        """Add these points; returns how much each has added."""
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
        """Add the row with the largest gain, the first of those that tie; returns it and its gain (0: none is left)."""
        while True:
            largest = int(np.argmax(self.bounds))
            top = self.bounds[largest]
            row = int(np.argmax(self.bounds >= top * (1 - TIE)))
            if top <= 0:
                return row, 0.0
            if self.level[row] != EXACT:
                self._look_closer(row)
            elif self.level[largest] != EXACT and top > max(self.bounds[list(self.exact)]) * (1 + TIE / 8):
                self._look_closer(largest)  # its gain may be smaller, and then an earlier row may tie with the largest
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
        """Bound the gains of rows by an upper bound of their kernel, and keep what matters once it is small."""
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
        """Bound the gain of a row by the kept part of its kernel, and drop what no longer matters."""
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
        """The rows with the largest bounds among those asked for, as many as fit into a block."""
        rows = np.flatnonzero(which & np.isfinite(self.bounds))
        return rows[np.argsort(-self.bounds[rows], kind="stable")[: self.rows]]

    def _floor(self, kind: Any) -> Array:
        """A lower bound of how well each row is covered, which an upper bound of a kernel must exceed to matter."""
        return np.maximum(self.covered * (1 - np.finfo(kind).eps), NOTHING).astype(kind)

    def _cover(self, columns: Array, kernel: Vector) -> float:
        more = kernel - self.covered[columns]
        gains = more > 0
        self.covered[columns[gains]] = kernel[gains]
        return float((self.weights[columns] * more)[gains].sum())
