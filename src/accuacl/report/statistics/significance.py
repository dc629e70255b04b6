"""Whether a difference between strategies is more than luck: paired over seeds and cells, tested by flipping signs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from accuacl.base.errors import InputError
from accuacl.base.randomness import numpy_generator
from accuacl.report.formats.document import Block, Cell, Column, Line, Table
from accuacl.report.statistics.groups import METRICS, TWO, Group, at_scale, by_scale, is_pooled, is_whole, own_names
from accuacl.report.statistics.pairs import pairs
from accuacl.report.tables.tables import number

EXACT = 16  # up to so many pairs all 2^n sign flips are tried
DRAWS = 100_000
SURE = 0.05
POOLED = ", all settings pooled,"


def sign_flip(differences: ArrayLike, seed: int = 0) -> float:
    """Two-sided p: how often |mean| is at least as large when every difference may as well have the other sign.

    >>> sign_flip([1.0, 2.0, 3.0])  # the smallest that three pairs can give
    0.25
    """
    d = np.asarray(differences, np.float64)
    if d.ndim != 1 or not len(d):
        raise InputError(f"differences have the shape {d.shape}; give a sequence of at least one.")
    exact = len(d) <= EXACT
    if exact:
        signs = 1 - 2 * ((np.arange(2 ** len(d))[:, None] >> np.arange(len(d))) & 1)
        sums = signs @ d
    else:
        rng = numpy_generator(seed)
        parts = [rng.choice((-1.0, 1.0), (DRAWS // 10, len(d))) @ d for _ in range(10)]
        sums = np.concatenate(parts)
    extreme = np.abs(sums) >= abs(d.sum()) - 1e-9 * max(1.0, np.abs(d).sum())  # equal but for rounding counts
    return float(extreme.mean()) if exact else float((extreme.sum() + 1) / (DRAWS + 1))


@dataclass(frozen=True)
class Paired:
    """Ours minus the other's, from so many cells and so many different seeds."""

    differences: list[float]
    cells: int
    seeds: int


def paired(groups: Sequence[Group], ours: str, other: str, metric: str) -> Paired:
    """For every seed that both have in the same cell; the same pair of runs once."""
    found = pairs(groups, ours, other, metric)
    differences = [mine - theirs for seeds in found.values() for mine, theirs in seeds.values()]
    return Paired(differences, len(found), len({seed for seeds in found.values() for seed in seeds}))


def compare(groups: Sequence[Group]) -> tuple[list[str], Table | None]:
    """AccuACL against every other strategy: what is sure, in words, and all differences in a table.

    The words are about the same cells as the gains, each scale apart; the table has all settings pooled too.
    """
    said: list[str] = []
    blocks = []
    found = by_scale(groups)
    cut = False
    for scale, these in found.items():
        where = f" at {scale} scale" if len(found) > 1 else ""
        all_here = [group for group in groups if group["scale"] == scale]
        everything = [group for group in all_here if is_whole(group)]
        for ours in own_names(these):
            lines, sentences = _against(these, ours)
            if lines:
                blocks.append(Block(f"{ours}{where}{POOLED if is_pooled(these) else ''} minus", lines))
                said += [at_scale(scale, list(found), text) for text in sentences]
                cut |= len(everything) < len(all_here) and all(map(is_whole, these))
            more, _ = _against(everything, ours) if len(everything) > len(these) else ([], [])
            if lines and more and more != lines:
                blocks.append(Block(f"{ours}{where}{POOLED} minus", more))
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
        "Differences in points, paired by seed within each cell (benchmark, memory, learner and all other settings), "
        "the same run once; pairs that share a seed are treated as independent. Two-sided p by flipping their signs, "
        f"all ways up to {EXACT} pairs, {DRAWS:,} random ones beyond; not corrected for the number of comparisons. n "
        "pairs cannot give a p below 2 / 2^n: five or fewer are never below 0.05. Bold: better, p < 0.05, from two "
        f"seeds or more.{' Runs that stop early or go on longer than usual are left out.' if cut else ''}"
    )
    return said, Table("Is the difference more than luck?", ["strategy"], columns, blocks, note, by="difference")


def _against(groups: Sequence[Group], ours: str) -> tuple[list[Line], list[str]]:
    """A line for every other strategy that there are pairs with, and what is sure in words."""
    lines: list[Line] = []
    verdicts: dict[tuple[str, str], list[str]] = {}
    most = 0
    for other in dict.fromkeys(g.strategy for g in groups if g["strategy"] not in ("accuacl", "full")):
        found = {metric: paired(groups, ours, other, metric) for metric in TWO}
        if not all(both.differences for both in found.values()):
            continue
        cells = []
        for metric, both in found.items():
            p, mean = sign_flip(both.differences), float(np.mean(both.differences))
            better = (mean > 0) == METRICS[metric].larger
            verdict = "not sure" if p >= SURE or both.seeds < 2 else "better" if better else "worse"
            verdicts.setdefault((metric, verdict), []).append(other)
            cells += [Cell(f"{round(mean, 2) + 0.0:+.2f}", mark="best" if verdict == "better" else "")]
            cells += [Cell(p_value(p))]
        most = max(most, both.seeds)
        lines.append(Line([other], [*cells, Cell(str(len(both.differences))), Cell(str(both.cells))]))
    if lines and most < 2:
        return lines, [f"All pairs of {ours} and others have the same seed: too few to tell a difference from luck."]
    return lines, [_verdict(ours, metric, verdicts, is_pooled(groups)) for metric in TWO] if lines else []


def p_value(p: float) -> str:
    """
    >>> p_value(0.125), p_value(0.03125), p_value(0.00001)
    ('0.125', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)


def _verdict(ours: str, metric: str, verdicts: dict[tuple[str, str], list[str]], pooled: bool) -> str:
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
    where = f"seeds and cells{' in several settings' if pooled else ''}"
    return f"In {name}, {ours} is {'; '.join(parts)} (sure: p < {SURE}, paired over {where})."


__all__ = ["compare", "p_value", "paired", "sign_flip"]
