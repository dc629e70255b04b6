"""Where our ordering of the strategies is the paper's, and where it is not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import Cell, Group
from accuacl.report.statistics.metrics import MAIN_METRICS, METRICS, MeanStd, ranks
from accuacl.report.statistics.summary import with_scale


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's rank correlation (tau-b): 1 the same order, -1 the opposite; None where one of them has no order.

    >>> kendall([1, 2, 3], [3, 2, 1])
    -1.0
    """
    from scipy.stats import kendalltau

    tau = float(kendalltau(x, y).statistic)
    return None if math.isnan(tau) else tau


def cells_of_paper(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups of each cell in which the paper has values for at least two of our strategies."""
    cells: dict[Cell, list[Group]] = {}
    for group in groups:
        if group["strategy"] != "full" and paper.value(("main",), group, "average_accuracy"):
            cells.setdefault(group.cell, []).append(group)
    return [strategies for strategies in cells.values() if len(strategies) > 1]


class Ordering:
    """The strategies of one cell by one metric, ours and the paper's; best: those with the best mean, ties included."""

    def __init__(self, groups: Sequence[Group], metric: str) -> None:
        self.ours = [group.mean_std(metric) for group in groups]
        self.papers = [paper.value(("main",), group, metric) for group in groups]
        self.best = _best(groups, self.ours, metric)
        self.papers_best = _best(groups, self.papers, metric)

    @property
    def agrees(self) -> bool:
        """Whether a strategy that is best here is best in the paper too."""
        return bool(set(self.best) & set(self.papers_best))

    @property
    def tau(self) -> float | None:
        """Kendall's tau; None for fewer than three strategies."""
        both = [(a.mean, b.mean) for a, b in zip(self.ours, self.papers, strict=True) if a and b]
        return kendall([a for a, _ in both], [b for _, b in both]) if len(both) > 2 else None


def names(groups: Sequence[Group]) -> str:
    return ", ".join(group.strategy for group in groups) or "-"


def sentences(cells: Sequence[Sequence[Group]]) -> tuple[list[str], list[str]]:
    """How often the best strategy is the paper's, by scale and metric; and where it is, and where it is not."""
    scales = list(dict.fromkeys(str(groups[0]["scale"]) for groups in cells))
    counts, details = [], []
    for scale in scales:
        for metric in MAIN_METRICS:
            count, more = _sentences([groups for groups in cells if groups[0]["scale"] == scale], metric)
            counts.append(with_scale(count, scale if len(scales) > 1 else ""))
            details += more
    return counts, details


def _sentences(cells: Sequence[Sequence[Group]], metric: str) -> tuple[str, list[str]]:
    agreeing: dict[str, list[str]] = {}  # learners by setup
    differing = []
    name = METRICS[metric].plain_name
    for groups in cells:
        ordering, title, learner = Ordering(groups, metric), groups[0].title, groups[0].learner
        if ordering.agrees:
            agreeing.setdefault(title, []).append(learner)
        elif ordering.best and ordering.papers_best:
            best, papers_best = ordering.best, ordering.papers_best
            differing.append(
                f"In {title} with {learner}, {names(best)} is best in {name} ({best[0].mean_std(metric)}), "
                f"in the paper {names(papers_best)} (here {papers_best[0].mean_std(metric) or '-'})."
            )
    count = sum(len(learners) for learners in agreeing.values())
    total = count + len(differing)
    sentence = f"The best strategy in {name} is the paper's best in {count} of {total} cell{'s' * (total != 1)}."
    where = "; ".join(f"{title} with {', '.join(learners)}" for title, learners in agreeing.items())
    return sentence, ([f"The paper's best in {name} is best here too in {where}."] if where else []) + differing


def _best(groups: Sequence[Group], values: Sequence[MeanStd | None], metric: str) -> list[Group]:
    return [group for group, rank in zip(groups, ranks(values, METRICS[metric]), strict=True) if rank == "best"]
