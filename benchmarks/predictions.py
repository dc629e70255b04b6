"""What AccuACL's Fisher argument predicts, beside what the committed runs show: the tables of docs/theory.md.

    python benchmarks/predictions.py

Rows of one setting are averaged over their seeds. "rarest" and "commonest" are the labels of a task's rarest and
commonest class as multiples of an even share, averaged over tasks and seeds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from accuacl.experiments import Row, read_csv

RESULTS = Path(__file__).parent.parent / "docs" / "results"
METRICS = ("average_accuracy", "forgetting", "learning_accuracy")


def main() -> None:
    study = [row for row in read_csv(RESULTS / "study" / "choosing.csv") if row["learner"] == "der++"]
    print("| benchmark | query / memory | A | F | LA | rarest | commonest | seeds |\n|---|---|--:|--:|--:|--:|--:|--:|")
    for (benchmark, strategy, policy), rows in grouped(study, ("benchmark", "strategy", "memory_policy")).items():
        if (strategy, policy) in (("uniform", "paper"), ("accuacl", "paper"), ("coverage", "paper")):
            even = [np.array(task) / np.mean(task) for row in rows for task in row["picked"]]
            rarest, commonest = np.mean([share.min() for share in even]), np.mean([share.max() for share in even])
            print(
                f"| {benchmark} | {strategy}/{policy} | {means(rows)} | {rarest:.2f} | {commonest:.2f} | {len(rows)} |"
            )
    weights = [row for row in read_csv(RESULTS / "recipes.csv") if row["lam_from"] == 4]
    print("\n| lambda | A | F | LA | seeds |\n|---|--:|--:|--:|--:|")
    for (lam,), rows in grouped(weights, ("lam",)).items():
        print(f"| {lam:.3g} | {means(rows)} | {len(rows)} |")


def grouped(rows: Sequence[Row], names: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return dict(sorted(found.items()))


def means(rows: Sequence[Row]) -> str:
    return " | ".join(f"{np.mean([row[name] for row in rows]):.1f}" for name in METRICS)


if __name__ == "__main__":
    main()
