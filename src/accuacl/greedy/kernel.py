"""The Gaussian kernel between rows: upper bounds for many pairs by matrix products, exact values for a few."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import derive, hash_ids

Array = NDArray[Any]
Vector = NDArray[np.float64]
Indices = NDArray[np.int64]

SAMPLE = 1000  # rows that the width of the kernel is measured on
SMALLEST = 1e-20  # squared distances of rows of length 1 below this are rounding errors
FAR = 69.0  # beyond this exponent, where the kernel is 1e-30, it counts as 0
PAIRS = 1 << 16  # numbers in one block of exact differences, small enough for the cache


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
    is taken. If most rows have so many copies that this is 0, it is the mean of all squared distances; if all rows are
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
        used = np.flatnonzero(x.any(axis=0))  # a column of zeros, of which texts have many, adds nothing to a product
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
        x, some = self.x if fine else self.rough, points if fine else points[:, self.columns]
        rounding = float(np.finfo(x.dtype).eps) / 2
        error = rounding * 2 * (self.x.shape[1] * (2 if fine else 1) + 16)
        out = np.matmul(some.astype(x.dtype), x.T, out=out)
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
