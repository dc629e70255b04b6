"""Do the learners rank as published? Fully supervised class-incremental CIFAR-10, shortened.

Every task's 2000 examples are all labelled and learned in one round; memory 200; the learners as first proposed
(`original`). Published with 50 epochs and a ResNet18 (memory 200): naive below ER 44.8 and GSS 39.1, below DER++ 64.9
and ER-ACE about 63. Here: the small net and few epochs, so lower everywhere; the order is what counts.

    ACCUACL_DATA=... python benchmarks/learners.py --workers 2

If interrupted, run it again to resume; the table in docs/results is rewritten after every run.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

LEARNERS = {
    "naive": ("er", 0),
    "er": ("er", 200),
    "gss": ("gss", 200),
    "der++": ("der++", 200),
    "er-ace": ("er-ace", 200),
}
COLUMNS = ("learner", "seed", "average_accuracy", "forgetting", "learning_accuracy", "epochs", "seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--gss-epochs", type=int, default=2, help="it scores every step, which takes its time")
    parser.add_argument("--runs", type=Path, default=Path("runs/learners"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/learners-cifar10.csv"))
    options = parser.parse_args()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    cells = [(name, seed) for seed in range(options.seeds) for name in LEARNERS]
    rows = []
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        jobs = [
            pool.submit(one, name, seed, options.gss_epochs if name == "gss" else options.epochs, options.runs)
            for name, seed in cells
        ]
        for job in as_completed(jobs):
            rows.append(job.result())
            print(*(f"{key} {value}" for key, value in rows[-1].items()), flush=True)
            write(options.out, sorted(rows, key=lambda row: (list(LEARNERS).index(row["learner"]), row["seed"])))
    for name in LEARNERS:
        values = [row["average_accuracy"] for row in rows if row["learner"] == name]
        print(f"{name:8} {np.mean(values):5.1f} +- {np.std(values, ddof=1) if len(values) > 1 else 0:.1f}")


def one(name: str, seed: int, epochs: int, runs: Path) -> dict[str, object]:
    from accuacl.experiments import make, run

    learner, memory = LEARNERS[name]
    config = {"benchmark": "split-cifar10", "scale": "cpu", "learner": learner, "learner_variant": "original"}
    config |= {"strategy": "full", "pool": 2000, "memory": memory, "epochs": epochs, "momentum": 0.9, "seed": seed}
    result = run(make(config), runs / f"{name}-{seed}-{epochs}")
    measured = {key: round(result[key], 2) for key in ("average_accuracy", "forgetting", "learning_accuracy")}
    return {
        "learner": name,
        "seed": seed,
        **measured,
        "epochs": epochs,
        "seconds": round(sum(result["seconds"].values())),
    }


def write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".part")
    with aside.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    aside.rename(path)


if __name__ == "__main__":
    main()
