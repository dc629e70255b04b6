"""Curves of metrics over tasks, rounds, labels and lambda, and how strategies are drawn in all figures.

Colours are those that the colour-blind can tell apart; markers and dashes are for print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from accuacl.experiments import is_class_incremental
from accuacl.experiments.report.document import INK, Figure, LineStyle, Panel
from accuacl.experiments.report.groups import Group, grouped
from accuacl.experiments.report.measures import (
    MAIN_METRICS,
    METRICS,
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
OTHERS = [LineStyle(COLORS[i % 5], MARKERS[i % 12], DASHES[i % 4]) for i in range(60)]  # neighbours differ in all


def styles(labels: Iterable[str]) -> dict[str, LineStyle]:
    """Return a style for each label: a strategy's own, or for any other label the next that is free.

    >>> styles(["accuacl", "mine", "accuacl"])["mine"].marker
    'H'
    """
    others = cycle(OTHERS)
    return {label: BY_STRATEGY[label] if label in BY_STRATEGY else next(others) for label in dict.fromkeys(labels)}


Curve = list[tuple[float, MeanStd]]  # [(x, the mean at x)]
MAIN_NAMES = {metric: METRICS[metric].name for metric in MAIN_METRICS}
HIGHEST = {"found": 102}  # the end of the axis of a share in percent, because mean and deviation may exceed 100
OPTIONS_BESIDE_LAM = ("variant", "keep", "oversample")  # each combination of these options of AccuACL has a curve


def tasks(groups: Sequence[Group]) -> Figure | None:
    """Draw average accuracy and forgetting after each task, with a panel for each learner."""

    def curve(group: Group, metric: str) -> Curve:
        return pointwise([after_tasks(row, metric) for row in group.rows], 2 if metric == "forgetting" else 1)

    return _figure(groups, curve, "after each task", "tasks learned")


def rounds(groups: Sequence[Group]) -> Figure | None:
    """Draw average accuracy and forgetting after each round of the last task, with a panel for each learner."""

    def curve(group: Group, metric: str) -> Curve:
        return pointwise([over_rounds(row, metric) for row in group.rows if row.get("round_accuracy")], 1)

    return _figure([g for g in groups if g["strategy"] != "full"], curve, "over the rounds of the last task", "round")


def labels(groups: Sequence[Group]) -> list[Figure]:
    """Draw both metrics against the labels per task, where these vary, with a figure for each setup."""
    figures = []
    for setup in grouped(groups, lambda group: group.setup_without(("labels",))).values():
        varied = [
            group
            for of_learner in grouped(setup, lambda group: group.learner).values()
            if len({group["labels"] for group in of_learner}) > 1
            for group in of_learner
        ]
        # Each curve passes through several groups; the first one represents it.
        same = {alike[0]: alike for alike in grouped(varied, lambda group: (group.learner, group.strategy)).values()}

        def curve(group: Group, metric: str, same: Mapping[Group, Sequence[Group]] = same) -> Curve:
            return _along(same[group], "labels", metric)

        figures.append(_figure(list(same), curve, "against labels per task", "labels per task", ignored=("labels",)))
    return [figure for figure in figures if figure]


def discovery(groups: Sequence[Group]) -> Figure | None:
    """Draw the share of classes with a label, and the labels of the rarest class, against the labels spent.

    None if the stream is a regular one in which all classes are found at once.
    """
    asked = [group for group in groups if group["strategy"] != "full"]
    known = [group for group in asked if all(row.get("found") for row in group.rows)]
    shares = [share for group in known for row in group.rows for task in row["found"] for share in task]
    if all(share == 100 for share in shares) and all(is_class_incremental(group.rows[0]) for group in known):
        return None

    def curve(group: Group, name: str) -> Curve:
        spent = pointwise([labels_spent(row) for row in group.rows], 0)
        means = pointwise([[value for task in row[name] for value in task] for row in group.rows], 0)
        return [(x.mean, mean) for (_, x), (_, mean) in zip(spent, means, strict=False)]

    ylabels = {"found": "classes found (%)", "rarest_labels": "labels of the rarest class"}
    caption = (
        "How soon classes are found: of those that have arrived, the share with at least one label, and the labels of "
        "the class with the fewest examples"
    )
    return _figure(known, curve, "against labels spent", "labels", caption, ylabels)


def lam(groups: Sequence[Group]) -> Figure | None:
    """Draw both metrics against AccuACL's weight of the past in one setup; a dashed line marks the default weight."""
    accuacl = [group for group in groups if group["strategy"] == "accuacl"]
    by_options = grouped(accuacl, lambda group: (group.learner, *(group[name] for name in OPTIONS_BESIDE_LAM)))
    panels = []
    for (learner, variant, *_), alike in by_options.items():
        default = next((group for group in alike if group["lam"] is None), None)
        several = len({options[1:] for options in by_options}) > 1
        title = f"{learner}, variant {variant}" if several else learner
        for fixed in grouped((g for g in alike if g["lam"] is not None), lambda group: group["lam_from"]).values():
            if len({group["lam"] for group in fixed}) > 1:
                panels += [_lam_panel(title, metric, fixed, default) for metric in MAIN_METRICS]
    caption = "Average accuracy and forgetting against the weight of the past (lambda)"
    if any(group["lam"] is None for group in accuacl):
        caption += "; dashed: the default, the past's share of all data"
    return Figure(f"{caption}: {accuacl[0].title}.", panels, columns=2) if panels else None


