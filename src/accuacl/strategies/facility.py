"""Greedy facility location under a Gaussian kernel: the rows that cover all others best, exactly and lazily.

Upper bounds of the kernel and of gains come from matrix products for many pairs at once; only the rows that may be
picked next are computed by the definition.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick, portion
from accuacl.base.randomness import derive, hash_ids
from accuacl.base.threads import count as threads_for, spread

Array = NDArray[Any]
Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

SAMPLE = 1000  # rows that the width of the kernel is measured on
SMALLEST = 1e-20  # squared distances of rows of length 1 below this are rounding errors
FAR = 69.0  # beyond this exponent, where the kernel is 1e-30, it counts as 0
PAIRS = 1 << 16  # numbers in one block of exact differences, small enough for the cache
LIMIT = 2 << 30  # bytes for the parts of the kernel that are kept
BLOCK = 1 << 22  # numbers in a block of the kernel
TIE = 1e-12  # gains this close, relatively, are a tie
NOTHING = 1e-30  # less than any kernel that is not 0
MANY = 16  # with more contenders than this, a float64 product comes before the definition
Near = tuple[NDArray[np.int32], NDArray[np.float32]]  # columns that matter to a row, and the kernel's upper bound
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
    """The `count` rows that cover x best, by the kernel k(x, y) = exp(-|x - y|^2 / squared_width); and their gains.

    Greedy: each pick is the row that adds most to the sum over x of weight_x * the largest kernel of x with a pick or
    with a row of `start`; its gain is what it adds. Gains that agree to twelve digits are ties, which go to the smaller
    index; when nothing more can be gained, the other rows follow in the order of indices. The rows in `first` are
    picked before all others. `rows` are processed at a time (0: chosen for you), which does not change the picks.
    `tick` is called for 2 * count in all. `x` is overwritten.

    Exact and lazy: one n x n product in blocks, of which up to `limit` bytes are kept, and few more.

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


