"""Two strategies side by side: in the same cell, with the same seed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from accuacl.report.statistics.groups import Group

Place = tuple[object, str]  # a cell and a learner
Pair = tuple[float, float]


def pairs(groups: Sequence[Group], ours: str, other: str, metric: str) -> dict[Place, dict[int, Pair]]:
    """The metric of both by place and seed, where both have it; a pair of runs that was met before is left out.

    Runs with the same accuracies are the same run: settings that did not matter (a memory that was never full) would
    otherwise make it count twice.
    """
    places: dict[Place, dict[str, Group]] = {}
    for group in groups:
        places.setdefault((group.cell, group.learner), {})[group.strategy] = group
    found: dict[Place, dict[int, Pair]] = {}
    known = set()
    for place, there in places.items():
        if ours not in there or other not in there:
            continue
        mine, theirs = there[ours].values(metric), there[other].values(metric)
        for seed in sorted(mine.keys() & theirs.keys()):
            runs = _run(there[ours], seed), _run(there[other], seed)
            if None in runs or runs not in known:
                known.add(runs)
                found.setdefault(place, {})[seed] = mine[seed], theirs[seed]
    return found


def _run(group: Group, seed: int) -> str | None:
    """What tells the run from others, whatever its settings; None if its accuracies were not kept."""
    matrix = next(row.get("accuracy_matrix") for row in group.rows if row["seed"] == seed)
    return json.dumps([group["benchmark"], group["learner"], seed, matrix]) if matrix else None
