"""Curves with bands of deviation: over tasks, rounds, labels per task, and the weight of the past."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from accuacl.experiment import metrics
from accuacl.report.figures.looks import INK, KNOWN, Look, looks
from accuacl.report.formats.document import Figure, Panel
from accuacl.report.statistics.collect import Row
from accuacl.report.statistics.groups import METRICS, OF_CELL, TWO, Group, Stat, stat
from accuacl.report.tables.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = list[tuple[float, Stat]]  # x, and what is there


def after_tasks(row: Row, metric: str) -> list[float]:
    """The metric after each task, from the accuracy matrix; forgetting begins with the second.

    >>> after_tasks({"accuracy_matrix": [[90, None], [60, 80]]}, "forgetting")
    [30.0]
    """
    matrix = row.get("accuracy_matrix") or []
    parts = [[line[: t + 1] for line in matrix[: t + 1]] for t in range(len(matrix))]
    if metric == "forgetting":
        return [metrics.forgetting(part) for part in parts[1:]]
    return [metrics.average_accuracy(part) for part in parts]


def over_rounds(row: Row, metric: str, task: int = -1) -> list[float]:
    """The metric after each round of a task, the last by default; nothing where rounds were not tested.

    >>> row = {"accuracy_matrix": [[90, None], [60, 80]], "round_accuracy": [[[85], [90]], [[70, 60], [60, 80]]]}
    >>> over_rounds(row, "forgetting"), over_rounds(row, "average_accuracy")
    ([20.0, 30.0], [65.0, 70.0])
    """
    rounds, matrix = row.get("round_accuracy") or [], row.get("accuracy_matrix") or []
    if not rounds or not matrix:
        return []
    found = []
    for accuracies in rounds[task]:
        before = len(accuracies) - 1  # tasks learned earlier
        if metric == "average_accuracy":
            found.append(float(np.mean(accuracies)))
        elif before:
            found.append(float(np.mean([matrix[j][j] - accuracies[j] for j in range(before)])))
    return found


def tasks(groups: Sequence[Group]) -> Figure | None:
    """Average accuracy and forgetting after each task, a panel a learner."""

    def curve(group: Group, metric: str) -> Curve:
        return _pointwise([after_tasks(row, metric) for row in group.rows], 2 if metric == "forgetting" else 1)

    return _figure(groups, curve, "after each task", "tasks learned")


def rounds(groups: Sequence[Group]) -> Figure | None:
    """The same over the rounds of the last task."""

    def curve(group: Group, metric: str) -> Curve:
        return _pointwise([over_rounds(row, metric) for row in group.rows if row.get("round_accuracy")], 1)

    return _figure([g for g in groups if g["strategy"] != "full"], curve, "over the rounds of the last task", "round")


def labels(groups: Sequence[Group]) -> list[Figure]:
    """Both against the labels per task, for learners that tried several; a figure for all that is otherwise alike."""
    found: dict[tuple[Any, ...], dict[str, dict[str, list[Group]]]] = {}
    for group in groups:
        alike = found.setdefault(tuple(group[name] for name in OF_CELL if name != "labels"), {})
        alike.setdefault(group.learner, {}).setdefault(group.strategy, []).append(group)
    figures = []
    for learners in found.values():
        chosen = [by for by in learners.values() if len({g["labels"] for some in by.values() for g in some}) > 1]
        by_group = {some[0]: some for by in chosen for some in by.values()}

        def curve(group: Group, metric: str, by_group: dict[Group, list[Group]] = by_group) -> Curve:
            return _along(by_group[group], "labels", metric)

        figures.append(_figure(list(by_group), curve, "against labels per task", "labels per task", ["labels"]))
    return [figure for figure in figures if figure]


def lam(groups: Sequence[Group]) -> Figure | None:
    """Both against AccuACL's weight of the past, in one cell; dashed: where it is the past's share of all data."""
    mine = [group for group in groups if group["strategy"] == "accuacl"]
    panels = []
    kinds = dict.fromkeys((g.learner, g["variant"], g["keep"], g["oversample"], g["lam_from"]) for g in mine)
    for kind in kinds:  # one curve for each way that it was used
        alike = [g for g in mine if (g.learner, g["variant"], g["keep"], g["oversample"]) == kind[:4]]
        fixed = [g for g in alike if g["lam"] is not None and g["lam_from"] == kind[4]]
        if len({group["lam"] for group in fixed}) < 2:
            continue
        free = next((g for g in alike if g["lam"] is None), None)
        usual_kind = len({other[1:4] for other in kinds}) == 1
        title = kind[0] if usual_kind else f"{kind[0]}, variant {kind[1]}"
        for metric in TWO:
            panels.append(_lam_panel(title, metric, _along(fixed, "lam", metric), free.stat(metric) if free else None))
    caption = "Average accuracy and forgetting against the weight of the past (lambda)"
    caption += ", dashed where it is the past's share of all data" if any(g["lam"] is None for g in mine) else ""
    return Figure(f"{caption}: {mine[0].title}.", panels, columns=2) if panels else None


def _lam_panel(learner: str, metric: str, curve: Curve, free: Stat | None) -> Panel:
    def draw(axes: Axes) -> None:
        axes.errorbar(
            [x for x, _ in curve],
            [s.mean for _, s in curve],
            [s.std or 0 for _, s in curve],
            capsize=3,
            **KNOWN["accuacl"].line(),
        )
        if free:
            axes.axhline(free.mean, color=INK, linestyle="--", linewidth=1)
        axes.set_xlabel("lambda, weight of the past")
        axes.set_ylabel(METRICS[metric].name)

    alt = f"{METRICS[metric].name} against lambda, {learner}: " + ", ".join(
        f"{number(s.mean)} at {x:.3g}" for x, s in curve
    )
    return Panel(learner, draw, alt + (f"; {number(free.mean)} by the share of data." if free else "."))


def _figure(
    groups: Sequence[Group],
    curve: Callable[[Group, str], Curve],
    what: str,
    xlabel: str,
    without: Sequence[str] = (),
) -> Figure | None:
    """A panel for each metric and learner; panels of a metric share their scale."""
    panels = []
    legend = looks(group.strategy for group in groups)
    for metric in TWO:
        found = {group: curve(group, metric) for group in groups}
        found = {group: points for group, points in found.items() if points}
        if not any(len(points) > 1 for points in found.values()):
            continue
        limits = _limits(s for points in found.values() for _, s in points)
        for learner in dict.fromkeys(group.learner for group in found):
            lines = {group.strategy: points for group, points in found.items() if group.learner == learner}
            panels.append(_panel(learner, METRICS[metric].name, what, xlabel, lines, legend, limits))
    if not panels:
        return None
    caption = f"Average accuracy and forgetting {what}: {groups[0].where(without)}."
    caption += " Bands: standard deviation over seeds." if any(len(group.rows) > 1 for group in groups) else ""
    return Figure(caption, panels, legend, columns=max(2, len({group.learner for group in groups})))


def _panel(
    learner: str,
    ylabel: str,
    what: str,
    xlabel: str,
    lines: Mapping[str, Curve],
    legend: Mapping[str, Look],
    limits: tuple[float, float],
) -> Panel:
    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for label, points in lines.items():
            x, mean = [x for x, _ in points], np.array([s.mean for _, s in points])
            spread = np.array([s.std or 0.0 for _, s in points])
            look = legend[label]
            if label == "full" and len(x) == 1:  # all labels: a level, whatever the budget
                axes.axhline(mean[0], color=look.color, linestyle=look.dash)
                continue
            axes.plot(x, mean, **look.line())
            if spread.any():
                axes.fill_between(x, mean - spread, mean + spread, color=look.color, alpha=0.15, linewidth=0)
        axes.set_ylim(limits)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)

    ends = ", ".join(f"{label} {number(points[-1][1].mean)}" for label, points in lines.items())
    return Panel(learner, draw, f"{ylabel} {what}, {learner}; at the end: {ends}.")


def _pointwise(runs: Sequence[Sequence[float]], first: int) -> Curve:
    """Mean and deviation at each place that all runs have."""
    length = min((len(run) for run in runs), default=0)
    return [(first + i, stat([run[i] for run in runs])) for i in range(length)]


def _along(groups: Sequence[Group], setting: str, metric: str) -> Curve:
    found = [(float(group[setting]), group.stat(metric)) for group in groups]
    return sorted(((x, s) for x, s in found if s is not None), key=lambda point: point[0])


def _limits(stats: Iterable[Stat]) -> tuple[float, float]:
    ends = [(s.mean - (s.std or 0), s.mean + (s.std or 0)) for s in stats]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin
