"""What AccuACL's Fisher argument predicts, beside what the committed runs show: the tables of docs/theory.md.

    python benchmarks/predictions.py --table docs/theory.md

Rows of one setting are averaged over their seeds. "rarest" and "commonest" are the labels of a task's rarest and
commonest class as multiples of an even share, averaged over tasks and seeds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from paired import show

from accuacl.experiments import Row, read_csv

RESULTS = Path(__file__).parent.parent / "docs" / "results"
METRICS = ("average_accuracy", "forgetting", "learning_accuracy")
START, END = "<!-- benchmarks/predictions.py writes from here -->", "<!-- to here, benchmarks/predictions.py -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    show(f"{strategies()}\n\n{weights()}", parser.parse_args().table, START, END)


def strategies() -> str:
    """What AccuACL, coverage and uniform give with DER++ and the paper's memory, and how even their picks are."""
    study = [row for row in read_csv(RESULTS / "study" / "choosing.csv") if row["learner"] == "der++"]
    lines = ["| benchmark | query / memory | A | F | LA | rarest | commonest | seeds |", "|---|---|" + "--:|" * 6]
    for (benchmark, strategy, policy), rows in grouped(study, ("benchmark", "strategy", "memory_policy")).items():
        if (strategy, policy) in (("uniform", "paper"), ("accuacl", "paper"), ("coverage", "paper")):
            even = [np.array(task) / np.mean(task) for row in rows for task in row["picked"]]
            share = f"{np.mean([task.min() for task in even]):.2f} | {np.mean([task.max() for task in even]):.2f}"
            lines.append(f"| {benchmark} | {strategy}/{policy} | {means(rows)} | {share} | {len(rows)} |")
    return "\n".join(lines)


def weights() -> str:
    """What the recipe on lambda gives."""
    runs = grouped([row for row in read_csv(RESULTS / "recipes.csv") if row["lam_from"] == 4], ("lam",))
    lines = ["| lambda | A | F | LA | seeds |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {lam:.3g} | {means(rows)} | {len(rows)} |" for (lam,), rows in runs.items()]
    return "\n".join(lines)


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return dict(sorted(found.items()))


def means(rows: Sequence[Row]) -> str:
    return " | ".join(f"{np.mean([row[name] for row in rows]):.1f}" for name in METRICS)


if __name__ == "__main__":
    main()
