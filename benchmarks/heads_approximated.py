"""What the kernel head loses where it is approximated: the same labels both ways.

Above 5,000 labels; and where it learns from the pool, of which at most 1,000 rows are support rows.

OMP_NUM_THREADS=1 python benchmarks/heads_approximated.py --data clinc150 cifar100 --data-dir DATA --cache CACHE
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean

import numpy as np
from heads_data import Arrays, load

from accuacl.experiments.heads import candidates_of_kind, kernel, pool

LABELS, SEEDS = 5050, 2
FEW, MORE_SEEDS = 180, 5  # where it learns from the pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--data-dir", "--cache"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--data", nargs="+", default=["clinc150"], help="Sets of heads_data.py, of 5,050 rows or more.")
    parser.add_argument("--only-pool", action="store_true", help="Only the second table.")
    given = parser.parse_args()
    sets = [load(data, given.data_dir, given.cache) for data in given.data]
    if not given.only_pool:
        print(f"| data, {LABELS:,} labels | head | accuracy | mean confidence |\n|---|---|--:|--:|")
        for arrays in sets:
            _compare(arrays)
    print(f"| data, {FEW} labels | support rows of the pool | accuracy | mean confidence |\n|---|---|--:|--:|")
    for arrays in sets:
        _compare_support(arrays)


def _compare(arrays: Arrays) -> None:
    """One row for the exact head and one for the approximated head."""
    rows, truth, tests, answers = map(np.concatenate, (arrays.pools, arrays.truth, arrays.tests, arrays.answers))
    for head, exact in (("exact", len(rows)), ("approximated", LABELS - 1)):
        kernel.EXACT = exact
        found = []
        for seed in range(SEEDS):
            chosen = np.random.default_rng(seed).permutation(len(rows))[:LABELS]
            candidates = candidates_of_kind(arrays.kind, arrays.blocks)
            p = kernel.fit(rows[chosen], truth[chosen], arrays.classes, candidates=candidates).probabilities(tests)
            found.append((100 * float((p.argmax(axis=1) == answers).mean()), 100 * float(p.max(axis=1).mean())))
        _print(arrays.name, head, found=found)


def _compare_support(arrays: Arrays) -> None:
    """One row if every pseudo-label is a support row, and one for as many as usual; labels are drawn at random."""
    rows, truth, tests, answers = map(np.concatenate, (arrays.pools, arrays.truth, arrays.tests, arrays.answers))
    for head, support in (("all", len(rows)), (f"{pool.SUPPORT:,}", pool.SUPPORT)):
        pool.SUPPORT = support
        found = []
        for seed in range(MORE_SEEDS):
            chosen = np.random.default_rng(seed).permutation(len(rows))[:FEW]
            p = pool.fit_with_pool(
                rows[chosen],
                truth[chosen],
                [each[pool.sample_ids(np.arange(len(each)), len(arrays.pools), seed)] for each in arrays.pools],
                arrays.classes,
                candidates=candidates_of_kind(arrays.kind, arrays.blocks),
            ).probabilities(tests)
            found.append((100 * float((p.argmax(axis=1) == answers).mean()), 100 * float(p.max(axis=1).mean())))
        _print(arrays.name, head, found=found)


def _print(*names: str, found: list[tuple[float, float]]) -> None:
    print(f"| {' | '.join([*names, *map(_shown, zip(*found, strict=True))])} |", flush=True)


def _shown(values: tuple[float, ...]) -> str:
    return f"{mean(values):.1f} ({', '.join(f'{value:.1f}' for value in values)})"


if __name__ == "__main__":
    main()
