"""Strategies that rank rows one by one, by their formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from accuacl.features import Array, Features
from accuacl.reference.arithmetic import Indices, arrays, softmax
from accuacl.strategies import round_off


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
