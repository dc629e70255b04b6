"""Queries and memory policies against each other: tables of a sweep, paired by seed.

    python benchmarks/study.py docs/results/study/choosing.csv --ours coverage/coverage --table docs/strategies.md

A cell is a strategy and a memory policy, `coverage/herding`; a first round that covers the pool adds `/first`. For
every benchmark and learner: accuracy A, forgetting F and learning accuracy LA of every cell (mean and standard
deviation over seeds, in %), then OURS minus every baseline, with p-values by sign flips, corrected by Holm's method
over the baselines, then the two-by-two table of query and memory.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from paired import Cells, comparisons, mean, show, summary

from accuacl.experiments import read_csv

METRICS = {"A": "average_accuracy", "F": "forgetting", "LA": "learning_accuracy"}
START, END = "<!-- benchmarks/study.py writes from here -->", "<!-- to here, benchmarks/study.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="Tables of sweeps.")
    parser.add_argument("--ours", default="coverage/coverage", help="The cell that is compared with all others.")
    parser.add_argument("--against", nargs="+", default=[], help="The baselines; unset: all others.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    text = "\n\n".join(section(*parts, given.ours, given.against) for parts in regimes(given.results).items())
    show(text, given.table, START, END)


def regimes(paths: list[Path]) -> dict[str, Cells]:
    """The cells of every benchmark, learner, number of labels and memory."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for row in (row for path in paths for row in read_csv(path)):
        cell = f"{row['strategy']}/{row.get('memory_policy') or 'paper'}"
        cell += "/first" if row.get("first_round") == "coverage" else ""
        regime = f"{row['learner']} on {row['benchmark']}, M = {row['memory']}, {int(row['labels']):,} labels a task"
        found[regime][cell][int(row["seed"])] = {name: float(row[key]) for name, key in METRICS.items()}
    return found


def section(regime: str, cells: Cells, ours: str, baselines: list[str]) -> str:
    parts = [f"**{regime}**", overview(cells)]
    if ours in cells and len(cells) > 1:
        parts.append(against(cells, ours, baselines))
    if all(
        f"{query}/{memory}" in cells for query in ("uniform", ours.split("/")[0]) for memory in ("paper", "coverage")
    ):
        parts.append(two_by_two(cells, ours.split("/")[0]))
    return "\n\n".join(parts)


def overview(cells: Cells) -> str:
    lines = ["| query / memory | A | F | LA | seeds |", "|---|--:|--:|--:|--:|"]
    for cell, by_seed in sorted(cells.items(), key=lambda item: -mean(item[1], "A")):
        lines.append(f"| {cell} | {summary(by_seed, list(METRICS))} | {len(by_seed)} |")
    return "\n".join(lines)


def against(cells: Cells, ours: str, baselines: list[str]) -> str:
    header = " | ".join(f"{metric} | p" for metric in METRICS)
    lines = [f"| {ours} minus | {header} | pairs |", "|---|" + "--:|" * (2 * len(METRICS) + 1)]
    lines += [f"| {other} | {row} |" for other, row in comparisons(cells, ours, baselines, list(METRICS)).items()]
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


if __name__ == "__main__":
    main()
