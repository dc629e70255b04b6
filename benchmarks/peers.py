"""Side by side with other libraries, in one run: queries of scikit-activeml, training in a bare loop and in Avalanche.

Queries: time, memory beyond the inputs, and how good the picks are by the strategy's own objective, on the same
problem, each in a process of its own with one thread. Training: images a second of ER, of a bare PyTorch loop that is
given the same batches, and of Avalanche's Replay, if --avalanche-python names the Python of an environment that has it.
Run: python benchmarks/peers.py --table docs/peers.md (some minutes on a quiet machine; needs the extra skactiveml)
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from accuacl import Features, select
from accuacl.experiments.sweeps.efficiency import Case, in_fresh_process, machine, problem, timed
from accuacl.skactiveml import from_skactiveml
from accuacl.strategies import Query, squared_width, unit

SIZES = ((1_000, 64, 10, 50), (5_000, 128, 20, 100), (10_000, 256, 20, 100))
STRATEGIES = ("badge", "kcenter", "coverage")
PEERS = {"badge": "Badge", "kcenter": "CoreSet", "coverage": "MaxHerding"}
BEGIN, END = "<!-- benchmarks/peers.py writes from here -->", "<!-- to here, benchmarks/peers.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, help="a Markdown file to write the tables into")
    parser.add_argument("--avalanche-python", type=Path, help="the Python of an environment that has Avalanche")
    options = parser.parse_args()
    lines = [*query_table(), "", *training_table(options.avalanche_python)]
    lines += ["", f"{machine(1)}; {', '.join(map(version, ('scikit-activeml', 'scikit-learn', 'accuacl')))}."]
    print("\n".join(lines))
    if options.table:
        before, rest = options.table.read_text().split(BEGIN)
        after = rest.split(END)[1]
        options.table.write_text("\n".join([before + BEGIN, *lines, END + after]))


def version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


def query_table() -> list[str]:
    lines = [
        "| strategy | n | d | K | b | CPU s | theirs | x | MiB | theirs | objective | theirs |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in STRATEGIES:
        for n, d, K, b in SIZES:
            case = Case(name, n, d, K, b, m=0, labelled=20)
            ours, theirs = (in_fresh_process(measure, case, peer, threads=1) for peer in (False, True))
            lines.append(
                f"| {name}, {PEERS[name]} | {n:,} | {d} | {K} | {b} | {ours[0]:.3f} | {theirs[0]:.2f} | "
                f"{theirs[0] / ours[0]:,.0f} | {ours[1] / 2**20:,.0f} | {theirs[1] / 2**20:,.0f} | "
                f"{ours[2]:.4g} | {theirs[2]:.4g} |"
            )
            print(lines[-1], file=sys.stderr)
    return lines


def measure(case: Case, peer: bool) -> tuple[float, int, float]:
    """CPU seconds, bytes beyond the inputs, and the objective that the picks reach, over three seeds."""
    pool, _, labelled = problem(case)
    assert labelled is not None
    picks: list[np.ndarray] = []
    job = their_query(case, pool, labelled) if peer else our_query(case, pool, labelled)
    cpu, _, extra = timed(lambda: picks.append(job(0)))
    if case.strategy == "badge":  # it draws; the others do not
        picks = [job(seed) for seed in range(3)]
    return cpu, extra, float(np.mean([OBJECTIVES[case.strategy](pool, labelled, rows) for rows in picks]))


def our_query(case: Case, pool: Features, labelled: Features) -> Callable[[int], np.ndarray]:
    known = None if case.strategy == "badge" else labelled  # which scikit-activeml's Badge does not look at
    select(case.strategy, pool=pool.rows(slice(0, 2)), budget=1)  # what it imports is imported
    return lambda seed: select(case.strategy, pool=pool, budget=case.b, labelled=known, seed=seed).indices


def their_query(case: Case, pool: Features, labelled: Features) -> Callable[[int], np.ndarray]:
    from skactiveml.pool import Badge, CoreSet, MaxHerding

    warnings.simplefilter("ignore")
    width = squared_width(unit(pool.embeddings), 1 / min(case.b + len(labelled), 200))
    theirs = {
        "badge": Badge(),
        "kcenter": CoreSet(),
        "coverage": MaxHerding(metric="rbf", metric_dict={"gamma": 1 / width}),
    }
    strategy = from_skactiveml(theirs[case.strategy])
    known = None if case.strategy == "badge" else labelled
    strategy(Query(pool.rows(slice(0, 3)), 1))
    return lambda seed: strategy(Query(pool, case.b, labelled=known, seed=seed)).indices


def gradient_potential(pool: Features, labelled: Features, rows: np.ndarray) -> float:
    """BADGE: the sum over the pool of the squared distance of gradients to the nearest pick's; smaller is better."""
    h, p = np.asarray(pool.embeddings, dtype=float), np.asarray(pool.probabilities, dtype=float)
    a = p - np.eye(pool.K)[p.argmax(axis=1)]
    norms = (a**2).sum(1) * (h**2).sum(1)
    dots = (a @ a[rows].T) * (h @ h[rows].T)
    return float(np.maximum(norms[:, None] + norms[rows] - 2 * dots, 0).min(axis=1).sum())


