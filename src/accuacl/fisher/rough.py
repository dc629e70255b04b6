"""Scores in float32, in a fraction of the time, each with a bound on how far it is from the exact one.

Imported only when such scores are wanted: torch takes a second to import, and most commands never need it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.features import Features
from accuacl.fisher.scores import Target
from accuacl.fisher.sums import Vector

EPS32 = float(np.finfo(np.float32).eps)
ROUGH_ENTRIES = 400_000  # kept entries per block: a few MiB, and few calls


def distribution(features: Features, target: Target) -> tuple[Vector, Vector]:
    """`scores.distribution` in float32 and, for each row, a bound on how far it is from the exact value."""
    n, m = len(features), target.kept.size
    if target.scale == 0:
        return np.zeros(n), np.zeros(n)
    rows = max(1, min(n, ROUGH_ENTRIES // m))
    value, largest = torch.empty(n), torch.empty(n)
    t = torch.from_numpy(np.exp(target.log_softmax)).float()
    # sum t log t + 2 log 2: the terms of the divergence that do not depend on q
    fixed = float((np.exp(target.log_softmax) * target.log_softmax).sum() + 2 * np.log(2))
    gather = _Gather(features, target, rows, 1 / np.sqrt(target.scale))
    q = torch.empty(rows, m)
    for start, block in features.blocks(rows):
        b = len(block)
        u, v, w = gather(block), q[:b], gather.spare[:b]
        peak = torch.amax(u, 1, keepdim=True, out=largest[start : start + b].unsqueeze(1))
        u.sub_(peak).clamp_(min=-80)  # below that exp gives denormals, which cost five times as much
        np.exp(u.numpy(), out=v.numpy())  # NumPy's exp and log take half of torch's time
        z = v.sum(1, keepdim=True)
        d = torch.mul(v, u, out=u).sum(1, keepdim=True).div_(z).sub_(z.log())
        v.div_(z).add_(t)
        np.log(v.numpy(), out=w.numpy())
        d -= w.mul_(v).sum(1, keepdim=True)
        torch.add(d[:, 0], fixed, out=value[start : start + b]).mul_(0.5)
    # The divergence moves by at most 1.06 max|du|, and du is below 6 eps u; the sums, of size 4 log m, are cascaded.
    bound = EPS32 * (8.0 * largest.double().numpy() + 64.0 * (1 + np.log(m)))
    return value.double().numpy(), bound


def magnitude(features: Features, target: Target | None = None) -> tuple[Vector, Vector]:
    """`scores.magnitude` in float32 and, for each row, a bound on how far it is from the exact value."""
    n = len(features)
    width = target.kept.size if target else max(features.d, features.K)
    rows = max(1, min(n, ROUGH_ENTRIES // width))
    # Embeddings are halved or doubled into a range whose fourth power float32 can hold.
    shrink = 2.0 ** -np.ceil(np.log2(_largest(features) or 1.0))
    value = torch.empty(n)
    gather = _Gather(features, target, rows, shrink)
    for start, block in features.blocks(rows):
        out = value[start : start + len(block)]
        if target:
            torch.linalg.vector_norm(gather(block), dim=1, out=out)
        else:
            a, g = gather.factors(block)
            torch.mul(torch.linalg.vector_norm(a, dim=1), torch.linalg.vector_norm(g, dim=1), out=out)
    norms = value.double().numpy() / shrink**2
    return norms, EPS32 * (64 + width / 16) * norms + 1e-15 / shrink**2  # squares below 1e-38 are lost


def may_be_below(features: Features, target: Target, cut: float) -> NDArray[np.int64]:
    """The rows whose divergence may be at most `cut`; faster than `distribution` when they are few.

    The divergence is at least log 2 times 1 - sum sqrt(q t), the squared Hellinger distance.
    """
    m = target.kept.size
    if target.scale == 0 or cut >= np.log(2):
        return np.arange(len(features))
    rows = max(1, min(len(features), ROUGH_ENTRIES // m))
    near = np.empty(len(features), bool)
    gather = _Gather(features, target, rows, 1 / np.sqrt(2 * target.scale))
    root = torch.from_numpy(np.exp(target.log_softmax / 2)).float()
    for start, block in features.blocks(rows):
        u = gather(block)  # half of the exponents, so that exp gives the square roots
        peak = torch.amax(u, 1, keepdim=True)
        u.sub_(peak).clamp_(min=-40)
        np.exp(u.numpy(), out=u.numpy())
        overlap = torch.mv(u, root).div_(torch.linalg.vector_norm(u, dim=1)).double()
        # Rounding moves the overlap by less than the largest error of an exponent, and both sums by m eps.
        error = EPS32 * (16.0 * peak[:, 0].double() + 64.0 + 4.0 * m)
        near[start : start + len(block)] = ~(np.log(2) * (1 - overlap - error) > cut).numpy()  # NaN counts as "may be"
    return np.flatnonzero(near)


def _largest(features: Features) -> float:
    return max((float(np.abs(block.embeddings).max()) for _, block in features.blocks(4096)), default=0.0)


class _Gather:
    """Buffers for the rough scores: the kept entries of a block of rows, embeddings multiplied by `factor`."""

    def __init__(self, features: Features, target: Target | None, rows: int, factor: float) -> None:
        self.factor = factor
        self.h, self.a = np.empty((rows, features.d), np.float32), np.empty((rows, features.K), np.float32)
        if target:
            self.columns = torch.from_numpy(target.kept.ravel())
            self.classes = torch.arange(features.K).repeat_interleave(target.kept.shape[1])
            self.u, self.spare = torch.empty(rows, target.kept.size), torch.empty(rows, target.kept.size)

    def factors(self, block: Features) -> tuple[torch.Tensor, torch.Tensor]:
        n = len(block)
        with np.errstate(all="ignore"):  # values that overflow here have no finite bound and are computed again
            factor, p = np.float32(self.factor), block.probabilities
            np.multiply(block.embeddings, factor, out=self.h[:n], dtype=np.float32, casting="same_kind")
            if p.dtype.itemsize < 8:
                p = p.astype(np.float32, copy=False)
            # A float64 p stays float64: near 1, 1 - p would be lost in float32.
            np.multiply(p, 1 - p, out=self.a[:n], casting="same_kind")
        g = torch.from_numpy(self.h[:n])
        return torch.from_numpy(self.a[:n]), g.mul_(g)

    def __call__(self, block: Features) -> torch.Tensor:
        n = len(block)
        a, g = self.factors(block)
        u = torch.index_select(g, 1, self.columns, out=self.u[:n])
        # twice as fast as multiplying k columns by one
        return u.mul_(torch.index_select(a, 1, self.classes, out=self.spare[:n]))
