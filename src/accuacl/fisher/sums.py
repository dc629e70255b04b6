"""Sums of Fisher embeddings over large sets, and the target's mean, the same for every order of the rows.

Matrix products in float64 differ in their last bits with the order of the rows, their number and the library. Every
term is at least 0, so the error is a small part of the sum and has a bound. The mean is rounded to the precision of
float32; the few entries that the error could carry across a rounding boundary (one pool in a thousand has one) are
added up again in whole numbers, without any error. So the target is a function of the set of rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.base.threads import spread
from accuacl.features import Features

Vector = NDArray[np.float64]
Entries = NDArray[np.int64]  # m x 2: class, column

SUM_ROWS = 256  # rows per matrix product: a block of 512-wide float64 embeddings is 1 MiB
PRODUCTS = 64  # matrix products added up plainly before they join the total, which keeps its rounding error
UNIT = 2.0**-53
TINY = 1e-290  # below this, products may have lost digits to underflow
POINT = 1126  # any float64 is a whole number of 2**-POINT


@dataclass(frozen=True)
class FisherSum:
    """The sum of the embeddings of `count` examples (K x d, float64). Sums of parts add up to that of the whole.

    `rest` is what `total` lost by rounding; `terms`: how many numbers, at most, were added without keeping that loss.

    >>> part = Features(np.ones((2, 3)), np.full((2, 2), 0.5))
    >>> both = FisherSum.of(part) + FisherSum.of(part)
    >>> both.count, both.mean.tolist()
    (4, [[0.25, 0.25, 0.25], [0.25, 0.25, 0.25]])
    """

    total: Vector
    count: int
    rest: Vector | float = 0.0
    terms: int = 0

    @classmethod
    def of(cls, features: Features, rows: int = SUM_ROWS, tick: Tick | None = None) -> FisherSum:
        done = cls(np.zeros((features.K, features.d)), 0)
        rows = max(1, min(rows, len(features)))
        work = 2.0 * len(features) * features.d * features.K

        def add_up(block: tuple[int, Features]) -> FisherSum:
            return cls._of_block(block[1], rows)

        for part in spread(add_up, features.blocks(rows * PRODUCTS), work):
            done = done + part
            if tick:
                tick(part.count)
        return done

    @classmethod
    def _of_block(cls, features: Features, rows: int) -> FisherSum:
        """The sum of few products."""
        total, spare = np.zeros((features.K, features.d)), np.empty((features.K, features.d))
        a, g = np.empty((rows, features.K)), np.empty((rows, features.d))
        for _, block in features.blocks(rows):
            n = len(block)
            _factors(block, a[:n], g[:n])
            total += np.matmul(a[:n].T, g[:n], out=spare)
        return cls(total, len(features), terms=rows + PRODUCTS)

    def __add__(self, other: FisherSum) -> FisherSum:
        total = self.total + other.total
        back = total - self.total
        rest = (self.total - (total - back)) + (other.total - back) + (self.rest + other.rest)
        return FisherSum(total, self.count + other.count, rest, max(self.terms, other.terms))

    def settled(self) -> FisherSum:
        """This sum in a single matrix, to be sent to another process."""
        return FisherSum(self.total + self.rest, self.count, terms=self.terms)

    @property
    def mean(self) -> Vector:
        """The mean embedding; zero for the empty set."""
        return (self.total + self.rest) / max(self.count, 1)

    def off(self, sign: int) -> FisherSum:
        """The least (-1) or the most (+1) that the exact sum can be."""
        error = (self.terms + 16) * UNIT if self.terms else 0.0
        return FisherSum((self.total + self.rest) * (1 + sign * error), self.count)

    def replaced(self, entries: Entries, values: Vector) -> FisherSum:
        """The sum with other values at these entries."""
        total = self.total + self.rest
        total[entries[:, 0], entries[:, 1]] = values
        return FisherSum(total, self.count)


def past_weight(past: int, current: int) -> float:
    """lambda of theorem 4.1: the share of the past in all examples that have arrived."""
    return past / (past + current) if past + current else 0.0


def mix(new: FisherSum, memory: FisherSum | None, lam: float) -> Vector:
    """The target's mean embedding: lam * mean of the memory + (1 - lam) * that of the new; without memory, the new."""
    if memory is None or memory.count == 0:
        return new.mean
    return lam * memory.mean + (1 - lam) * new.mean


def settle(
    new: FisherSum, memory: FisherSum | None, lam: float, exact: Callable[[Entries], tuple[list[int], list[int]]]
) -> Vector:
    """`mix`, rounded to float32's precision: what the exact sums would give, whatever the order of the rows.

    `exact` returns the `exact_entries` of the new examples and of the memory; it is called only if some are needed.
    """
    least, most = (
        round_mean(mix(new.off(sign), memory.off(sign) if memory else None, lam)) for sign in (-1, +1)
    )  # every step increases with the sum, so the exact mean lies between these
    entries = np.argwhere((least != most) | ((most > 0) & (most < TINY)))
    if len(entries):
        sums, past = exact(entries)
        new = new.replaced(entries, as_floats(sums))
        memory = memory.replaced(entries, as_floats(past)) if memory else None
        rows = (entries[:, 0], entries[:, 1])
        least[rows] = round_mean(mix(new, memory, lam))[rows]
    return least


def round_mean(mean: Vector) -> Vector:
    """Round to 24 binary digits, as float32 has, but with float64's range."""
    mantissa, exponent = np.frexp(mean)
    return np.asarray(np.ldexp(mantissa.astype(np.float32).astype(np.float64), exponent))


def exact_entries(features: Features, entries: Entries) -> list[int]:
    """The exact sums of single entries, as whole numbers of 2**-POINT, which add up in any order.

    >>> some = Features(np.ones((3, 2)), np.full((3, 2), 0.5))
    >>> as_floats(exact_entries(some, np.array([[0, 1], [1, 1]]))).tolist()
    [0.75, 0.75]
    """
    sums = [0] * len(entries)
    a, g = np.empty((4096, features.K)), np.empty((4096, features.d))
    for _, block in features.blocks(4096):
        n = len(block)
        _factors(block, a[:n], g[:n])
        for i, (row, column) in enumerate(entries):
            sums[i] += _exact_sum(a[:n, row] * g[:n, column])
    return sums


def as_floats(sums: list[int]) -> Vector:
    """Exact sums in float64, each rounded once."""
    return np.array([value / (1 << POINT) for value in sums], np.float64)


def _exact_sum(values: Vector) -> int:
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    total = 0
    for e in np.unique(exponent):
        some = whole[exponent == e]
        total += ((int((some >> 27).sum()) << 27) + int((some & (2**27 - 1)).sum())) << (int(e) + POINT - 53)
    return total


def _factors(block: Features, a: Vector, g: Vector) -> None:
    """p - p^2 and h^2 in float64; the bits of a row do not depend on other rows."""
    np.copyto(g, block.embeddings)
    np.multiply(g, g, out=g)
    np.copyto(a, block.probabilities)
    a -= a**2
