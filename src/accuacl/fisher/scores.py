"""The Fisher information embedding, factored.

For the weights of the last linear layer the embedding of an example is an outer product (theorem 4.2 of the paper),

    f = a (x) g,   a = p * (1 - p)  (K numbers),   g = h * h  (d numbers),

so the K d numbers of a row are never built. The mean of a set is one matrix product, the target keeps a few entries per
class, and an example is compared with the target on those entries only.

Everything that decides a pick is computed here, in float64, with operations whose result for a row does not depend on
other rows. The rough scores (`rough.py`, float32) are only for speed: each has an error bound, and the rows that these
bounds leave undecided are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Features
from accuacl.fisher.sums import Vector, round_mean

EXACT_ENTRIES = 200_000  # kept entries per block: a few MiB, and few calls


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
    p, h = block.probabilities.astype(np.float64), block.embeddings.astype(np.float64)
    return p * (1 - p), h * h


def _entries(block: Features, target: Target) -> Vector:
    """The kept entries of each example, rows x (K k), in float64."""
    a, g = _factors(block)
    return (a[:, :, None] * g[:, target.kept]).reshape(len(block), -1)
