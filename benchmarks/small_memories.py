"""Query and memory policy over data sets, labels and memories: one row each, and what holds over all of them.

    python benchmarks/small_memories.py docs/results/study/scratch.yaml --table docs/strategies.md --mark "few labels"
    python benchmarks/small_memories.py docs/results/study/memories-choose.yaml --table docs/strategies.md \
        --mark "small memories"

Reads the table beside the sweep file, as far as it goes: the page says how many of the sweep's runs are done. A column
is a query and a memory policy, `coverage/paper`, with average accuracy A and forgetting F in %, means over seeds. Then
each column minus the baseline: one difference for each seed, the mean over the rows that have both, because rows that
share a seed are not independent; p two-sided by sign flips of these, corrected by Holm's method over the columns, where
so many seeds can tell; in how many rows it is more accurate; its smallest and its largest difference in A in any row.
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
from paired import Cells, differences as of_row, mean, pooled, show, signed

from accuacl.experiments import read_csv
from accuacl.experiments.report.comparison import LEVEL, holm, p_value, sign_flip_test

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
    lines = [f"| minus {baseline} | A | p | F | p | seeds | rows with a higher A | A in a row, from | to |"]
    lines.append("|---|" + "--:|" * 8)
    by_seed = {other: {m: pooled(regimes.values(), other, baseline, m) for m in METRICS} for other in others}
    there = {other: changed for other, changed in by_seed.items() if changed["A"]}
    able = [other for other, changed in there.items() if 2 / 2 ** len(changed["A"]) <= LEVEL]
    ps = {m: dict(zip(able, holm([sign_flip_test(there[other][m]) for other in able]), strict=True)) for m in METRICS}
    for other, changed in there.items():
        rows = [of_row(cells, other, baseline, "A") for cells in regimes.values()]
        means = [float(np.mean(row)) for row in rows if row]
        texts = {m: p_value(ps[m][other]) if other in able else "cannot tell" for m in METRICS}
        tested = " | ".join(f"{signed(np.mean(changed[m]))} | {texts[m]}" for m in METRICS)
        higher = f"{sum(round(m, 1) > 0 for m in means)} of {len(means)}"
        ends = f"{signed(min(means))} | {signed(max(means))}"
        lines.append(f"| {other} | {tested} | {len(changed['A'])} | {higher} | {ends} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
