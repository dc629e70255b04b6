"""Query and memory policy over data sets, labels and memories: one row each, and what holds over all of them.

    python benchmarks/small_memories.py docs/results/study/scratch.yaml --table docs/strategies.md --mark "few labels"
    python benchmarks/small_memories.py docs/results/study/memories-choose.yaml --table docs/strategies.md \
        --mark "small memories"

Reads the table beside the sweep file, as far as it goes: the page says how many of the sweep's runs are done. A column
is a query and a memory policy, `coverage/paper`, with average accuracy A and forgetting F in %, means over seeds. Then
each column minus the baseline: paired by row and seed, p two-sided by sign flips, corrected by Holm's method over the
columns; in how many rows it is more accurate; and its smallest and its largest difference in A in any row.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from paired import Cells, mean, show

from accuacl.experiments import read_csv
from accuacl.experiments.report.comparison import holm, p_value, sign_flip_test

METRICS = {"A": "average_accuracy", "F": "forgetting"}
BASELINE = "uniform/paper"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, help="The sweep file; its table is the .csv of the same name.")
    parser.add_argument("--baseline", default=BASELINE, help="The column that all others are compared with.")
    parser.add_argument("--table", type=Path, help="Write the tables into this Markdown file, between its two marks.")
    parser.add_argument("--mark", default="few labels", help="Which marks.")
    given = parser.parse_args()
    path = given.sweep.with_suffix(".csv")
    rows = read_csv(path) if path.exists() else []
    text = page(rows, planned(yaml.safe_load(given.sweep.read_text())), given.baseline)
    name = f"benchmarks/small_memories.py, {given.mark}"
    show(text, given.table, f"<!-- {name}, from here -->", f"<!-- to here, {name} -->")


def planned(spec: dict[str, Any]) -> int:
    """How many runs a sweep file has: every combination of its lists, in each of its grids."""
    shared = {name: value for name, value in spec.items() if name != "grids"}
    grids = [shared | grid for grid in spec.get("grids", [{}])]
    return sum(math.prod(len(value) for value in grid.values() if isinstance(value, list)) for grid in grids)


def page(rows: Sequence[dict[str, Any]], planned: int, baseline: str = BASELINE) -> str:
    """The tables of what there is, and a sentence about what is missing."""
    done = f"{len(rows)} of {planned} runs are done." if rows else f"Not measured yet: none of {planned} runs is done."
    cells = by_regime(rows)
    columns = sorted({cell for regime in cells.values() for cell in regime}, key=lambda cell: (cell != baseline, cell))
    if not cells:
        return done
    parts = [done, values(cells, columns)]
    if baseline in columns and len(columns) > 1:
        parts.append(differences(cells, columns[1:], baseline))
    return "\n\n".join(parts)


def by_regime(rows: Sequence[dict[str, Any]]) -> dict[str, Cells]:
    """By data, learner, labels and memory, then by query and memory policy: the runs by seed."""
    found: dict[str, Cells] = defaultdict(lambda: defaultdict(dict))
    for row in sorted(rows, key=lambda row: (row["benchmark"], row["learner"], row["labels"], row["memory"])):
        name = f"{row['benchmark']} | {row['learner']} | {int(row['labels']):,} | {int(row['memory']):,}"
        cell = f"{row['strategy']}/{row['memory_policy']}"
        found[name][cell][int(row["seed"])] = {name: float(row[key]) for name, key in METRICS.items()}
    return dict(found)


def values(regimes: dict[str, Cells], columns: Sequence[str]) -> str:
    heads = f"| data | learner | labels a task | memory | {' | '.join(columns)} | seeds |"
    lines = [heads, "|---|---|--:|--:|" + "--:|" * (len(columns) + 1)]
    for regime, cells in regimes.items():
        texts = [
            f"{mean(cells[column], 'A'):.1f} / {mean(cells[column], 'F'):.1f}" if column in cells else "-"
            for column in columns
        ]
        counts = sorted({len(by_seed) for by_seed in cells.values()})
        seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
        lines.append(f"| {regime} | {' | '.join(texts)} | {seeds} |")
    return "\n".join(lines)


def differences(regimes: dict[str, Cells], others: Sequence[str], baseline: str) -> str:
    """Each other column minus the baseline, over all rows that have both with the same seeds."""
    pairs = {other: paired(regimes, other, baseline) for other in others}
    there = {other: by_row for other, by_row in pairs.items() if by_row}
    lines = [f"| minus {baseline} | A | p | F | p | pairs | rows with a higher A | A in a row, from | to |"]
    lines.append("|---|" + "--:|" * 8)
    every = {other: {m: [d for row in by_row for d in row[m]] for m in METRICS} for other, by_row in there.items()}
    ps = {m: dict(zip(every, holm([sign_flip_test(d[m]) for d in every.values()]), strict=True)) for m in METRICS}
    for other, by_row in there.items():
        means = [float(np.mean(row["A"])) for row in by_row]
        tested = " | ".join(f"{np.mean(every[other][m]):+.1f} | {p_value(ps[m][other])}" for m in METRICS)
        higher = f"{sum(round(m, 1) > 0 for m in means)} of {len(means)}"
        ends = f"{min(means):+.1f} | {max(means):+.1f}"
        lines.append(f"| {other} | {tested} | {len(every[other]['A'])} | {higher} | {ends} |")
    return "\n".join(lines)


def paired(regimes: dict[str, Cells], other: str, baseline: str) -> list[dict[str, list[float]]]:
    """By row that has both: the differences of each metric, by seed."""
    found = []
    for cells in regimes.values():
        if other in cells and baseline in cells:
            seeds = sorted(cells[other].keys() & cells[baseline].keys())
            if seeds:
                found.append({m: [cells[other][s][m] - cells[baseline][s][m] for s in seeds] for m in METRICS})
    return found


if __name__ == "__main__":
    main()
