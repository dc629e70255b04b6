"""Kernels between rows: sums of simple kernels, each on a block of columns whose rows are scaled to length 1.

    terms = (Term("gaussian", (0, 256)), Term("linear", (256, 4352), weight=0.3))
    kernel(terms, x, z)     # len(x) x len(z)

With c the cosine of two rows and t their angle: `linear` is c, `gaussian` is exp(-|x - z|^2) = exp(2 c - 2), and
`arc-cosine` is ((sin t + (pi - t) cos t) / pi)^2: that of an infinitely wide random layer of rectified units, squared.
Rows that are zero everywhere stay zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, no_such

Matrix = NDArray[np.float64]
Blocks = Sequence[tuple[int, int]]
KERNELS = ("linear", "gaussian", "arc-cosine")
SPARSE = 0.05  # blocks with a smaller share of numbers other than 0, such as counts of words, are multiplied as sparse
NEIGHBOURS = 10  # by which a row is smoothed
PART = 1024  # rows of a block that are multiplied at a time


@dataclass(frozen=True, order=True)
class Term:
    """One summand: weight * kernel on the columns (first, last + 1)."""

    kernel: str
    columns: tuple[int, int]
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise no_such("kernel", self.kernel, KERNELS)
        if not 0 <= self.columns[0] < self.columns[1]:
            raise InputError(f"the columns {self.columns} are not a range; give (first, last + 1).")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise InputError(f"the kernel {self.kernel} has the weight {self.weight}; give a number above 0.")


Terms = tuple[Term, ...]


def kernel(terms: Terms, x: NDArray[Any], z: NDArray[Any]) -> Matrix:
    """The sum of the terms for all pairs of a row of x and one of z."""
    return next(kernel_by_parts(terms, [x], z))


def kernel_by_parts(terms: Terms, parts: Iterable[NDArray[Any]], z: NDArray[Any]) -> Iterator[Matrix]:
    """For each part, the sum of the terms for all pairs of one of its rows and one of z, which is scaled only once."""
    blocks = {columns: unit_rows(z, columns) for columns in dict.fromkeys(term.columns for term in terms)}
    for x in parts:
        total = np.zeros((len(x), len(z)))
        for columns, other in blocks.items():
            add_terms(total, terms, columns, Cosines(unit_rows(x, columns), other))
        yield total


def add_terms(total: Matrix, terms: Terms, columns: tuple[int, int], cosines: Cosines) -> None:
    """Add the terms of one block of columns to a kernel matrix."""
    for term in terms:
        if term.columns == columns:
            total += term.weight * cosines.kernel(term.kernel)


class Cosines:
    """The cosines between rows of length 1 or 0, and the kernels that are made of them; z None: between rows of x."""

    def __init__(self, x: Matrix, z: Matrix | None = None) -> None:
        other = x if z is None else z
        self.there = x.any(axis=1), other.any(axis=1)
        self.values = _symmetric_product(x) if z is None else _product(x, other)
        np.clip(self.values, -1.0, 1.0, out=self.values)
        if z is None:  # rounding must not make a row differ from itself
            np.fill_diagonal(self.values, self.there[0])

    def kernel(self, name: str) -> Matrix:
        """The kernel called `name` for every pair of rows."""
        if name == "linear":
            return self.values
        if name == "gaussian":
            lengths = np.add.outer(*(there.astype(np.float64) for there in self.there))
            squares: Matrix = lengths - 2 * self.values
            return np.exp(-squares, out=squares)
        angle = np.arccos(self.values)
        layer: Matrix = (np.sin(angle) + (np.pi - angle) * self.values) / np.pi
        return layer**2 * np.logical_and.outer(*self.there)


def unit_rows(x: NDArray[Any], columns: tuple[int, int]) -> Matrix:
    """The rows of a block of columns at length 1, in float64; rows of zeros stay zero."""
    if columns[1] > x.shape[1]:
        raise InputError(f"rows have {x.shape[1]} columns and the kernel needs {columns[1]}; give all of them.")
    part = x[:, columns[0] : columns[1]]
    largest = np.maximum(part.max(axis=1), -part.min(axis=1).astype(np.float64))[:, None]
    if not np.isfinite(largest).all():
        raise InputError("the rows have numbers that are not finite; remove these rows, or put 0 in their place.")
    # Squares of huge numbers would overflow, those of tiny ones vanish.
    rows: Matrix = np.divide(part, np.where(largest > 0, largest, 1.0), dtype=np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    rows /= np.where(lengths > 0, lengths, 1.0)
    return rows


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Moves rows halfway to the mean of their nearest neighbours among reference rows, block by block, at length 1."""

    reference: NDArray[Any]
    blocks: tuple[tuple[int, int], ...]

    def __call__(self, x: NDArray[Any]) -> Matrix:
        smoothed = np.zeros((len(x), x.shape[1]))
        for columns in self.blocks:
            near, rows = unit_rows(self.reference, columns), unit_rows(x, columns)
            nearest = np.argsort(-(rows @ near.T), axis=1, kind="stable")[:, :NEIGHBOURS]
            means = np.stack([near[each].mean(axis=0) for each in nearest]) if len(x) else rows
            towards = unit_rows(means, (0, means.shape[1])) * rows.any(axis=1, keepdims=True)  # zeros stay zero
            smoothed[:, columns[0] : columns[1]] = rows + towards
        return smoothed


