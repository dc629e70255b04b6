"""Two strategies side by side: in the same cell, with the same seed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from accuacl.report.statistics.groups import Cell, Group

Pair = tuple[float, float]


def pairs(groups: Sequence[Group], ours: str, other: str, metric: str) -> dict[Cell, dict[int, Pair]]:
    """The metric of both strategies by cell and seed, where both have it; each pair of runs once.

    Runs with the same accuracies are the same run: without this, a setting that made no difference (a memory that was
    never full) would make one pair count twice.
    """
    cells: dict[Cell, dict[str, Group]] = {}
    for group in groups:
        cells.setdefault(group.cell, {})[group.strategy] = group
    by_cell: dict[Cell, dict[int, Pair]] = {}
    seen = set()
    for cell, by_strategy in cells.items():
        if ours not in by_strategy or other not in by_strategy:
            continue
        mine, theirs = by_strategy[ours].values(metric), by_strategy[other].values(metric)
        for seed in sorted(mine.keys() & theirs.keys()):
            runs = _identity(by_strategy[ours], seed), _identity(by_strategy[other], seed)
            if None in runs or runs not in seen:
                seen.add(runs)
                by_cell.setdefault(cell, {})[seed] = mine[seed], theirs[seed]
    return by_cell


def _identity(group: Group, seed: int) -> str | None:
    """What the run is known by, whatever its settings; None if its accuracies were not recorded."""
    matrix = next(row.get("accuracy_matrix") for row in group.rows if row["seed"] == seed)
    return json.dumps([group["benchmark"], group["learner"], seed, matrix]) if matrix else None
