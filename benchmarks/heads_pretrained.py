"""The table of docs/heads.md with runs on a pretrained network, beside DER++ from scratch.

python benchmarks/heads_pretrained.py --page docs/heads.md
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from pathlib import Path
from statistics import mean, stdev

from paired import show

from accuacl.experiments.heads import looks_at_pool
from accuacl.experiments.heads.pool import SELF

RESULTS = Path("docs/results")
START, END = (
    "<!-- benchmarks/heads_pretrained.py writes from here -->",
    "<!-- to here, benchmarks/heads_pretrained.py -->",
)
NUMBERS = ("average_accuracy", "forgetting", "learning_accuracy")
Key = tuple[str, int, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path)
    show(table(), parser.parse_args().page, START, END)


def table() -> str:
    """A, F, LA and CPU seconds of each setting, means over seeds."""
    found: dict[Key, list[list[float]]] = defaultdict(list)
    for row in read("heads/pretrained.csv"):
        pool = ", pool" if row.get("pool_learning") == "self" and learned_at_the_end(row) else ""
        add(found, row, f"pretrained, {row['learner']}{pool}, {row['strategy']}")
    for row in read("heads/derpp.csv"):
        add(found, row, f"from scratch, der++, {row['strategy']}")
    for row in read("study/choosing.csv"):
        if row["learner"] == "der++" and (row["strategy"], row["memory_policy"]) in WITH:
            memory = "" if row["memory_policy"] == "paper" else f" / memory {row['memory_policy']}"
            add(found, row, f"from scratch, der++, {row['strategy']}{memory}")
    lines = [
        "| stream, labels a task | network, learner, query | A | F | LA | CPU seconds | seeds |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for (benchmark, labels, name), rows in sorted(
        found.items(), key=lambda item: (item[0][0], item[0][1], -best(item[1]))
    ):
        columns = list(zip(*rows, strict=True))
        numbers = [
            f"{mean(values):.1f} ± {stdev(values):.1f}" if len(rows) > 1 else f"{values[0]:.1f}"
            for values in columns[:3]
        ]
        lines.append(
            f"| {benchmark}, {labels:,} | {name} | {' | '.join(numbers)} | {mean(columns[3]):.0f} | {len(rows)} |"
        )
    return "\n".join(lines)


def learned_at_the_end(row: dict[str, str]) -> bool:
    """Whether the last training still learned from the pool, which it does with few labels in all."""
    return looks_at_pool(SELF, int(row["labels"]) * len(json.loads(row["accuracy_matrix"])))


WITH = (("uniform", "paper"), ("coverage", "coverage"), ("accuacl", "paper"))  # of those trained from scratch


def best(rows: list[list[float]]) -> float:
    return mean(row[0] for row in rows)


def add(found: dict[Key, list[list[float]]], row: dict[str, str], name: str) -> None:
    seconds = float(row["seconds_cpu"] or 0)
    key = (row["benchmark"], int(row["labels"]), name)
    found[key].append([*(float(row[column]) for column in NUMBERS), seconds])


def read(name: str) -> list[dict[str, str]]:
    path = RESULTS / name
    return list(csv.DictReader(path.open())) if path.exists() else []


if __name__ == "__main__":
    main()
