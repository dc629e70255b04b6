"""How long the kernel head takes from the last label on: fit, and predictions for a sample of the pool.

    OMP_NUM_THREADS=1 python benchmarks/heads_speed.py

Random rows as texts (256 token columns, 4,096 TF-IDF columns of which eight are used) and images (1,280 columns) have
them; 60 classes; medians of three. `floor`: one Cholesky factor of n x n and one product of 5,000 rows of the pool with
the support rows, which no head of this kind can do without.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from accuacl.experiments.heads import candidates_of_kind, fit, fit_with_pool

CLASSES, SAMPLE = 60, 5000


def main() -> None:
    print("| data | labels | floor | fit | fit, pool of 3 x 1,200 | predict 5,000 |\n|---|--:|--:|--:|--:|--:|")
    for name in ("texts", "images"):
        for n in (200, 600, 2000):
            x, blocks = rows(name, n + SAMPLE + 3600)
            labels = np.arange(n) % CLASSES
            candidates = candidates_of_kind(name, blocks)
            pools = [x[n + SAMPLE + 1200 * t :][:1200] for t in range(3)]
            head = fit(x[:n], labels, candidates=candidates)
            times = [
                seconds(lambda n=n, x=x: floor(x[:n], x[n : n + SAMPLE])),
                seconds(lambda n=n, x=x, labels=labels, c=candidates: fit(x[:n], labels, candidates=c)),
                seconds(
                    lambda n=n, x=x, labels=labels, c=candidates, pools=pools: fit_with_pool(
                        x[:n], labels, pools, candidates=c
                    )
                ),
                seconds(lambda head=head, n=n, x=x: head.logits(x[n : n + SAMPLE])),
            ]
            print(f"| {name} | {n:,} | {' | '.join(f'{each:.2f} s' for each in times)} |", flush=True)


def rows(name: str, count: int) -> tuple[np.ndarray, list[tuple[int, int]]]:
    rng = np.random.default_rng(0)
    if name == "images":
        return rng.normal(size=(count, 1280)).astype(np.float32), [(0, 1280)]
    x = np.zeros((count, 4352), np.float32)
    x[:, :256] = rng.normal(size=(count, 256))
    x[np.arange(count)[:, None], rng.integers(256, 4352, size=(count, 8))] = 1
    return x, [(0, 256), (256, 4352)]


def floor(x: np.ndarray, sample: np.ndarray) -> None:
    dense = np.ascontiguousarray(x[:, : min(1280, x.shape[1])])[:, : 256 if x.shape[1] > 1280 else None]
    np.linalg.cholesky(dense.astype(np.float64) @ dense.T + len(x) * np.eye(len(x)))
    sample[:, : dense.shape[1]] @ dense.T


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
