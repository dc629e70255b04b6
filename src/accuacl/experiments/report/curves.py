"""Curves of metrics over tasks, rounds, labels and lambda, and how strategies are drawn in all figures.

Colours are those that the colour-blind can tell apart; markers and dashes are for print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from accuacl.experiments import is_class_incremental
from accuacl.experiments.report.document import INK, Figure, LineStyle, Panel
from accuacl.experiments.report.groups import (
    MAIN_METRICS,
    METRICS,
    SETUP_SETTINGS,
    Group,
    MeanStd,
    after_tasks,
    labels_spent,
    mean_std,
    number,
    over_rounds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORANGE, SKY, GREEN, BLUE, RED, PURPLE = "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7"

SOLID, DASHED, DOTTED, MIXED = "-", (0, (4, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5))

BY_STRATEGY = {
    "uniform": LineStyle(INK, "s", DASHED),
    "entropy": LineStyle(SKY, "v", DOTTED),
    "least-confidence": LineStyle(BLUE, "^", MIXED),
    "kcenter": LineStyle(GREEN, "D", DASHED),
    "badge": LineStyle(PURPLE, "P", DOTTED),
    "bait": LineStyle(ORANGE, "X", MIXED),
    "accuacl": LineStyle(RED, "o", SOLID),
    "margin": LineStyle(GREEN, "<", DOTTED),
    "kcenter+memory": LineStyle(GREEN, "d", SOLID),
    "badge+memory": LineStyle(PURPLE, "p", SOLID),
    "accuacl-magnitude": LineStyle(ORANGE, ">", DASHED),
    "accuacl-distribution": LineStyle(BLUE, "h", DASHED),
    "accuacl-full": LineStyle(BLUE, "*", DOTTED),
    "full": LineStyle(INK, "x", DOTTED),
}
COLORS, MARKERS, DASHES = (SKY, ORANGE, PURPLE, GREEN, BLUE), "Hv8^>Dp*<hXs", (SOLID, DASHED, MIXED, DOTTED)
OTHERS = [LineStyle(COLORS[i % 5], MARKERS[i % 12], DASHES[i % 4]) for i in range(60)]  # neighbours differ in all three


def styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each label: a strategy's own, or for any other label the next that is free.

    >>> styles(["accuacl", "mine", "accuacl"])["mine"].marker
    'H'
    """
    others = cycle(OTHERS)
    return {label: BY_STRATEGY[label] if label in BY_STRATEGY else next(others) for label in dict.fromkeys(labels)}


Curve = list[tuple[float, MeanStd]]  # x, and the mean there


def tasks(groups: Sequence[Group]) -> Figure | None:
    """Average accuracy and forgetting after each task, a panel for each learner."""

    def curve(group: Group, metric: str) -> Curve:
        return pointwise([after_tasks(row, metric) for row in group.rows], 2 if metric == "forgetting" else 1)

    return _figure(groups, curve, "after each task", "tasks learned")


def rounds(groups: Sequence[Group]) -> Figure | None:
    """Average accuracy and forgetting after each round of the last task, a panel for each learner."""

    def curve(group: Group, metric: str) -> Curve:
        return pointwise([over_rounds(row, metric) for row in group.rows if row.get("round_accuracy")], 1)

    return _figure([g for g in groups if g["strategy"] != "full"], curve, "over the rounds of the last task", "round")