def _product(x: Matrix, z: Matrix) -> Matrix:
    sparse = sparse_rows(z)
    return x @ z.T if sparse is None else np.asarray((to_sparse(x) @ sparse.T).toarray(), np.float64)


def _symmetric_product(x: Matrix) -> Matrix:
    """x @ x.T, equal to its transpose to the bit; only parts on and below the diagonal are computed."""
    sparse = sparse_rows(x)
    if sparse is not None:
        product = (sparse @ sparse.T).toarray()
        return np.asarray((product + product.T) / 2, np.float64)
    product = np.empty((len(x), len(x)))
    for start in range(0, len(x), PART):
        part = x[start:] @ x[start : start + PART].T
        square = part[:PART]
        square[:] = (square + square.T) / 2
        product[start:, start : start + PART] = part
        product[start : start + PART, start:] = part.T
    return product


def sparse_rows(x: NDArray[Any]) -> Any:
    """A block of columns as a sparse matrix if it is wide and has few numbers other than 0, as counts of words have."""
    if x.shape[1] <= PART:
        return None
    places = np.flatnonzero(x != 0)
    return _sparse_at(x, places) if len(places) < SPARSE * x.size else None


def to_sparse(x: NDArray[Any]) -> Any:
    """Rows as a sparse matrix; several times faster than SciPy finds what is not 0."""
    return _sparse_at(x, np.flatnonzero(x != 0))


def _sparse_at(x: NDArray[Any], places: NDArray[np.intp]) -> Any:
    from scipy.sparse import csr_array

    rows, columns = np.divmod(places, x.shape[1])
    begins = np.searchsorted(rows, np.arange(len(x) + 1))
    return csr_array((x[rows, columns], columns.astype(np.int32), begins.astype(np.int32)), shape=x.shape)


# What suits each kind of data, chosen in docs/results/heads/chosen.md

OTHER_BLOCKS = 0.3  # weight of the linear kernel of every block but the first, such as TF-IDF beside token vectors


def candidates_of_kind(kind: str, blocks: Blocks) -> list[Terms]:
    """Sums of kernels for texts, images, tables or vectors; leave-one-out chooses among them."""
    names = ("gaussian",) if kind == "texts" else ("linear", "gaussian")
    first = (Term(name, blocks[0]) for name in names)
    return [(*first, *(Term("linear", block, OTHER_BLOCKS) for block in blocks[1:]))]


def pool_learning_of_kind(kind: str, embeddings: bool) -> str:
    """How to learn from the pool. embeddings: vectors come from a network; otherwise they are columns of a table."""
    return "self" if kind in ("texts", "images", "files") or (kind == "vectors" and embeddings) else "off"
