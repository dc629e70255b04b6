"""Whether a difference between strategies is more than luck: paired over seeds and cells, tested by flipping signs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from accuacl.report.document import Block, Cell, Column, Line, Table
from accuacl.report.gains import own_names
from accuacl.report.groups import METRICS, Group, whole
from accuacl.report.tables import number

EXACT = 16  # up to so many pairs all 2^n sign flips are tried
DRAWS = 100_000
SURE = 0.05


def sign_flip(differences: ArrayLike, seed: int = 0) -> float:
    """Two-sided p: how often |mean| is at least as large when every difference may as well have the other sign.

    >>> sign_flip([1.0, 2.0, 3.0])  # the smallest that three pairs can give
    0.25
    """
    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not len(d):
        raise ValueError(f"differences have the shape {d.shape}; give a sequence of at least one.")
    exact = len(d) <= EXACT
    if exact:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        sums = signs @ d
    else:
        rng = np.random.default_rng(seed)
        parts = [rng.choice((-1.0, 1.0), (DRAWS // 10, len(d))) @ d for _ in range(10)]
        sums = np.concatenate(parts)
    extreme = np.abs(sums) >= abs(d.sum()) - 1e-9 * max(1.0, np.abs(d).sum())  # equal but for rounding counts
    return float(extreme.mean()) if exact else float((extreme.sum() + 1) / (DRAWS + 1))


def paired(groups: Sequence[Group], ours: str, other: str, metric: str) -> tuple[list[float], int]:
    """Ours minus the other's for every seed that both have in the same cell, and in how many cells."""
    cells: dict[object, dict[str, Group]] = {}
    for group in groups:
        cells.setdefault((group.cell, group.learner), {})[group.strategy] = group
    found, count = [], 0
    for cell in cells.values():
        if ours in cell and other in cell:
            mine, theirs = cell[ours].values(metric), cell[other].values(metric)
            both = [mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())]
            found += both
            count += bool(both)
    return found, count


def compare(groups: Sequence[Group]) -> tuple[list[str], Table | None]:
    """AccuACL against every other strategy: what is sure, in words, and all differences in a table."""
    said: list[str] = []
    blocks = []
    groups = whole(groups)
    others = dict.fromkeys(g.strategy for g in groups if g["strategy"] not in ("accuacl", "full"))
    for ours in own_names(groups):
        lines = []
        verdicts: dict[tuple[str, str], list[str]] = {}
        for other in others:
            cells = []
            for metric in ("average_accuracy", "forgetting"):
                differences, count = paired(groups, ours, other, metric)
                if not differences:
                    break
                p, mean = sign_flip(differences), float(np.mean(differences))
                better = (mean > 0) == METRICS[metric].larger
                verdict = "not sure" if p >= SURE else "better" if better else "worse"
                verdicts.setdefault((metric, verdict), []).append(other)
                cells += [Cell(f"{mean:+.2f}", mark="best" if verdict == "better" else ""), Cell(p_value(p))]
            else:
                lines.append(Line([other], [*cells, Cell(str(len(differences))), Cell(str(count))]))
        if lines:
            blocks.append(Block(f"{ours} minus", lines))
            said += [_verdict(ours, metric, verdicts) for metric in ("average_accuracy", "forgetting")]
    if not blocks:
        return [], None
    columns = [
        Column("difference", "A"),
        Column("p", "A"),
        Column("difference", "F"),
        Column("p", "F"),
        Column("pairs"),
        Column("cells"),
    ]
    note = (
        "Differences in points, paired by seed within each cell (benchmark, memory, learner and all other settings); "
        f"two-sided p by flipping their signs, all ways up to {EXACT} pairs, {DRAWS:,} random ones beyond; not "
        "corrected for the number of comparisons. Runs that stop early or go on longer than usual are left out. n "
        "pairs cannot give a p below 2 / 2^n: five or fewer are never below 0.05. Bold: better, p < 0.05."
    )
    return said, Table("Is the difference more than luck?", ["strategy"], columns, blocks, note, by="difference")


def p_value(p: float) -> str:
    """
    >>> p_value(0.25), p_value(0.03125), p_value(0.00001)
    ('0.25', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else number(p, 3) if p < 0.1 else number(p, 2)


def _verdict(ours: str, metric: str, verdicts: dict[tuple[str, str], list[str]]) -> str:
    parts = []
    for verdict, words in (
        ("better", "better than"),
        ("worse", "worse than"),
        ("not sure", "not surely better or worse than"),
    ):
        names = verdicts.get((metric, verdict))
        if names:
            parts.append(f"{words} {', '.join(names)}")
    name = METRICS[metric].name.split(" (")[0]
    return f"In {name}, {ours} is {'; '.join(parts)} (sure: p < {SURE}, paired over seeds and cells)."


__all__ = ["compare", "p_value", "paired", "sign_flip"]