def radius(pool: Features, labelled: Features, rows: np.ndarray) -> float:
    """k-center: the largest distance of an example to the nearest that is picked or labelled; smaller is better."""
    h = np.asarray(pool.embeddings, dtype=float)
    centres = np.concatenate([h[rows], np.asarray(labelled.embeddings, dtype=float)])
    squares = (h**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * h @ centres.T
    return float(np.sqrt(np.maximum(squares, 0).min(axis=1).max()))


def covered(pool: Features, labelled: Features, rows: np.ndarray) -> float:
    """Coverage: the mean over the pool of the kernel with the nearest that is picked or labelled; larger is better."""
    x = unit(pool.embeddings)
    width = squared_width(x, 1 / min(len(rows) + len(labelled), 200))
    centres = np.concatenate([x[rows], unit(labelled.embeddings)])
    return float(np.exp(-np.maximum(2 - 2 * x @ centres.T, 0).min(axis=1) / width).mean())


OBJECTIVES = {"badge": gradient_potential, "kcenter": radius, "coverage": covered}


def training_table(avalanche_python: Path | None) -> list[str]:
    """Images per second of CPU time that pass through the net, new and replayed ones."""
    import torch
    import training

    times, batches = training.measured(training.arguments().parse_args(["--cycled", "--repeats", "5"]))
    rates = {name: training.images(batches) / min(seconds) for name, seconds in times.items()}
    rows = rate_rows(rates, f"accuacl {importlib.metadata.version('accuacl')}, `er`", torch.__version__)
    there = avalanche_rates(avalanche_python) if avalanche_python else None
    if there:
        rows += rate_rows(there["rates"], f"Avalanche {there['version']}, `Replay`", there["torch"])
    else:
        rows.append("| Avalanche, `Replay` | | not installed | |")
    return ["| training loop | torch | images/s | of the bare loop |", "|---|---|--:|--:|", *rows]


def rate_rows(rates: dict[str, float], name: str, torch: str) -> list[str]:
    """A bare loop and a library's, with the same torch."""
    bare, library = rates.pop("bare"), next(iter(rates.values()))
    return [
        f"| bare PyTorch | {torch} | {bare:,.0f} | |",
        f"| {name} | {torch} | {library:,.0f} | {library / bare:.0%} |",
    ]


def avalanche_rates(python: Path) -> dict[str, Any] | None:
    """What benchmarks/avalanche_replay.py measures with that Python; nothing if it lacks Avalanche."""
    if subprocess.run([python, "-c", "import avalanche"], capture_output=True).returncode:
        return None
    script = Path(__file__).with_name("avalanche_replay.py")
    done = subprocess.run([python, "-W", "ignore", script], check=True, stdout=subprocess.PIPE, text=True)
    rates: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return rates


if __name__ == "__main__":
    main()