def _lam_panel(title: str, metric: str, groups: Sequence[Group], default: Group | None) -> Panel:
    curve, level = _along(groups, "lam", metric), default.mean_std(metric) if default else None

    def draw(axes: Axes) -> None:
        xs, means = [x for x, _ in curve], [value.mean for _, value in curve]
        spread = [value.std or 0 for _, value in curve]
        axes.errorbar(xs, means, spread, capsize=3, **BY_STRATEGY["accuacl"].arguments())
        if level:
            axes.axhline(level.mean, color=INK, linestyle="--", linewidth=1)
        axes.set_xlabel("lambda, weight of the past")
        axes.set_ylabel(METRICS[metric].name)

    points = ", ".join(f"{number(value.mean)} at {x:.3g}" for x, value in curve)
    at_default = f"; {number(level.mean)} with the default" if level else ""
    return Panel(title, draw, f"{METRICS[metric].name} against lambda, {title}: {points}{at_default}.")


def _figure(
    groups: Sequence[Group],
    curve: Callable[[Group, str], Curve],
    what: str,
    xlabel: str,
    caption: str = "",
    ylabels: Mapping[str, str] = MAIN_NAMES,
    ignored: Sequence[str] = (),
) -> Figure | None:
    """Draw a panel for each metric and learner; panels of the same metric share their y axis.

    ylabels: the label of the y axis of each metric. ignored: settings that the caption does not name.
    """
    panels = []
    legend = styles(group.strategy for group in groups)
    for metric, ylabel in ylabels.items():
        curves = {group: points for group in groups if (points := curve(group, metric))}
        if not any(len(points) > 1 for points in curves.values()):
            continue
        low, high = y_limits(mean for points in curves.values() for _, mean in points)
        limits = low, min(high, HIGHEST.get(metric, high))
        for learner, alike in grouped(curves, lambda group: group.learner).items():
            lines = {group.strategy: curves[group] for group in alike}
            panels.append(_panel(learner, ylabel, what, xlabel, lines, legend, limits))
    if not panels:
        return None
    caption = f"{caption or f'Average accuracy and forgetting {what}'}: {groups[0].title_without(ignored)}."
    caption += " Bands: standard deviation over seeds." if any(len(group.rows) > 1 for group in groups) else ""
    return Figure(caption, panels, legend, columns=max(2, len({group.learner for group in groups})))


def _panel(
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
            if label == "full" and len(x) == 1:  # `full` labels everything, whatever the budget, so it is a level line
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
    """Return a curve of mean and deviation over runs, at each point that all runs have; x begins at `first`."""
    length = min((len(run) for run in runs), default=0)
    return [(first + i, mean_std([run[i] for run in runs])) for i in range(length)]


def _along(groups: Sequence[Group], setting: str, metric: str) -> Curve:
    """Return the curve of a metric against the values of a setting."""
    points = [(float(group[setting]), group.mean_std(metric)) for group in groups]
    return sorted(((x, mean) for x, mean in points if mean is not None), key=lambda point: point[0])


def y_limits(values: Iterable[MeanStd]) -> tuple[float, float]:
    """Return the ends of a y axis that has room for all means and their deviations."""
    ends = [(value.mean - (value.std or 0), value.mean + (value.std or 0)) for value in values]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin
