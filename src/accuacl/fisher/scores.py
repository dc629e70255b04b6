"""The Fisher information embedding, factored.

For the weights of the last linear layer the embedding of an example is an outer product (theorem 4.2 of the paper),

    f = a (x) g,   a = p * (1 - p)  (K numbers),   g = h * h  (d numbers),

so it (K d numbers a row) is never built. A set's mean is one matrix product, the target keeps a
few entries per class, and an example is compared with the target on those entries alone.

Everything that decides a pick is computed in float64 with operations whose result for a row does not depend on the
rows beside it. The float32 sweeps are there for speed only: they return an error bound with every value, and the
rows which that bound cannot tell apart are computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.features import Features
from accuacl.fisher.sums import Vector, round_mean

EPS32 = float(np.finfo(np.float32).eps)
SWEEP_ENTRIES = 400_000  # kept entries per block of the float32 sweeps: a few MiB, and few calls
EXACT_ENTRIES = 200_000  # the same for float64


@dataclass(frozen=True)
class Target:
    """The entries of the mean embedding that examples are compared on, and the softmax over them.

    `kept` (K x k) has, for each class, the columns of the k largest entries in falling order. `scale` divides
    embeddings before the softmax; 0 stands for "nothing to compare": all distribution scores are then 0.
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


def distribution(features: Features, target: Target, tick: Tick | None = None) -> Vector:
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
        if tick:
            tick(len(block))
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


