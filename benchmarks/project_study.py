"""Strategies in projects against each other: tables of benchmarks/projects.py, paired by seed.

    python benchmarks/project_study.py docs/results/study/projects.csv --fewer docs/results/study/projects-fewer.csv \\
        --ours coverage/first --ours nslkdd=uncertain-coverage/first --table docs/strategies.md

For every data set and learner: the true accuracy A and forgetting F at the end, and the area under the learning curve
(the mean accuracy over all rounds, on the tasks so far), mean and standard deviation over seeds, in %; then OURS minus
every baseline, with p-values by sign flips, corrected by Holm's method; then how many labels OURS needs for the
accuracy that others reach with all of theirs, from runs of OURS with fewer labels (--fewer), by straight lines between,
with a 95 % interval from drawing the seeds again, with replacement.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path

import numpy as np
from paired import Cells, comparisons, crossing_interval, mean, show, summary

METRICS = ("A", "F", "area")
START, END = "<!-- benchmarks/project_study.py writes from here -->", "<!-- to here, benchmarks/project_study.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--fewer", type=Path, help="Runs of OURS with fewer labels.")
    parser.add_argument(
        "--ours", action="append", required=True, metavar="[DATA=]STRATEGY", help="What is compared with all others."
    )
    parser.add_argument("--against", nargs="+", default=[], help="The baselines; unset: all others.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    given = parser.parse_args()
    full = regimes(given.results)
    fewer = read(given.fewer) if given.fewer else []
    by_data = dict(one.split("=") for one in given.ours if "=" in one)
    ours = defaultdict(lambda: next(one for one in given.ours if "=" not in one), by_data)
    text = "\n\n".join([overview(full), against(full, ours, given.against), needed(full, fewer, ours)])
    show(text, given.table, START, END)


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def regimes(path: Path) -> dict[tuple[str, str], Cells]:
    """By data set and learner."""
    found: dict[tuple[str, str], Cells] = defaultdict(lambda: defaultdict(dict))
    for row in read(path):
        curve = json.loads(row["curve"])
        found[row["data"], row["learner"]][row["strategy"]][int(row["seed"])] = {
            "A": float(row["true_accuracy"]),
            "F": float(row["true_forgetting"]),
            "area": float(np.mean([np.mean(accuracies) for _, accuracies, *_ in curve])),
            "labels": float(row["labels"]),
        }
    return found


def overview(full: dict[tuple[str, str], Cells]) -> str:
    lines = ["| data, learner | strategy | A | F | area | seeds |", "|---|---|--:|--:|--:|--:|"]
    for (data, learner), cells in full.items():
        for strategy, by_seed in sorted(cells.items(), key=lambda item: -mean(item[1], "A")):
            lines.append(f"| {data}, {learner} | {strategy} | {summary(by_seed, METRICS)} | {len(by_seed)} |")
    return "\n".join(lines)


def against(full: dict[tuple[str, str], Cells], ours: dict[str, str], baselines: list[str]) -> str:
    header = " | ".join(f"{metric} | p" for metric in METRICS)
    lines = [f"| data, learner | ours | minus | {header} | pairs |", "|---|---|---|" + "--:|" * (2 * len(METRICS) + 1)]
    for (data, learner), cells in full.items():
        rows = comparisons(cells, ours[data], baselines, METRICS)
        lines += [f"| {data}, {learner} | {ours[data]} | {other} | {row} |" for other, row in rows.items()]
    return "\n".join(lines)


def needed(full: dict[tuple[str, str], Cells], fewer: list[dict[str, str]], ours: dict[str, str]) -> str:
    """Labels that OURS needs for what uniform and badge reach with all, and as a share of all."""
    lines = ["| data, learner | ours: A by labels | as uniform with all | as badge with all |", "|---|---|--:|--:|"]
    for (data, learner), cells in full.items():
        strategy, reached = ours[data], defaultdict(dict)
        for row in fewer:
            if (row["data"], row["learner"], row["strategy"]) == (data, learner, strategy):
                reached[int(row["labels"])][int(row["seed"])] = float(row["true_accuracy"])
        if not reached or strategy not in cells:
            continue
        all_labels = round(mean(cells[strategy], "labels"))
        reached[all_labels] = {seed: row["A"] for seed, row in cells[strategy].items()}
        shown = ", ".join(f"{labels}: {np.mean(list(reached[labels].values())):.1f}" for labels in sorted(reached))
        goals = [
            {seed: row["A"] for seed, row in cells[other].items()} for other in ("uniform", "badge") if other in cells
        ]
        shares = [share(reached, goal, all_labels) for goal in goals]
        lines.append(f"| {data}, {learner} | {shown} | {' | '.join(shares)} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def share(reached: dict[int, dict[int, float]], goal: dict[int, float], all_labels: int) -> str:
    """How many labels the goal takes, as a share of all, and between which numbers it is with 95 %.

    reached: by labels and seed, the accuracy of OURS; goal: by seed, that of another with all labels.
    """
    least, seeds = min(reached), sorted(set(goal).intersection(*reached.values()))
    labels, low, high = crossing_interval(reached, goal, seeds)
    if np.isinf(labels):
        return "not reached"
    limit = "more than all" if np.isinf(high) else f"{high:.0f}"
    at_most = "at most " if labels == least else ""
    return f"{at_most}{labels:.0f} ({100 * labels / all_labels:.0f} %; {low:.0f} to {limit})"


if __name__ == "__main__":
    main()
