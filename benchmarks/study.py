"""Queries and memory policies against each other: tables of a sweep, paired by seed.

    python benchmarks/study.py docs/results/study/choosing.csv --ours coverage/coverage --table docs/strategies.md

A cell is a strategy and a memory policy, `coverage/herding`; a first round that covers the pool adds `/first`. For
every benchmark and learner: accuracy A, forgetting F and learning accuracy LA of every cell (mean and standard
deviation over seeds, in %), then OURS minus every other cell, with p-values by sign flips, corrected by Holm's method
over the cells it is compared with, then the two-by-two table of query and memory.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from accuacl.base.files import write_text
from accuacl.experiment import read_csv
from accuacl.report.statistics.significance import holm, sign_flip_test

METRICS = {"A": "average_accuracy", "F": "forgetting", "LA": "learning_accuracy"}
START, END = "<!-- benchmarks/study.py writes from here -->", "<!-- to here -->"

Cells = dict[str, dict[int, dict[str, float]]]  # cell: seed: metric: value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="Tables of sweeps.")
    parser.add_argument("--ours", default="coverage/coverage", help="The cell that is compared with all others.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    text = "\n\n".join(section(*parts, given.ours) for parts in regimes(given.results).items())
    if given.table:
        page = given.table.read_text()
        before, after = page[: page.index(START) + len(START)], page[page.index(END) :]
        write_text(given.table, f"{before}\n\n{text}\n\n{after}")
    else:
        print(text)


def regimes(paths: list[Path]) -> dict[str, Cells]:
    """The cells of every benchmark and learner."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for row in read_csv(path):
            cell = f"{row['strategy']}/{row.get('memory_policy') or 'paper'}"
            cell += "/first" if row.get("first_round") == "coverage" else ""
            regime = f"{row['learner']} on {row['benchmark']}, M = {row['memory']}"
            found[regime][cell][int(row["seed"])] = {name: float(row[key]) for name, key in METRICS.items()}
    return found


def section(regime: str, cells: Cells, ours: str) -> str:
    parts = [f"**{regime}**", overview(cells)]
    if ours in cells and len(cells) > 1:
        parts.append(against(cells, ours))
    if all(
        f"{query}/{memory}" in cells for query in ("uniform", ours.split("/")[0]) for memory in ("paper", "coverage")
    ):
        parts.append(two_by_two(cells, ours.split("/")[0]))
    return "\n\n".join(parts)


def overview(cells: Cells) -> str:
    lines = ["| query / memory | A | F | LA | seeds |", "|---|--:|--:|--:|--:|"]
    for cell, by_seed in sorted(cells.items(), key=lambda item: -mean(item[1], "A")):
        numbers = [f"{mean(by_seed, metric):.1f} ± {deviation(by_seed, metric):.1f}" for metric in METRICS]
        lines.append(f"| {cell} | {' | '.join(numbers)} | {len(by_seed)} |")
    return "\n".join(lines)


def against(cells: Cells, ours: str) -> str:
    """OURS minus each other cell; p corrected over the cells of this table, for each metric."""
    others = [cell for cell in cells if cell != ours and shared(cells, ours, cell)]
    ps = {}
    for metric in METRICS:
        raw = [sign_flip_test(differences(cells, ours, other, metric)) for other in others]
        ps |= {(other, metric): p for other, p in zip(others, holm(raw), strict=True)}
    header = " | ".join(f"{metric} | p" for metric in METRICS)
    lines = [f"| {ours} minus | {header} | pairs |", "|---|" + "--:|" * (2 * len(METRICS) + 1)]
    for other in others:
        numbers = []
        for metric in METRICS:
            p = ps[other, metric]
            change = np.mean(differences(cells, ours, other, metric))
            numbers.append(f"{change:+.1f} | {'< 0.001' if p < 0.001 else f'{p:.3f}'}")
        lines.append(f"| {other} | {' | '.join(numbers)} | {len(shared(cells, ours, other))} |")
    return "\n".join(lines)


def two_by_two(cells: Cells, query: str) -> str:
    lines = ["| A / F | memory paper | memory coverage |", "|---|--:|--:|"]
    for strategy in ("uniform", query):
        numbers = [
            f"{mean(cells[f'{strategy}/{memory}'], 'A'):.1f} / {mean(cells[f'{strategy}/{memory}'], 'F'):.1f}"
            for memory in ("paper", "coverage")
        ]
        lines.append(f"| query {strategy} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def shared(cells: Cells, ours: str, other: str) -> list[int]:
    return sorted(cells[ours].keys() & cells[other].keys())


def differences(cells: Cells, ours: str, other: str, metric: str) -> list[float]:
    return [cells[ours][seed][metric] - cells[other][seed][metric] for seed in shared(cells, ours, other)]


def mean(by_seed: dict[int, dict[str, float]], metric: str) -> float:
    return float(np.mean([row[metric] for row in by_seed.values()]))


def deviation(by_seed: dict[int, dict[str, float]], metric: str) -> float:
    return float(np.std([row[metric] for row in by_seed.values()], ddof=1)) if len(by_seed) > 1 else 0.0


if __name__ == "__main__":
    main()
