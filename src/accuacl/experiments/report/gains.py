"""How much better than the baselines, measured as the paper does: the mean relative gain over cells and baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.experiments.report import paper
from accuacl.experiments.report.groups import (
    BASELINES,
    Group,
    accuacl_names,
    by_scale,
    has_default_settings,
    mixes_settings,
    pairs,
    with_scale,
)
from accuacl.experiments.report.metrics import MAIN_METRICS

Changes = dict[tuple[Any, str], float]  # the relative change by cell and baseline


@dataclass(frozen=True)
class Gain:
    """Mean relative gains in percent, larger is better for both, over so many pairs of a cell and a baseline."""

    accuracy: float
    less_forgetting: float
    pairs: int

    def __str__(self) -> str:
        """
        >>> str(Gain(23.76, 17.0, 128)), str(Gain(-1.0, -2.0, 1))
        ('+23.8 % average accuracy and 17.0 % less forgetting', '-1.0 % average accuracy and 2.0 % more forgetting')
        >>> str(Gain(-0.01, -0.01, 1))
        '+0.0 % average accuracy and 0.0 % less forgetting'
        """
        accuracy, less = round(self.accuracy, 1) + 0.0, round(self.less_forgetting, 1) + 0.0  # no -0.0
        return f"{accuracy:+.1f} % average accuracy and {abs(less):.1f} % {'less' if less >= 0 else 'more'} forgetting"


def changes(cells: Mapping[Any, Mapping[str, float]], ours: str, baselines: Sequence[str]) -> Changes:
    """(ours - baseline) / baseline by cell and baseline, where both are known and the baseline is above 0.

    cells: the mean of each strategy in each cell.

    >>> changes({"a cell": {"uniform": 10.0, "accuacl": 12.0, "entropy": 8.0}}, "accuacl", ["uniform", "entropy"])
    {('a cell', 'uniform'): 0.2, ('a cell', 'entropy'): 0.5}
    """
    return {
        (cell, baseline): (means[ours] - means[baseline]) / means[baseline]
        for cell, means in cells.items()
        for baseline in baselines
        if ours in means and means.get(baseline, 0.0) > 0
    }


def changes_of_runs(groups: Sequence[Group], ours: str, baselines: Sequence[str], metric: str) -> Changes:
    """The same for our runs: from the means over the seeds that both have, each pair of runs once."""
    by_cell = {}
    for baseline in baselines:
        for cell, by_seed in pairs(groups, ours, baseline, metric).items():
            mine, theirs = (sum(pair[side] for pair in by_seed.values()) for side in (0, 1))
            if theirs > 0:
                by_cell[cell, baseline] = (mine - theirs) / theirs
    return by_cell


def mean_gain(accuracy: Changes, forgetting: Changes) -> Gain | None:
    """The mean gain from the changes of both metrics; None where there is nothing to compare."""
    if not accuracy or not forgetting:
        return None
    up, down = (100 * sum(change.values()) / len(change) for change in (accuracy, forgetting))
    return Gain(up, -down, len(accuracy))


def strongest(groups: Sequence[Group], ours: str, baselines: Sequence[str]) -> str | None:
    """The baseline over which the gain in accuracy is smallest, of those that are in as many cells as any."""
    found = {name: changes_of_runs(groups, ours, [name], MAIN_METRICS[0]) for name in baselines}
    most = max((len(change) for change in found.values()), default=0)
    means = {name: sum(c.values()) / len(c) for name, c in found.items() if len(c) == most and most}
    return min(means, key=lambda name: means[name], default=None)


def sentences(groups: Sequence[Group]) -> list[str]:
    """Gains over the strongest of the paper's baselines, over uniform and over all, ours and the paper's, by scale."""
    compared = by_scale(groups)
    return [
        with_scale(sentence, scale if len(compared) > 1 else "")
        for scale, chosen in compared.items()
        for sentence in _sentences(chosen)
    ]


def _sentences(groups: Sequence[Group]) -> list[str]:
    present = [name for name in BASELINES if any(group.strategy == name for group in groups)]
    said = []
    for ours in accuacl_names(groups):
        comparisons = [("uniform", ["uniform"])]
        if present != ["uniform"]:
            comparisons.append((f"all baselines ({', '.join(present)})", present))
            hardest = strongest(groups, ours, present)
            if hardest is not None:
                comparisons = [one for one in comparisons if one[0] != hardest]
                comparisons.insert(0, (f"the strongest baseline, {hardest}", [hardest]))
        for name, baselines in comparisons:
            accuracy, forgetting = (changes_of_runs(groups, ours, baselines, metric) for metric in MAIN_METRICS)
            gain = mean_gain(accuracy, forgetting)
            if gain is None:
                continue
            over = "cells" if len(baselines) == 1 else "pairs of a cell and a baseline"
            over = f"mean relative change over {gain.pairs} {over}" if gain.pairs > 1 else "relative change in one cell"
            over += " with different settings" if mixes_settings(groups) else ""
            sentence = f"{ours} compared with {name}: {gain} ({over})."
            if ours == "accuacl":
                sentence += _gain_of_paper(groups, accuracy, forgetting, baselines)
            said.append(sentence)
    return said


def _gain_of_paper(groups: Sequence[Group], accuracy: Changes, forgetting: Changes, baselines: Sequence[str]) -> str:
    """The paper's gain in all its cells and in those compared here; empty where it has none of ours."""
    in_paper = {g.cell: (g["benchmark"], g["memory"], g.learner) for g in groups if has_default_settings(g)}
    names = baselines if len(baselines) == 1 else BASELINES
    theirs = [changes(paper.main_cells(metric), "accuacl", names) for metric in MAIN_METRICS]
    shared = [
        {
            (cell, baseline): of_paper[in_paper[cell], baseline]
            for cell, baseline in ours
            if cell in in_paper and (in_paper[cell], baseline) in of_paper
        }
        for ours, of_paper in zip((accuracy, forgetting), theirs, strict=True)
    ]
    everywhere, here = mean_gain(*theirs), mean_gain(*shared)
    if everywhere is None or here is None:
        return ""
    sentence = f" The paper has {everywhere} over all its cells"
    if here != everywhere:
        which = "the same ones" if here.pairs == len(accuracy) else f"the {here.pairs} of these that it has"
        sentence += f", {here} over {which}"
    return sentence + "."
