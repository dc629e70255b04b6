"""One cell of the paper's main table: the paper's figures, ours under its protocol, ours at `cpu` scale.

    python benchmarks/cell.py docs/results/paper/cell.csv docs/results/study/choosing.csv --table REPRODUCIBILITY.md

DER++ on split-cifar10 with a memory of 100. A: average accuracy, F: forgetting, mean and standard deviation over seeds,
in %; then uniform with the paper's memory minus each other row, paired by seed, with p-values by sign flips, corrected
by Holm's method over the rows of a scale.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from paired import Cells, comparisons, show, summary

from accuacl.experiments import read_csv
from accuacl.experiments.report.groups import MeanStd
from accuacl.experiments.report.paper import figures

METRICS = {"A": "average_accuracy", "F": "forgetting"}
ROWS = ("uniform/paper", "accuacl/paper", "uniform/coverage")
SCALES = {"paper": "ours, `paper`", "cpu": "ours, `cpu`"}
START, END = "<!-- benchmarks/cell.py writes from here -->", "<!-- to here, benchmarks/cell.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+", help="Tables of sweeps.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    scales = read(given.results)
    show(f"{values(scales)}\n\n{differences(scales)}", given.table, START, END)


def read(paths: list[Path]) -> dict[str, Cells]:
    """By scale, then query and memory policy: the runs of this cell by seed."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for path in paths:
        for row in read_csv(path):
            if (row["benchmark"], row["learner"], int(row["memory"])) == ("split-cifar10", "der++", 100):
                cell = f"{row['strategy']}/{row['memory_policy']}"
                numbers = {name: float(row[key]) for name, key in METRICS.items()}
                found[row["scale"]][cell][int(row["seed"])] = numbers
    return found


def values(scales: dict[str, Cells]) -> str:
    titles = ["paper, 3 seeds", *SCALES.values()]
    header = " | ".join(f"A, {title} | F" for title in titles)
    lines = [f"| query / memory | {header} |", "|---|" + "--:|" * (2 * len(titles))]
    for row in ROWS:
        cells = [of_paper(row), *(ours(scales[scale], row) for scale in SCALES)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def of_paper(row: str) -> str:
    strategy, memory = row.split("/")
    if memory != "paper":
        return " | "
    found = [figures()["main", "split-cifar10", 100, "der++", strategy, key] for key in METRICS.values()]
    means: list[MeanStd] = [next(iter(by_note.values())) for by_note in found]
    return " | ".join(f"{value.mean:.1f} ± {value.std:.1f}" for value in means)


def ours(cells: Cells, row: str) -> str:
    if row not in cells:
        return "not yet | "
    seeds = "1 seed" if len(cells[row]) == 1 else f"{len(cells[row])} seeds"
    return f"{summary(cells[row], list(METRICS))} ({seeds})"


def differences(scales: dict[str, Cells]) -> str:
    lines = ["| uniform/paper minus | scale | A | p | F | p | pairs |", "|---|---|--:|--:|--:|--:|--:|"]
    for scale in SCALES:
        rows = comparisons(scales[scale], ROWS[0], ROWS[1:], list(METRICS))
        lines += [f"| {other} | `{scale}` | {row} |" for other, row in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
