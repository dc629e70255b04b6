"""Pools beyond memory: what coverage loses when a random sample represents the pool.

For each size of the sample: how far the picks cover the whole pool, as a share of what the picks of the whole pool
cover, and how long they took.
Run: python benchmarks/beyond_memory.py (a minute on a quiet machine)
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.datasets import load_digits

from accuacl import Features, select
from accuacl.experiments.sweeps.efficiency import Case, problem
from accuacl.strategies import squared_width, unit


def covered(pool: Features, picks: np.ndarray) -> float:
    """The mean over the pool of the largest kernel with a pick; the kernel is that of coverage."""
    x = unit(pool.embeddings)
    width = squared_width(x, 1 / min(max(len(picks), 2), 200))
    nearest = np.full(len(x), np.inf)
    for i in range(0, len(x), 2048):
        nearest[i : i + 2048] = (2 - 2 * x[i : i + 2048] @ x[picks].T).min(axis=1)
    return float(np.exp(-np.maximum(nearest, 0) / width).mean())


def report(name: str, pool: Features, budget: int, samples: list[int]) -> None:
    start = time.process_time()
    best = covered(pool, select("coverage", pool=pool, budget=budget).indices)
    print(f"{name}: {len(pool):,} x {pool.d}, {budget} picks; all: {time.process_time() - start:.1f} CPU s")
    chance = np.mean([covered(pool, select("uniform", pool=pool, budget=budget, seed=s).indices) for s in range(5)])
    for sample in samples:
        start = time.process_time()
        picks = select("coverage", pool=pool, budget=budget, sample=sample).indices
        spent = time.process_time() - start
        print(f"  sample {sample:6,}: {100 * covered(pool, picks) / best:.1f} % of the coverage, {spent:.1f} CPU s")
    print(f"  at random     : {100 * chance / best:.1f} %")


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    digits = load_digits().data
    report("digits", Features(digits, np.ones((len(digits), 1))), 100, [200, 500, 1000])
    pool, _, _ = problem(Case("coverage", 20_000, 128, 100, 500))
    report("clusters", pool, 500, [1_000, 2_500, 5_000, 10_000])


if __name__ == "__main__":
    main()