def unit(rows: Array) -> Vector:
    """Each row scaled to length 1, in float64; a row of zeros stays zero. No row depends on its type or on other rows.

    >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    out = np.array(rows, np.float64, order="C")
    for i in range(0, len(out), 256):
        block = out[i : i + 256]
        top = np.maximum(block.max(axis=1, keepdims=True), -block.min(axis=1, keepdims=True))
        if not ((top > 1e-100) & (top < 1e100)).all():  # no square may leave the range of float64
            block /= np.where((top > 1e-100) & (top < 1e100) | (top == 0), 1, top)
        length = np.sqrt(np.square(block).sum(axis=1, keepdims=True))
        block /= np.where(length > 0, length, 1)
    return out


def distinct(x: Vector) -> tuple[Indices, Indices]:
    """The index of the first of each set of equal rows, ascending; and for each row, which of these it equals.

    >>> distinct(np.array([[1.0], [2.0], [1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    _, inverse, counts = np.unique(x.sum(axis=1), return_inverse=True, return_counts=True)
    owner = np.arange(len(x))
    first: dict[bytes, int] = {}
    for row in np.flatnonzero(counts[inverse] > 1).tolist():  # only rows with the same sum can be equal
        owner[row] = first.setdefault((x[row] + 0.0).tobytes(), row)  # + 0: -0 becomes 0
    return np.unique(owner, return_inverse=True)


def sample(n: int) -> Indices:
    """A fixed sample of 1000 of n rows, by the hashes of their indices; all rows if there are fewer."""
    if n <= SAMPLE:
        return np.arange(n)
    return np.sort(np.argsort(hash_ids(derive("width of the kernel"), np.arange(n)), kind="stable")[:SAMPLE])


def squared_width(x: Vector, share: float) -> float:
    """s^2 of the kernel: the median, over rows, of the `share`-quantile of their squared distances to all rows.

    It is about the squared radius within which a row has this share of the rows. Of more than 1000 rows a fixed sample
    is taken. If copies make this 0 for most rows, it is the mean of all squared distances; if all rows are
    equal, 1.
    """
    rows = x[sample(len(x))]
    if len(rows) < 2:
        return 1.0
    median = _median_of_quantiles(rows, share)
    if median > SMALLEST:
        return median
    from scipy.spatial.distance import pdist, squareform  # here, for it takes a while to import

    mean = float(squareform(pdist(rows, "sqeuclidean")).mean())
    return mean if mean > SMALLEST else 1.0


def _median_of_quantiles(rows: Vector, share: float) -> float:
    """The median, over rows, of the quantile of their squared distances to all rows, by the definition.

    Only the rows that may be in the middle are computed so: a matrix product, which is many times faster, says which.
    """
    from scipy.spatial.distance import cdist

    squares = np.square(rows).sum(axis=1)
    products = rows @ rows.T
    products *= -2
    products += squares
    products += squares[:, None]
    about = np.quantile(products, share, axis=1)
    error = 8 * (rows.shape[1] + 16) * float(np.finfo(np.float64).eps) * float(squares.max())  # of a squared distance
    low, high = ((len(rows) - 1) // 2, len(rows) // 2)  # the places of the middle, in ascending order
    ordered = np.sort(about)
    near = np.flatnonzero((about >= ordered[low] - 2 * error) & (about <= ordered[high] + 2 * error))
    exact = about.copy()
    for row in near.tolist():  # one by one, so that no value depends on the others
        exact[row] = np.quantile(cdist(rows[row : row + 1], rows, "sqeuclidean"), share, axis=1)[0]
    return float(np.median(exact))


class Kernel:
    """k(x, y) = exp(-|x - y|^2 / s^2), 0 where that is below 1e-30, between given points and the n rows of x.

    `x` is overwritten: its rows are centred and scaled, so that the exponent is half of a squared distance.
    """

    def __init__(self, x: Vector, squared_width: float) -> None:
        self.mean, self.factor = x.mean(axis=0), math.sqrt(2 / squared_width)
        self.x = x
        for i in range(0, len(x), 1024):
            x[i : i + 1024] = self.scaled(x[i : i + 1024])
        self.halves = _halves(x)
        used = np.flatnonzero(x.any(axis=0))  # columns of zeros, common in texts, add nothing to a product
        self.columns: Indices | slice = used if 4 * len(used) < 3 * x.shape[1] else slice(None)
        self.rough = np.ascontiguousarray(x[:, self.columns], np.float32)

    def scaled(self, rows: Vector) -> Vector:
        """Rows like those of x, centred and scaled as `above` and `exact` expect them."""
        return (rows - self.mean) * self.factor

    def above(self, points: Vector, fine: bool = False, out: Array | None = None) -> Array:
        """A close upper bound of the kernel of every point with every row; `fine`: a very close one.

        The exponent x.y - |x|^2 / 2 - |y|^2 / 2 from a product in float32 (fine: float64) errs by at most
        (d + 16) (|x|^2 + |y|^2) roundings, which are added to it; the exact one, beside float64, by d more.
        """
        x, taken = self.x if fine else self.rough, points if fine else points[:, self.columns]
        rounding = float(np.finfo(x.dtype).eps) / 2
        error = rounding * 2 * (self.x.shape[1] * (2 if fine else 1) + 16)
        out = np.matmul(taken.astype(x.dtype), x.T, out=out)
        out += ((error - 1) * self.halves).astype(x.dtype)
        out += ((error - 1) * _halves(points) + 16 * rounding).astype(x.dtype)[:, None]  # exp errs by 3 units
        np.clip(out, -80, 0, out=out)  # smaller numbers would be slow
        return np.exp(out, out=out)

    def exact(self, point: Vector, rows: NDArray[np.integer]) -> Vector:
        """The kernel of a point with some rows by the definition, in float64; no value depends on other rows."""
        out = np.empty(len(rows))
        size = max(1, PAIRS // max(1, self.x.shape[1]))
        for i in range(0, len(rows), size):
            difference = self.x[rows[i : i + size]] - point
            out[i : i + size] = np.square(difference, out=difference).sum(axis=1)
        out /= -2
        far = out < -FAR
        np.exp(out, out=out)
        out[far] = 0
        return out


def _halves(rows: Vector) -> Vector:
    """Half of each row's squared length."""
    out = np.empty(len(rows))
    for i in range(0, len(rows), 1024):
        out[i : i + 1024] = np.square(rows[i : i + 1024]).sum(axis=1) / 2
    return out


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
        self.far = np.ones(n, bool)  # rows without kept columns
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
        """Bound the gains of rows without kept columns."""
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
        """Two float32 arrays of this many rows and all columns, separate for each thread."""
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
