"""Random selection problems, from easy to nasty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accuacl import Features


@dataclass(frozen=True)
class Problem:
    pool: Features
    labelled: Features
    memory: Features
    budget: int


def features(rng: np.random.Generator, n: int, d: int, K: int, sharpness: float = 1.0, scale: float = 1.0) -> Features:
    """Normal embeddings, Dirichlet probabilities (the smaller `sharpness`, the nearer to one-hot), in float32."""
    p = rng.dirichlet(np.full(K, sharpness), n).reshape(n, K)
    p = np.nan_to_num(p / p.sum(axis=1, keepdims=True), nan=1 / K)
    return Features((rng.normal(size=(n, d)) * scale).astype(np.float32), p.astype(np.float32))


def with_copies(rng: np.random.Generator, some: Features) -> Features:
    """Half of the rows become copies of others: exact ties."""
    rows = np.arange(len(some))
    if len(some) > 2:
        rows[: len(some) // 2] = rng.integers(0, len(some), len(some) // 2)
    return Features(some.embeddings[rows], some.probabilities[rows])


def random_problem(seed: int, largest_scale: float = 1e3, most: int = 200) -> Problem:
    """Sizes, sharpness and scale drawn over orders of magnitude; half of the problems are full of copies."""
    rng = np.random.default_rng(seed)
    d, K = int(rng.integers(1, 12)), int(rng.integers(1, 7))
    sharpness, scale = 10.0 ** rng.uniform(-2, 1), 10.0 ** rng.uniform(-2, np.log10(largest_scale))
    sets = [features(rng, int(n), d, K, sharpness, scale) for n in (rng.integers(1, most), *rng.integers(0, 20, 2))]
    if rng.random() < 0.5:
        sets = [with_copies(rng, some) for some in sets]
    return Problem(*sets, budget=int(rng.integers(1, 30)))
