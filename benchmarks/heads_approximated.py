"""What the kernel head loses where it is approximated, above 5,000 labels: CLINC150, the same labels both ways.

OMP_NUM_THREADS=1 python benchmarks/heads_approximated.py --data-dir DATA --cache CACHE
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

import numpy as np
from heads_data import load

from accuacl.experiments.heads import candidates_of_kind, kernel

LABELS, SEEDS = 5050, 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data-dir", "--cache"):
        parser.add_argument(name, type=Path, required=True)
    given = parser.parse_args()
    arrays = load("clinc150", given.data_dir, given.cache)
    pool, truth, tests, answers = map(np.concatenate, (arrays.pools, arrays.truth, arrays.tests, arrays.answers))
    print("| head | accuracy | mean confidence |\n|---|--:|--:|")
    for name, exact in (("exact", len(pool)), ("approximated", LABELS - 1)):
        kernel.EXACT = exact
        found = []
        for seed in range(SEEDS):
            chosen = np.random.default_rng(seed).permutation(len(pool))[:LABELS]
            candidates = candidates_of_kind(arrays.kind, arrays.blocks)
            p = kernel.fit(pool[chosen], truth[chosen], arrays.classes, candidates=candidates).probabilities(tests)
            found.append((100 * float((p.argmax(axis=1) == answers).mean()), 100 * float(p.max(axis=1).mean())))
        columns = zip(*found, strict=True)
        print(f"| {name} | {' | '.join(_shown(values) for values in columns)} |", flush=True)


def _shown(values: tuple[float, ...]) -> str:
    return f"{mean(values):.1f} ({', '.join(f'{value:.1f}' for value in values)})"


if __name__ == "__main__":
    main()
