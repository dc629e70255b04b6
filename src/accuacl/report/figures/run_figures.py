"""Figures of a single run: its accuracy matrix, curves over tasks and rounds, recall, and what was picked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accuacl.report.figures.styles import BLUE, BY_STRATEGY, ORANGE
from accuacl.report.formats.document import FAINT, INK, Figure, Panel
from accuacl.report.statistics.groups import Row
from accuacl.report.statistics.metrics import MAIN_METRICS, METRICS, number
from accuacl.report.statistics.over_time import after_tasks, over_rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 24  # an axis names its classes if there are no more than this


def heat_map(matrix: Sequence[Sequence[float | None]]) -> Figure:
    """Accuracy on each task (across) after each task (down)."""
    count = len(matrix)
    values = np.array([[np.nan if x is None else x for x in line] for line in matrix], float)

    def draw(axes: Axes) -> None:
        axes.pcolormesh(np.ma.masked_invalid(values), cmap="cividis", vmin=0, vmax=100)
        for t, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
            color = "black" if values[t, j] > 55 else "white"
            axes.text(j + 0.5, t + 0.5, number(values[t, j]), ha="center", va="center", color=color, fontsize=8)
        axes.set_xticks(np.arange(count) + 0.5, [str(j + 1) for j in range(count)])
        axes.set_yticks(np.arange(count) + 0.5, [str(t + 1) for t in range(count)])
        axes.invert_yaxis()
        axes.grid(False)
        axes.tick_params(length=0)
        axes.set_xlabel("on task")
        axes.set_ylabel("after task")

    last = ", ".join(number(x) for x in values[-1])
    alt = f"Heat map of the accuracy matrix, {count} by {count}. After the last task, accuracy on each task is {last}."
    side = max(2.4, 0.8 + 0.42 * count)
    return Figure("Accuracy (%) on each task after each task.", [Panel("", draw, alt, (side + 0.6, side))], columns=1)


def curves(row: Row) -> list[Figure]:
    """Average accuracy and forgetting over tasks, and over all rounds where these were tested."""
    over_tasks = [
        _curve(metric, after_tasks(row, metric), 2 if metric == "forgetting" else 1, "tasks learned")
        for metric in MAIN_METRICS
    ]
    rounds = [len(accuracies) for accuracies in row.get("round_accuracy") or []]
    ends = np.cumsum(rounds).tolist()
    all_rounds = []
    for metric in MAIN_METRICS:
        values = [value for task in range(len(rounds)) for value in over_rounds(row, metric, task)]
        first = sum(rounds) - len(values) + 1  # forgetting begins with the second task
        all_rounds.append(_curve(metric, values, first, "round, over all tasks", ends[:-1]))
    figures = [
        Figure("After each task.", [panel for panel in over_tasks if panel], columns=2),
        Figure("After each round; lines: a new task begins.", [panel for panel in all_rounds if panel], columns=2),
    ]
    return [figure for figure in figures if figure.panels]


def _curve(
    metric: str, values: Sequence[float], first: int, xlabel: str, task_ends: Sequence[int] = ()
) -> Panel | None:
    if len(values) < 2:
        return None

    def draw(axes: Axes) -> None:
        from matplotlib.ticker import MaxNLocator

        for end in task_ends:
            axes.axvline(end + 0.5, color=FAINT, linewidth=1)
        axes.plot(range(first, first + len(values)), values, **BY_STRATEGY["accuacl"].arguments())
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.set_xlabel(xlabel)
        axes.set_ylabel(METRICS[metric].name)

    alt = f"{METRICS[metric].name}, {xlabel}: from {number(values[0])} to {number(values[-1])}."
    return Panel("", draw, alt)


def recall(by_class: Mapping[str, float], tasks: int) -> Figure:
    """Recall of every class in order of arrival; where each task has its own classes, in alternating colours.

    tasks: how many there are; 1 if their classes are not their own.
    """
    names, values = list(by_class), list(by_class.values())
    each = max(1, len(names) // max(1, tasks))

    def draw(axes: Axes) -> None:
        colors = [(BLUE, ORANGE)[i // each % 2] for i in range(len(names))]
        axes.bar(range(len(names)), values, color=colors, width=0.8)
        if len(names) <= NAMED:
            axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 3 else 0)
        elif tasks == 1:
            axes.set_xlabel("class")
        else:
            starts = range(0, len(names), each)
            axes.set_xticks([start + (each - 1) / 2 for start in starts], [str(i + 1) for i in range(len(starts))])
            axes.set_xlabel("task")
        axes.set_ylim(0, 100)
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.grid(False, axis="x")
        axes.set_ylabel("recall (%)")

    low, middle, high = np.quantile(values, (0, 0.5, 1))
    alt = f"Recall of {len(names)} classes: lowest {low:.0f} %, median {middle:.0f} %, highest {high:.0f} %."
    colours = ", tasks in alternating colours" if tasks > 1 else ""
    caption = f"Recall at the end, classes in order of arrival{colours}."
    return Figure(caption, [Panel("", draw, alt, (7.4, 2.6))], columns=1)


def picks(picked: Sequence[Sequence[int]]) -> Figure:
    """How many labels each class got in its task, beside an even share."""

    def draw(axes: Axes) -> None:
        for t, counts in enumerate(picked):
            even = sum(counts) / len(counts)
            x = t + 1 + (np.arange(len(counts)) - (len(counts) - 1) / 2) * 0.7 / max(1, len(counts))
            axes.plot([t + 0.6, t + 1.4], [even, even], color=INK, linewidth=1)
            axes.vlines(x, even, list(counts), color=BLUE, linewidth=1)
            axes.plot(x, counts, color=BLUE, marker="o", linestyle="", markersize=4)
        axes.set_ylim(bottom=0)
        axes.set_xticks(range(1, len(picked) + 1))
        axes.grid(False, axis="x")
        axes.set_xlabel("task")
        axes.set_ylabel("labels of a class")

    ranges = [f"task {t + 1} from {min(counts)} to {max(counts)}" for t, counts in enumerate(picked)]
    alt = f"Labels that classes got: {', '.join(ranges)}."
    caption = "Labels that each class of a task got, classes in order of arrival; the line is an even share."
    return Figure(caption, [Panel("", draw, alt, (7.4, 2.6))], columns=1)
