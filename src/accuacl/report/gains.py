"""How much better than the baselines, in the paper's own terms: the mean relative gain over cells and baselines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.report import paper
from accuacl.report.groups import BASELINES, Group, comparable

Cells = Mapping[Any, Mapping[str, float]]  # the mean of each strategy, by cell


@dataclass(frozen=True)
class Gain:
    """In percent, larger is better for both; of so many pairs of a cell and a baseline."""

    accuracy: float
    less_forgetting: float
    pairs: int


def relative(cells: Iterable[Mapping[str, float]], ours: str, baselines: Sequence[str]) -> list[float]:
    """(ours - base) / base of every cell and baseline that has both; none where the base is not above 0.

    >>> relative([{"uniform": 10.0, "accuacl": 12.0, "entropy": 8.0}], "accuacl", ["uniform", "entropy"])
    [0.2, 0.5]
    """
    return [
        (cell[ours] - cell[base]) / cell[base]
        for cell in cells
        for base in baselines
        if ours in cell and cell.get(base, 0.0) > 0
    ]


def gain(accuracy: Cells, forgetting: Cells, ours: str, baselines: Sequence[str]) -> Gain | None:
    """The mean gain over these baselines; None where there is nothing to compare."""
    up = relative(accuracy.values(), ours, baselines)
    down = relative(forgetting.values(), ours, baselines)
    if not up or not down:
        return None
    return Gain(100 * sum(up) / len(up), -100 * sum(down) / len(down), len(up))


def sentences(groups: Sequence[Group]) -> list[str]:
    """Gains over all of the paper's baselines and over uniform, ours and the paper's, for each scale."""
    found = comparable(groups)
    scales = list(dict.fromkeys(str(group["scale"]) for group in found))
    said = []
    for scale in scales:
        these = _of_scale([group for group in found if group["scale"] == scale])
        said += these if len(scales) == 1 else [f"At {scale} scale, {text}" for text in these]
    return said


def _of_scale(groups: Sequence[Group]) -> list[str]:
    accuracy, forgetting = means(groups, "average_accuracy"), means(groups, "forgetting")
    theirs = paper.main_cells("average_accuracy"), paper.main_cells("forgetting")
    same = {(group["benchmark"], group["memory"], group.learner) for group in groups}
    shared = tuple({key: cell for key, cell in cells.items() if key in same} for cells in theirs)
    there = [name for name in BASELINES if any(group.strategy == name for group in groups)]
    said: list[str] = []
    for ours in own_names(groups):
        for what, baselines in (("all baselines", there), ("uniform", ["uniform"])):
            found = gain(accuracy, forgetting, ours, baselines)
            if found is None or (what == "uniform" and there == ["uniform"] and said):
                continue
            who = f"{what} ({', '.join(there)})" if what == "all baselines" else what
            over = f"{found.pairs} cells" + (" and baselines" if what == "all baselines" else "")
            text = f"{ours} against {who}: {in_words(found)}, the mean over {over}"
            everywhere = gain(*theirs, "accuacl", BASELINES if what == "all baselines" else baselines)
            assert everywhere is not None
            text += f". The paper has {in_words(everywhere)} over all its cells"
            here = gain(shared[0], shared[1], "accuacl", baselines)
            if here is not None and here != everywhere:
                text += f", {in_words(here)} in the cells and baselines that are here"
            said.append(text + ".")
    return said


def means(groups: Sequence[Group], metric: str) -> dict[Any, dict[str, float]]:
    """The mean over seeds of every strategy by cell and learner."""
    cells: dict[Any, dict[str, float]] = {}
    for group in groups:
        found = group.stat(metric)
        if found is not None:
            cells.setdefault((group.cell, group.learner), {})[group.strategy] = found.mean
    return cells


def own_names(groups: Sequence[Group]) -> list[str]:
    """Which AccuACL is compared with the others: the usual one, or those with other options if it is not there."""
    names = list(dict.fromkeys(group.strategy for group in groups if group["strategy"] == "accuacl"))
    return ["accuacl"] if "accuacl" in names else names


def in_words(found: Gain) -> str:
    """
    >>> in_words(Gain(23.76, 17.0, 128)), in_words(Gain(-1.0, -2.0, 1))
    ('+23.8 % average accuracy and 17.0 % less forgetting', '-1.0 % average accuracy and 2.0 % more forgetting')
    """
    more = "less" if found.less_forgetting >= 0 else "more"
    return f"{found.accuracy:+.1f} % average accuracy and {abs(found.less_forgetting):.1f} % {more} forgetting"