def sweep_distribution(
    features: Features, target: Target, rows: int | None = None, tick: Tick | None = None
) -> tuple[Vector, Vector]:
    """`distribution` in float32 and, for each row, a bound on how far it is from the exact value."""
    n, m = len(features), target.kept.size
    if target.scale == 0:
        if tick:
            tick(n)
        return np.zeros(n), np.zeros(n)
    rows = max(1, min(n, rows or SWEEP_ENTRIES // m))
    value, largest = torch.empty(n), torch.empty(n)
    t = torch.from_numpy(np.exp(target.log_softmax)).float()
    # sum t log t + 2 log 2, what is left of the divergence when the terms with q are taken away
    fixed = float((np.exp(target.log_softmax) * target.log_softmax).sum() + 2 * np.log(2))
    sweep = _Gather(features, target, rows, 1 / np.sqrt(target.scale))
    q = torch.empty(rows, m)
    for start, block in features.blocks(rows):
        b = len(block)
        u, v, w = sweep(block), q[:b], sweep.spare[:b]
        peak = torch.amax(u, 1, keepdim=True, out=largest[start : start + b].unsqueeze(1))
        u.sub_(peak).clamp_(min=-80)  # below that exp gives denormals, which cost five times as much
        np.exp(u.numpy(), out=v.numpy())  # NumPy's exp and log take half of torch's time
        z = v.sum(1, keepdim=True)
        d = torch.mul(v, u, out=u).sum(1, keepdim=True).div_(z).sub_(z.log())
        v.div_(z).add_(t)
        np.log(v.numpy(), out=w.numpy())
        d -= w.mul_(v).sum(1, keepdim=True)
        torch.add(d[:, 0], fixed, out=value[start : start + b]).mul_(0.5)
        if tick:
            tick(b)
    # The divergence moves by at most 1.06 max|du|, and du is below 6 eps u; the sums, of size 4 log m, are cascaded.
    bound = EPS32 * (8.0 * largest.double().numpy() + 64.0 * (1 + np.log(m)))
    return value.double().numpy(), bound


def may_be_below(features: Features, target: Target, cut: float) -> NDArray[np.int64]:
    """The rows whose divergence may be at most `cut`: in less time than the sweep takes, when they are few.

    The divergence is at least log 2 times 1 - sum sqrt(q t), the squared Hellinger distance.
    """
    m = target.kept.size
    if target.scale == 0 or cut >= np.log(2):
        return np.arange(len(features))
    rows = max(1, min(len(features), SWEEP_ENTRIES // m))
    near = np.empty(len(features), bool)
    sweep = _Gather(features, target, rows, 1 / np.sqrt(2 * target.scale))
    root = torch.from_numpy(np.exp(target.log_softmax / 2)).float()
    for start, block in features.blocks(rows):
        u = sweep(block)  # half of the exponents: exp gives the roots
        peak = torch.amax(u, 1, keepdim=True)
        u.sub_(peak).clamp_(min=-40)
        np.exp(u.numpy(), out=u.numpy())
        overlap = torch.mv(u, root).div_(torch.linalg.vector_norm(u, dim=1)).double()
        # Rounding moves the overlap by less than the largest error of an exponent, and both sums by m eps.
        error = EPS32 * (16.0 * peak[:, 0].double() + 64.0 + 4.0 * m)
        near[start : start + len(block)] = ~(np.log(2) * (1 - overlap - error) > cut).numpy()  # NaN: it may be
    return np.flatnonzero(near)


def sweep_magnitude(
    features: Features, target: Target | None = None, rows: int | None = None, tick: Tick | None = None
) -> tuple[Vector, Vector]:
    """`magnitude` in float32 and, for each row, a bound on how far it is from the exact value."""
    n = len(features)
    width = target.kept.size if target else max(features.d, features.K)
    rows = max(1, min(n, rows or SWEEP_ENTRIES // width))
    # Embeddings are halved or doubled into a range whose fourth power float32 can hold.
    shrink = 2.0 ** -np.ceil(np.log2(_largest(features) or 1.0))
    value = torch.empty(n)
    sweep = _Gather(features, target, rows, shrink)
    for start, block in features.blocks(rows):
        out = value[start : start + len(block)]
        if target:
            torch.linalg.vector_norm(sweep(block), dim=1, out=out)
        else:
            a, g = sweep.factors(block)
            torch.mul(torch.linalg.vector_norm(a, dim=1), torch.linalg.vector_norm(g, dim=1), out=out)
        if tick:
            tick(len(block))
    norms = value.double().numpy() / shrink**2
    return norms, EPS32 * (64 + width / 16) * norms + 1e-15 / shrink**2  # squares below 1e-38 are lost


def _factors(block: Features) -> tuple[Vector, Vector]:
    p, h = block.probabilities.astype(np.float64), block.embeddings.astype(np.float64)
    return p * (1 - p), h * h


def _entries(block: Features, target: Target) -> Vector:
    """The kept entries of each example, rows x (K k), in float64."""
    a, g = _factors(block)
    return (a[:, :, None] * g[:, target.kept]).reshape(len(block), -1)


def _largest(features: Features) -> float:
    return max((float(np.abs(block.embeddings).max()) for _, block in features.blocks(4096)), default=0.0)


class _Gather:
    """Buffers for the float32 sweeps: the kept entries of a block of rows, embeddings multiplied by `factor`."""

    def __init__(self, features: Features, target: Target | None, rows: int, factor: float) -> None:
        self.factor = factor
        self.h, self.a = np.empty((rows, features.d), np.float32), np.empty((rows, features.K), np.float32)
        if target:
            self.columns = torch.from_numpy(target.kept.ravel())
            self.classes = torch.arange(features.K).repeat_interleave(target.kept.shape[1])
            self.u, self.spare = torch.empty(rows, target.kept.size), torch.empty(rows, target.kept.size)

    def factors(self, block: Features) -> tuple[torch.Tensor, torch.Tensor]:
        n = len(block)
        with np.errstate(all="ignore"):  # what overflows here has no finite bound, and is computed again
            factor, p = np.float32(self.factor), block.probabilities
            np.multiply(block.embeddings, factor, out=self.h[:n], dtype=np.float32, casting="same_kind")
            if p.dtype.itemsize < 8:
                p = p.astype(np.float32, copy=False)
            # A float64 p stays one: near 1 its 1 - p would be lost in float32.
            np.multiply(p, 1 - p, out=self.a[:n], casting="same_kind")
        g = torch.from_numpy(self.h[:n])
        return torch.from_numpy(self.a[:n]), g.mul_(g)

    def __call__(self, block: Features) -> torch.Tensor:
        n = len(block)
        a, g = self.factors(block)
        u = torch.index_select(g, 1, self.columns, out=self.u[:n])
        # twice as fast as multiplying k columns by one
        return u.mul_(torch.index_select(a, 1, self.classes, out=self.spare[:n]))