def labels(groups: Sequence[Group]) -> list[Figure]:
    """Both metrics against the labels per task, where these vary; a figure for each setup, labels apart."""
    setups: dict[tuple[Any, ...], dict[str, dict[str, list[Group]]]] = {}  # by setup, learner and strategy
    for group in groups:
        learners = setups.setdefault(tuple(group[name] for name in SETUP_SETTINGS if name != "labels"), {})
        learners.setdefault(group.learner, {}).setdefault(group.strategy, []).append(group)
    figures = []
    for learners in setups.values():
        varied = [
            by_strategy
            for by_strategy in learners.values()
            if len({group["labels"] for same in by_strategy.values() for group in same}) > 1
        ]
        # Each curve passes through several groups; the first one represents it.
        curves = {same[0]: same for by_strategy in varied for same in by_strategy.values()}

        def curve(group: Group, metric: str, curves: dict[Group, list[Group]] = curves) -> Curve:
            return _along(curves[group], "labels", metric)

        figures.append(_figure(list(curves), curve, "against labels per task", "labels per task", ["labels"]))
    return [figure for figure in figures if figure]


def lam(groups: Sequence[Group]) -> Figure | None:
    """Both metrics against AccuACL's weight of the past, in one setup; dashed: the default, its share of all data."""
    accuacl = [group for group in groups if group["strategy"] == "accuacl"]
    panels = []
    kinds = dict.fromkeys((g.learner, g["variant"], g["keep"], g["oversample"], g["lam_from"]) for g in accuacl)
    for kind in kinds:  # a curve for each combination of its other options
        alike = [g for g in accuacl if (g.learner, g["variant"], g["keep"], g["oversample"]) == kind[:4]]
        fixed = [g for g in alike if g["lam"] is not None and g["lam_from"] == kind[4]]
        if len({group["lam"] for group in fixed}) < 2:
            continue
        default = next((g for g in alike if g["lam"] is None), None)
        same_options = len({other[1:4] for other in kinds}) == 1
        title = kind[0] if same_options else f"{kind[0]}, variant {kind[1]}"
        for metric in MAIN_METRICS:
            level = default.mean_std(metric) if default else None
            panels.append(_lam_panel(title, metric, _along(fixed, "lam", metric), level))
    caption = "Average accuracy and forgetting against the weight of the past (lambda)"
    if any(group["lam"] is None for group in accuacl):
        caption += "; dashed: the default, the past's share of all data"
    return Figure(f"{caption}: {accuacl[0].title}.", panels, columns=2) if panels else None


def _lam_panel(learner: str, metric: str, curve: Curve, default: MeanStd | None) -> Panel:
    def draw(axes: Axes) -> None:
        axes.errorbar(
            [x for x, _ in curve],
            [value.mean for _, value in curve],
            [value.std or 0 for _, value in curve],
            capsize=3,
            **BY_STRATEGY["accuacl"].arguments(),
        )
        if default:
            axes.axhline(default.mean, color=INK, linestyle="--", linewidth=1)
        axes.set_xlabel("lambda, weight of the past")
        axes.set_ylabel(METRICS[metric].name)

    points = ", ".join(f"{number(value.mean)} at {x:.3g}" for x, value in curve)
    at_default = f"; {number(default.mean)} with the default" if default else ""
    return Panel(learner, draw, f"{METRICS[metric].name} against lambda, {learner}: {points}{at_default}.")


def _figure(
    groups: Sequence[Group],
    curve: Callable[[Group, str], Curve],
    what: str,
    xlabel: str,
    varied: Sequence[str] = (),
) -> Figure | None:
    """A panel for each metric and learner; panels of the same metric share their y axis."""
    panels = []
    legend = styles(group.strategy for group in groups)
    for metric in MAIN_METRICS:
        curves = {group: points for group in groups if (points := curve(group, metric))}
        if not any(len(points) > 1 for points in curves.values()):
            continue
        limits = y_limits(mean for points in curves.values() for _, mean in points)
        for learner in dict.fromkeys(group.learner for group in curves):
            lines = {group.strategy: points for group, points in curves.items() if group.learner == learner}
            panels.append(line_panel(learner, METRICS[metric].name, what, xlabel, lines, legend, limits))
    if not panels:
        return None
    caption = f"Average accuracy and forgetting {what}: {groups[0].title_without(varied)}."
    caption += " Bands: standard deviation over seeds." if any(len(group.rows) > 1 for group in groups) else ""
    return Figure(caption, panels, legend, columns=max(2, len({group.learner for group in groups})))


