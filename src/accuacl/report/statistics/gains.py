"""How much better than the baselines, in the paper's own terms: the mean relative gain over cells and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import BASELINES, TWO, Group, at_scale, by_scale, is_pooled, is_usual, own_names
from accuacl.report.statistics.pairs import pairs

Cells = Mapping[Any, Mapping[str, float]]  # the mean of each strategy, by cell
Pairs = dict[tuple[Any, str], float]  # a number for each cell and baseline


@dataclass(frozen=True)
class Gain:
    """In percent, larger is better for both; of so many pairs of a cell and a baseline."""

    accuracy: float
    less_forgetting: float
    pairs: int


def relative(cells: Cells, ours: str, baselines: Sequence[str]) -> Pairs:
    """(ours - base) / base of every cell and baseline that has both; none where the base is not above 0.

    >>> relative({"a cell": {"uniform": 10.0, "accuacl": 12.0, "entropy": 8.0}}, "accuacl", ["uniform", "entropy"])
    {('a cell', 'uniform'): 0.2, ('a cell', 'entropy'): 0.5}
    """
    return {
        (place, base): (cell[ours] - cell[base]) / cell[base]
        for place, cell in cells.items()
        for base in baselines
        if ours in cell and cell.get(base, 0.0) > 0
    }


def gain(up: Pairs, down: Pairs) -> Gain | None:
    """The mean gain, from how much accuracy and forgetting go up; None where there is nothing to compare."""
    if not up or not down:
        return None
    return Gain(100 * sum(up.values()) / len(up), -100 * sum(down.values()) / len(down), len(up))


def sentences(groups: Sequence[Group]) -> list[str]:
    """Gains over all of the paper's baselines and over uniform, ours and the paper's, for each scale."""
    found = by_scale(groups)
    return [at_scale(scale, list(found), text) for scale, these in found.items() for text in _of_scale(these)]


def _of_scale(groups: Sequence[Group]) -> list[str]:
    there = [name for name in BASELINES if any(group.strategy == name for group in groups)]
    wanted = [(f"all baselines ({', '.join(there)})", there)] if there != ["uniform"] else []
    said = []
    for ours in own_names(groups):
        for who, baselines in (*wanted, ("uniform", ["uniform"])):
            up, down = (ratios(groups, ours, baselines, metric) for metric in TWO)
            found = gain(up, down)
            if found is None:
                continue
            over = "cells and baselines" if baselines == there and wanted else "cells"
            over = f"the mean over {found.pairs} {over}" if found.pairs > 1 else "in one cell"
            over += " in several settings" if is_pooled(groups) else ""
            text = f"{ours} against {who}: {in_words(found)}, {over}."
            said.append(text + (_of_paper(groups, up, down, baselines) if ours == "accuacl" else ""))
    return said


def _of_paper(groups: Sequence[Group], up: Pairs, down: Pairs, baselines: Sequence[str]) -> str:
    """The paper's gain over the same pairs and over all it has; empty where it has none of the pairs."""
    place = {(g.cell, g.learner): (g["benchmark"], g["memory"], g.learner) for g in groups if is_usual(g)}
    names = baselines if baselines == ["uniform"] else BASELINES
    theirs = [relative(paper.main_cells(metric), "accuacl", names) for metric in TWO]
    shared = [
        {(at, base): of[place[at], base] for at, base in mine if at in place and (place[at], base) in of}
        for mine, of in zip((up, down), theirs, strict=True)
    ]
    everywhere, here = gain(*theirs), gain(*shared)
    if everywhere is None or here is None:
        return ""
    text = f" The paper has {in_words(everywhere)} over all its cells"
    if here != everywhere:
        which = "these" if here.pairs == len(up) else f"the {here.pairs} of these that it has"
        text += f", {in_words(here)} over {which}"
    return text + "."


def ratios(groups: Sequence[Group], ours: str, baselines: Sequence[str], metric: str) -> Pairs:
    """The same of our runs: of means over the seeds that both have, the same pair of runs once."""
    found = {}
    for base in baselines:
        for place, seeds in pairs(groups, ours, base, metric).items():
            mine, theirs = (sum(both[side] for both in seeds.values()) for side in (0, 1))
            if theirs > 0:
                found[place, base] = (mine - theirs) / theirs
    return found


def in_words(found: Gain) -> str:
    """
    >>> in_words(Gain(23.76, 17.0, 128)), in_words(Gain(-1.0, -2.0, 1))
    ('+23.8 % average accuracy and 17.0 % less forgetting', '-1.0 % average accuracy and 2.0 % more forgetting')
    >>> in_words(Gain(-0.01, -0.01, 1))
    '+0.0 % average accuracy and 0.0 % less forgetting'
    """
    accuracy, less = round(found.accuracy, 1) + 0.0, round(found.less_forgetting, 1) + 0.0  # no -0.0
    return f"{accuracy:+.1f} % average accuracy and {abs(less):.1f} % {'less' if less >= 0 else 'more'} forgetting"
