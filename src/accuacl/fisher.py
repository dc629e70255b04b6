"""The Fisher information embedding, factored: mergeable sums, the target, and scores with their error bounds.

For the weights of the last linear layer the embedding of an example is an outer product (theorem 4.2 of the paper),

    f = a (x) g,   a = p * (1 - p)  (K numbers),   g = h * h  (d numbers),

so the K d numbers of a row are never built. The mean of a set is one matrix product, the target keeps a few entries per
class, and an example is compared with the target on those entries only.

**Sums** over large sets, and the target's mean, are the same for every order of the rows. Matrix products in float64
differ in their last bits with the order of the rows, their number and the library. Every term is at least 0, so the
error is a small part of the sum and has a bound. The mean is rounded to the precision of float32; the few entries that
the error could carry across a rounding boundary (one pool in a thousand has one) are added up again in whole numbers,
without any error. So the target is a function of the set of rows alone.

**Scores** that decide a pick are computed in float64, with operations whose result for a row does not depend on other
rows. The rough scores, in float32, are only for speed: each has an error bound, and the rows that these bounds leave
undecided are computed exactly.
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
Matrix32 = NDArray[np.float32]

SUM_ROWS = 256  # rows per matrix product: a block of 512-wide float64 embeddings is 1 MiB
PRODUCTS = 64  # matrix products added up plainly before they join the total, which keeps its rounding error
UNIT = 2.0**-53
TINY = 1e-290  # below this, products may have lost digits to underflow
POINT = 1126  # any float64 is a whole number of 2**-POINT
EXACT_ENTRIES = 200_000  # kept entries per block: a few MiB, and few calls
ROUGH_ENTRIES = 200_000
EPS32 = float(np.finfo(np.float32).eps)


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
            _fill(a[:n], g[:n], block)
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
        _fill(a[:n], g[:n], block)
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
        rows = whole[exponent == e]
        total += ((int((rows >> 27).sum()) << 27) + int((rows & (2**27 - 1)).sum())) << (int(e) + POINT - 53)
    return total


def _fill(a: Vector, g: Vector, block: Features) -> None:
    """Write p - p^2 and h^2 in float64; the bits of a row do not depend on other rows."""
    np.copyto(g, block.embeddings)
    np.multiply(g, g, out=g)
    np.copyto(a, block.probabilities)
    a -= a**2


@dataclass(frozen=True)
class Target:
    """The entries of the mean embedding that examples are compared on, and the softmax over them.

    `kept` (K x k) has, for each class, the columns of the k largest entries in falling order. `scale` divides
    embeddings before the softmax; 0 means "nothing to compare": all distribution scores are then 0.
    """

    kept: NDArray[np.int64]
    scale: float
    log_softmax: Vector  # K * k

    @classmethod
    def of(cls, mean: Vector, keep: int, scaled: bool = True) -> Target:
        """`scaled` divides by the mean of the kept entries, as the released code does; the paper's text does not.

        Sums taken in another order differ in their last bits, so the mean is rounded to float32's precision first.
        """
        mean = round_mean(mean)
        kept = np.argsort(-mean, axis=1, kind="stable")[:, : min(keep, mean.shape[1])]
        values = np.take_along_axis(mean, kept, axis=1).ravel()
        scale = float(values.mean()) if scaled else 1.0
        shifted = (values - values.max()) / (scale or 1.0)
        return cls(kept, scale, shifted - np.log(np.exp(shifted).sum()))


def distribution(features: Features, target: Target) -> Vector:
    """Jensen-Shannon divergence, in nats, between the softmax of each example and that of the target. Exact.

    With delta = log q - log t and l = log((1 + exp delta) / 2) it is the sum of (q (delta - l) - t l) / 2, which has no
    0 * log 0 and stays accurate where q and t all but agree.
    """
    out = np.zeros(len(features))
    if target.scale == 0:
        return out
    t = np.exp(target.log_softmax)
    for start, block in features.blocks(max(1, EXACT_ENTRIES // target.kept.size)):
        u = np.minimum(_entries(block, target) / target.scale, 1e300)
        u -= u.max(axis=1, keepdims=True)
        u -= np.log(np.exp(u).sum(axis=1, keepdims=True))
        delta = np.clip(u - target.log_softmax, -700, 700)
        middle = np.log1p(np.expm1(delta) / 2)
        delta -= middle
        out[start : start + len(block)] = (np.exp(u) * delta - t * middle).sum(axis=1) / 2
    return np.maximum(out, 0)


def magnitude(features: Features, target: Target | None = None) -> Vector:
    """Euclidean norm of each example's embedding, over all entries or over those the target keeps. Exact."""
    out = np.empty(len(features))
    width = target.kept.size if target else max(features.d, features.K)
    for start, block in features.blocks(max(1, EXACT_ENTRIES // width)):
        if target:
            part = np.sqrt(np.square(_entries(block, target)).sum(axis=1))
        else:
            a, g = _factors(block)
            part = np.sqrt(np.square(a).sum(axis=1)) * np.sqrt(np.square(g).sum(axis=1))
        out[start : start + len(block)] = part
    return out


def _factors(block: Features) -> tuple[Vector, Vector]:
    """p (1 - p), whose last bits may differ from those of the sums, and h^2."""
    p, h = block.probabilities.astype(np.float64), block.embeddings.astype(np.float64)
    return p * (1 - p), h * h


def _entries(block: Features, target: Target) -> Vector:
    """The kept entries of each example, rows x (K k), in float64."""
    a, g = _factors(block)
    return (a[:, :, None] * g[:, target.kept]).reshape(len(block), -1)


def rough_distribution(features: Features, target: Target) -> tuple[Vector, Vector]:
    """`distribution` in float32 and, for each row, a bound on how far it is from the exact value."""
    n, m = len(features), target.kept.size
    if target.scale == 0:
        return np.zeros(n), np.zeros(n)
    rows = max(1, min(n, ROUGH_ENTRIES // m))
    value, largest = np.empty(n), np.empty(n)
    t = np.exp(target.log_softmax)
    # sum t log t + 2 log 2: the terms of the divergence that do not depend on q
    fixed = float((t * target.log_softmax).sum() + 2 * np.log(2))
    gather = _Gather(features, target, rows, 1 / np.sqrt(target.scale))
    t32, buffer = t.astype(np.float32), np.empty((rows, m), np.float32)
    with np.errstate(all="ignore"):  # values that overflow have no finite bound and are computed again
        for start, block in features.blocks(rows):
            part = slice(start, start + len(block))
            u, q, log = gather(block), buffer[: len(block)], gather.spare[: len(block)]
            peak = u.max(axis=1, keepdims=True)
            u -= peak
            np.clip(u, -80, 0, out=u)  # below that exp gives denormals, which are slow to multiply
            np.exp(u, out=q)
            z = q.sum(axis=1, keepdims=True)
            negative_entropy = np.multiply(q, u, out=u).sum(axis=1, keepdims=True) / z - np.log(z)
            q /= z
            q += t32
            np.log(q, out=log)
            value[part] = (negative_entropy - np.multiply(log, q, out=log).sum(axis=1, keepdims=True))[:, 0]
            largest[part] = peak[:, 0]
    # The divergence moves by at most 1.06 max|du|, and du is below 6 eps u; NumPy adds a row's terms, of size 4 log m
    # in all, pairwise.
    return (value + fixed) / 2, EPS32 * (8.0 * largest + 64.0 * (1 + np.log(m)))


def rough_magnitude(features: Features, target: Target | None = None) -> tuple[Vector, Vector]:
    """`magnitude` in float32 and, for each row, a bound on how far it is from the exact value."""
    n = len(features)
    width = target.kept.size if target else max(features.d, features.K)
    rows = max(1, min(n, ROUGH_ENTRIES // width))
    # Embeddings are halved or doubled into a range whose fourth power float32 can hold.
    shrink = 2.0 ** -np.ceil(np.log2(_largest(features) or 1.0))
    value = np.empty(n)
    gather = _Gather(features, target, rows, shrink)
    with np.errstate(all="ignore"):
        for start, block in features.blocks(rows):
            if target:
                norms = _norms(gather(block))
            else:
                a, g = gather.factors(block)
                norms = _norms(a) * _norms(g)
            value[start : start + len(block)] = norms
    value /= shrink**2
    return value, EPS32 * (64 + width / 16) * value + 1e-15 / shrink**2  # squares below 1e-38 are lost


def may_be_below(features: Features, target: Target, cut: float) -> NDArray[np.int64]:
    """The rows whose divergence may be at most `cut`; faster than `rough_distribution` when they are few.

    The divergence is at least log 2 times 1 - sum sqrt(q t), the squared Hellinger distance.
    """
    m = target.kept.size
    if target.scale == 0 or cut >= np.log(2):
        return np.arange(len(features))
    rows = max(1, min(len(features), ROUGH_ENTRIES // m))
    near = np.empty(len(features), bool)
    gather = _Gather(features, target, rows, 1 / np.sqrt(2 * target.scale))
    root = np.exp(target.log_softmax / 2).astype(np.float32)
    with np.errstate(all="ignore"):
        for start, block in features.blocks(rows):
            u = gather(block)  # half of the exponents, so that exp gives the square roots
            peak = u.max(axis=1, keepdims=True)
            u -= peak
            np.clip(u, -40, 0, out=u)
            np.exp(u, out=u)
            overlap = (u @ root).astype(np.float64) / _norms(u)
            # Rounding moves the overlap by less than the largest error of an exponent, and both sums by m eps.
            error = EPS32 * (16.0 * peak[:, 0].astype(np.float64) + 64.0 + 4.0 * m)
            near[start : start + len(block)] = ~(np.log(2) * (1 - overlap - error) > cut)  # NaN counts as "may be"
    return np.flatnonzero(near)


def _largest(features: Features) -> float:
    return max((float(np.abs(block.embeddings).max()) for _, block in features.blocks(4096)), default=0.0)


def _norms(rows: Matrix32) -> Matrix32:
    """Euclidean length of each row, which is overwritten by its square."""
    return np.sqrt(np.square(rows, out=rows).sum(axis=1))


class _Gather:
    """Buffers for the rough scores: the kept entries of a block of rows, embeddings multiplied by `factor`."""

    def __init__(self, features: Features, target: Target | None, rows: int, factor: float) -> None:
        self.factor = np.float32(factor)
        self.h, self.a = np.empty((rows, features.d), np.float32), np.empty((rows, features.K), np.float32)
        if target:
            self.columns = target.kept.ravel()
            self.classes = np.repeat(np.arange(features.K), target.kept.shape[1])
            self.u, self.spare = np.empty((2, rows, target.kept.size), np.float32)

    def factors(self, block: Features) -> tuple[Matrix32, Matrix32]:
        """p (1 - p), and the squares of the embeddings after they were multiplied by `factor`."""
        a, g, p = self.a[: len(block)], self.h[: len(block)], block.probabilities
        np.multiply(block.embeddings, self.factor, out=g, dtype=np.float32, casting="same_kind")
        if p.dtype.itemsize < 8:
            p = p.astype(np.float32, copy=False)
        # A float64 p stays float64: near 1, 1 - p would be lost in float32.
        np.multiply(p, 1 - p, out=a, casting="same_kind")
        return a, np.square(g, out=g)

    def __call__(self, block: Features) -> Matrix32:
        a, g = self.factors(block)
        u, repeated = self.u[: len(block)], self.spare[: len(block)]
        np.take(g, self.columns, axis=1, out=u, mode="clip")  # without "clip" NumPy takes into a copy of u first
        # twice as fast as multiplying k columns by one
        np.take(a, self.classes, axis=1, out=repeated, mode="clip")
        return np.multiply(u, repeated, out=u)