def line_panel(
    learner: str,
    ylabel: str,
    what: str,
    xlabel: str,
    lines: Mapping[str, Curve],
    legend: Mapping[str, LineStyle],
    limits: tuple[float, float],
) -> Panel:
    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for label, points in lines.items():
            x, mean = [x for x, _ in points], np.array([value.mean for _, value in points])
            spread = np.array([value.std or 0.0 for _, value in points])
            style = legend[label]
            if label == "full" and len(x) == 1:  # it labels everything, whatever the budget: a level
                axes.axhline(mean[0], color=style.color, linestyle=style.dash)
                continue
            axes.plot(x, mean, **style.arguments())
            if spread.any():
                axes.fill_between(x, mean - spread, mean + spread, color=style.color, alpha=0.15, linewidth=0)
        axes.set_ylim(limits)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)

    ends = ", ".join(f"{label} {number(points[-1][1].mean)}" for label, points in lines.items())
    return Panel(learner, draw, f"{ylabel} {what}, {learner}; at the end: {ends}.")


def pointwise(runs: Sequence[Sequence[float]], first: int) -> Curve:
    """Mean and deviation at each point that all runs have."""
    length = min((len(run) for run in runs), default=0)
    return [(first + i, mean_std([run[i] for run in runs])) for i in range(length)]


def _along(groups: Sequence[Group], setting: str, metric: str) -> Curve:
    """The metric against the values of a setting."""
    points = [(float(group[setting]), group.mean_std(metric)) for group in groups]
    return sorted(((x, mean) for x, mean in points if mean is not None), key=lambda point: point[0])


def y_limits(values: Iterable[MeanStd]) -> tuple[float, float]:
    """A y axis with room for all means and their deviations."""
    ends = [(value.mean - (value.std or 0), value.mean + (value.std or 0)) for value in values]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


SHOWN = {"found": "classes found (%)", "rarest_labels": "labels of the rarest class"}
ALL = 102  # where the axis of a share in percent ends: a deviation above the mean may reach farther


def discovery(groups: Sequence[Group]) -> Figure | None:
    """The share of classes with a label, and the labels of the rarest class.

    There is none where the stream is tidy and all classes are found at once.
    """
    asked = [group for group in groups if group["strategy"] != "full"]
    known = [group for group in asked if all(row.get("found") for row in group.rows)]
    shares = [share for group in known for row in group.rows for task in row["found"] for share in task]
    if all(share == 100 for share in shares) and all(is_class_incremental(group.rows[0]) for group in known):
        return None
    panels, legend = [], styles(group.strategy for group in known)
    for name, ylabel in SHOWN.items():
        curves = {group: _curve(group, name) for group in known}
        low, high = y_limits(mean for points in curves.values() for _, mean in points)
        limits = (low, min(high, ALL) if name == "found" else high)
        for learner in dict.fromkeys(group.learner for group in known):
            lines = {group.strategy: points for group, points in curves.items() if group.learner == learner}
            panels.append(line_panel(learner, ylabel, "against labels spent", "labels", lines, legend, limits))
    caption = (
        "How soon classes are found: of those that have arrived, the share with at least one label, and the labels of "
        f"the class with the fewest examples: {groups[0].title}."
    )
    caption += " Bands: standard deviation over seeds." if any(len(group.rows) > 1 for group in known) else ""
    return Figure(caption, panels, legend, columns=max(2, len({group.learner for group in known})))


def _curve(group: Group, name: str) -> Curve:
    """After each round, at the number of labels spent by then, mean over the seeds."""
    spent = [x.mean for _, x in pointwise([labels_spent(row) for row in group.rows], 0)]
    means = pointwise([[value for task in row[name] for value in task] for row in group.rows], 0)
    return [(x, mean) for x, (_, mean) in zip(spent, means, strict=False)]
