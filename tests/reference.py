"""The strategies by their definitions: dense, literal, slow.

Tests compare the fast code with these in extended precision (`numpy.longdouble`); benchmarks/bench.py says how much
faster it is than these in the usual precision. Rows are ranked by their formulas; sets are chosen greedily, with every
distance or gain computed again at every pick.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array, Features
from accuacl.strategies.facility import sample
from accuacl.strategies.ranking import round_off

Indices = NDArray[np.int64]


def fisher_embeddings(features: Features, dtype: Any = np.float64) -> Array:
    """p_k (1 - p_k) h_i^2 of every example, n x K x d."""
    h, p = arrays(features, dtype)
    return (p * (1 - p))[:, :, None] * (h * h)[:, None, :]


def accuacl(
    pool: Features,
    budget: int,
    memory: Features | None = None,
    lam: float = 0.0,
    keep: int = 5,
    variant: str = "released",
    oversample: int = 2,
    dtype: Any = np.float64,
    only: str = "",
) -> Indices:
    """AccuACL on the full n x K x d embeddings; the target is rounded to float32, as everywhere.

    `only` "distribution" or "magnitude" ranks all by that score alone, as the ablations do.
    """
    f = fisher_embeddings(pool, dtype)
    target = f.mean(axis=0)
    if memory is not None and len(memory):
        target = dtype(lam) * fisher_embeddings(memory, dtype).mean(axis=0) + dtype(1 - lam) * target
    target = target.astype(np.float32).astype(dtype)
    kept = np.argsort(-target, axis=1, kind="stable")[:, : min(keep, target.shape[1])]
    t = np.take_along_axis(target, kept, axis=1).ravel()
    u = np.take_along_axis(f, kept[None], axis=2).reshape(len(f), -1)
    scale = t.mean() if variant == "released" else dtype(1)
    divergence = jensen_shannon(u / scale, t / scale) if scale > 0 else np.zeros(len(f))
    order = np.argsort(round_off(divergence), kind="stable")
    if only == "distribution":
        return order[:budget]
    candidates = np.arange(len(f)) if only == "magnitude" else np.sort(order[: oversample * budget])
    entries = u if variant == "released" else f.reshape(len(f), -1)
    magnitude = np.sqrt(np.square(entries[candidates]).sum(axis=1))
    return candidates[np.argsort(-round_off(magnitude), kind="stable")[:budget]]


def jensen_shannon(logits: Array, target_logits: Array) -> Array:
    """Between the softmax of each row and that of the target, in nats."""
    q, t = softmax(logits), softmax(target_logits[None])
    m = (q + t) / 2

    def relative(a: Array) -> Array:  # Kullback-Leibler divergence from m, with 0 log 0 = 0
        return np.asarray((a * np.log(np.where(a > 0, a / np.where(m > 0, m, 1), 1))).sum(axis=1))

    return (relative(q) + relative(t)) / 2


def uncertainty(pool: Features, budget: int, name: str, dtype: Any = np.float64) -> Indices:
    """Entropy, least-confidence and margin by their formulas."""
    _, p = arrays(pool, dtype)
    ordered = np.sort(p, axis=1)
    if name == "entropy":
        values = (p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
    elif name == "least-confidence":
        values = ordered[:, -1]
    else:
        values = ordered[:, -1] - (ordered[:, -2] if p.shape[1] > 1 else 0)
    return np.argsort(round_off(values), kind="stable")[:budget]


def kcenter(pool: Features, budget: int, start: list[Features], dtype: Any = np.float64) -> Indices:
    """Every distance is updated at every pick; in float32 as usually written, |x|^2 + |c|^2 - 2 x.c."""
    h, _ = arrays(pool, dtype)
    best = np.full(len(h), np.inf, dtype)
    squares = np.square(h).sum(axis=1)

    def add(centre: Array) -> None:
        if dtype == np.float32:
            np.minimum(best, squares + np.square(centre).sum() - 2 * (h @ centre), out=best)
        else:
            np.minimum(best, np.square(h - centre).sum(axis=1), out=best)

    for features in start:
        for centre in arrays(features, dtype)[0]:
            add(centre)
    picks: list[int] = []
    for _ in range(min(budget, len(h))):
        first = not picks and not any(len(features) for features in start)
        far = np.square(h - h.mean(axis=0)).sum(axis=1) if first else best.copy()
        far = round_off(far)
        far[picks] = -np.inf
        picks.append(int(np.argmax(far)))
        add(h[picks[-1]])
    return np.array(picks, np.int64)


def badge(
    pool: Features, draws: NDArray[np.float64], memory: Features | None = None, dtype: Any = np.float64
) -> Indices:
    """k-means++ on the n x K d gradients, one pick for each of the draws in [0, 1)."""

    def gradients(features: Features) -> Array:
        h, p = arrays(features, dtype)
        residual = np.eye(p.shape[1], dtype=dtype)[p.argmax(axis=1)] - p
        return (residual[:, :, None] * h[:, None, :]).reshape(len(h), p.shape[1] * h.shape[1])

    g = gradients(pool)
    best = np.full(len(g), np.inf, dtype)
    for centre in gradients(memory) if memory is not None else ():
        np.minimum(best, np.square(g - centre).sum(axis=1), out=best)
    picks: list[int] = []
    for draw in draws[: len(g)]:
        if np.isinf(best).all():
            row = int(np.argmax(round_off(np.square(g).sum(axis=1))))
        else:
            total = best.cumsum()
            if total[-1] == 0:
                left = np.setdiff1d(np.arange(len(g)), picks)
                return np.array(picks + left[: len(draws) - len(picks)].tolist(), np.int64)
            row = min(int(np.searchsorted(total, dtype(draw) * total[-1], side="right")), np.flatnonzero(best)[-1])
        picks.append(row)
        np.minimum(best, np.square(g - g[row]).sum(axis=1), out=best)
        best[picks] = 0
    return np.array(picks, np.int64)


def bait(
    pool: Features, budget: int, labelled: Features | None = None, lam: float = 0.01, dtype: Any = np.float64
) -> Indices:
    """BAIT with every V (n x K x K d) and all matrices written out, and M inverted at every pick."""

    def factors(features: Features) -> Array:
        h, p = arrays(features, dtype)
        rows = np.sqrt(p)[:, :, None] * (np.eye(p.shape[1], dtype=dtype) - p[:, None, :])
        return (rows[:, :, :, None] * h[:, None, None, :]).reshape(len(h), p.shape[1], p.shape[1] * h.shape[1])

    n, known, b = len(pool), len(labelled or ()), min(budget, len(pool))
    V = factors(pool)
    K, size = V.shape[1:]
    F = V.reshape(-1, size).T @ V.reshape(-1, size)
    FL = np.zeros((size, size), dtype)
    if labelled is not None and known:
        VL = factors(labelled).reshape(-1, size)
        FL = VL.T @ VL
    F = (F + FL) / (n + known)
    M = dtype(lam) * np.eye(size, dtype=dtype) + FL / (known + b)
    V = V * np.sqrt(dtype(b) / (known + b))

    def gains(sign: int) -> NDArray[np.float64]:
        left = V @ inverse(M)
        B, C = left @ V.swapaxes(1, 2), left @ F @ left.swapaxes(1, 2)
        gain = (C * inverse(np.eye(K, dtype=dtype) + sign * B).swapaxes(1, 2)).sum(axis=(1, 2))
        return gain.astype(np.float64)

    picks: list[int] = []
    for _ in range(min(2 * b, n)):
        gain = gains(+1)
        gain[picks] = -math.inf
        picks.append(int(np.flatnonzero(gain >= gain.max() - 1e-9 * abs(gain.max()))[0]))
        M = M + V[picks[-1]].T @ V[picks[-1]]
    while len(picks) > b:
        loss = gains(-1)[picks]
        tied = np.flatnonzero(loss <= loss.min() + 1e-9 * abs(loss.min()))
        worst = max(picks[i] for i in tied)
        picks.remove(worst)
        M = M - V[worst].T @ V[worst]
    return np.array(picks, np.int64)


def coverage(
    pool: Features,
    budget: int,
    labelled: Features | None = None,
    weights: Array | None = None,
    dtype: Any = np.float64,
    first: tuple[int, ...] = (),
    memory: Features | None = None,
) -> tuple[Indices, Array]:
    """Facility location with the whole n x n kernel, every gain computed at every pick."""
    x = unit(pool, dtype)
    known = np.concatenate([x[:0], *(unit(some, dtype) for some in (labelled, memory) if some is not None)])
    count = min(budget, len(x))
    distances = squares(x[sample(len(x))], x[sample(len(x))])
    share = 1 / min(max(len(labelled or ()) + count, 2), 200)
    width = np.median(np.quantile(distances, share, axis=1)) if len(x) > 1 else 0
    width = next((value for value in (width, distances.mean()) if value > 1e-20), 1)

    def kernel(a: Array, b: Array) -> Array:
        exponent = squares(a, b) / width
        return np.where(exponent > 69, 0, np.exp(-exponent))

    K = kernel(x, x)
    best = kernel(x, known).max(axis=1, initial=0)
    weights = np.ones(len(x), dtype) if weights is None else weights.astype(dtype)
    picks: list[int] = []
    gains: list[Any] = []
    for i in range(count):
        gain = weights @ np.maximum(K - best[:, None], 0)
        gain[picks] = -np.inf
        picks.append(first[i] if i < len(first) else first_largest(gain))
        gains.append(gain[picks[-1]])
        best = np.maximum(best, K[:, picks[-1]])
    return np.array(picks, np.int64), np.array(gains)


def fisher_ratio(
    pool: Features,
    budget: int,
    labelled: Features | None = None,
    memory: Features | None = None,
    lam: float = 0.0,
    ridge: float = 1.0,
    uncertainty: str = "weighed",
    dtype: Any = np.float64,
) -> tuple[Indices, Array]:
    """Greedy on tr(M^-1 T) with M inverted and every gain computed at every pick."""
    sets = [pool, memory if memory is not None else pool.rows(slice(0, 0))]
    x, past = (unit(some, dtype) for some in sets)
    shares = [np.full(len(x), (1 - lam if len(past) else 1) / max(1, len(x)), dtype), np.full(len(past), lam, dtype)]
    shares[1] /= max(1, len(past))
    ordered = [np.sort(np.pad(arrays(some, dtype)[1], ((0, 0), (1, 0))), axis=1) for some in sets]
    weights = [share * (1 - (p[:, -1] - p[:, -2])) for share, p in zip(shares, ordered, strict=True)]
    if uncertainty == "ignored" or not any((h.T * weight).any() for h, weight in zip((x, past), weights, strict=True)):
        weights = shares
    T = sum((h.T * weight) @ h for h, weight in zip((x, past), weights, strict=True))
    M = dtype(ridge) * np.eye(x.shape[1], dtype=dtype) + past.T @ past
    if labelled is not None:
        M = M + unit(labelled, dtype).T @ unit(labelled, dtype)
    picks: list[int] = []
    gains: list[Any] = []
    for _ in range(min(budget, len(x))):
        A = x @ inverse(M)
        gain = ((A @ T) * A).sum(axis=1) / (1 + (A * x).sum(axis=1))
        gain[gain <= 1e-13 * max(gains, default=0)] = 0
        gain[picks] = -np.inf
        picks.append(first_largest(gain, tie=1e-9))
        gains.append(gain[picks[-1]])
        M = M + np.outer(x[picks[-1]], x[picks[-1]])
    return np.array(picks, np.int64), np.array(gains)


def first_largest(values: Array, tie: float = 1e-12) -> int:
    """The index of the first value that ties with the largest."""
    return int(np.argmax(values >= values.max() - tie * abs(values.max())))


def unit(features: Features, dtype: Any) -> Array:
    h, _ = arrays(features, dtype)
    length = np.sqrt(np.square(h).sum(axis=1, keepdims=True))
    return np.asarray(h / np.where(length > 0, length, 1))


def squares(a: Array, b: Array) -> Array:
    """All squared distances; in float32 as usually written, |a|^2 + |b|^2 - 2 a.b."""
    if a.dtype == np.float32:
        squares = np.square(a).sum(axis=1)[:, None] - 2 * (a @ b.T) + np.square(b).sum(axis=1)
        return np.asarray(np.maximum(squares, 0, out=squares))
    return np.asarray(np.square(a[:, None] - b[None]).sum(axis=2))


def arrays(features: Features, dtype: Any) -> tuple[Array, Array]:
    return features.embeddings.astype(dtype), features.probabilities.astype(dtype)


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def inverse(matrix: Array) -> Array:
    """The inverse over the last two axes; by Gauss-Jordan for types that LAPACK does not know."""
    if matrix.dtype != np.longdouble:
        return np.linalg.inv(matrix)
    left = matrix.copy().reshape(-1, *matrix.shape[-2:])
    n, size, _ = left.shape
    right = np.broadcast_to(np.eye(size, dtype=left.dtype), left.shape).copy()
    each = np.arange(n)
    for k in range(size):
        pivot = k + np.abs(left[:, k:, k]).argmax(axis=1)
        for side in (left, right):
            side[each, k], side[each, pivot] = side[each, pivot].copy(), side[each, k].copy()
        for side in (right, left):  # left last: its column k holds the factors
            side[:, k] /= left[:, k, k].copy()[:, None]
        factors = left[:, :, k].copy()
        factors[:, k] = 0
        for side in (left, right):
            side -= factors[:, :, None] * side[:, k][:, None, :]
    return right.reshape(matrix.shape)
