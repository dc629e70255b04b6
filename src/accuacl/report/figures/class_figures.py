"""Figures of a single run by class: what was forgotten of each, and how well each is known in each task's tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from accuacl.report.figures.run_figures import NAMED
from accuacl.report.figures.styles import BLUE
from accuacl.report.formats.document import INK, Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forgetting(by_class: Mapping[str, float]) -> Figure:
    """Points of recall that each class has lost since its task was learned; below zero it has gained."""
    names, values = list(by_class), list(by_class.values())

    def draw(axes: Axes) -> None:
        axes.bar(range(len(names)), values, color=BLUE, width=0.8)
        axes.axhline(0, color=INK, linewidth=1)
        if len(names) <= NAMED:
            axes.set_xticks(range(len(names)), names, rotation=45 if max(map(len, names)) > 3 else 0)
        else:
            axes.set_xlabel("class")
        axes.set_xlim(-0.7, len(names) - 0.3)
        axes.grid(False, axis="x")
        axes.set_ylabel("forgetting (points)")

    low, middle, high = np.quantile(values, (0, 0.5, 1))
    alt = f"Forgetting of {len(names)} classes: lowest {low:.0f}, median {middle:.0f}, highest {high:.0f} points."
    caption = "Forgetting of each class since its task was learned, mean over the earlier tasks that test it."
    return Figure(caption, [Panel("", draw, alt, (7.4, 2.6))], columns=1)


def recall_by_task(tasks: Sequence[Mapping[str, float]]) -> Figure:
    """Recall at the end of each class (down) in the tests of each task (across); white: it is not tested there."""
    names = list(dict.fromkeys(name for by_class in tasks for name in by_class))
    values = np.array([[by_class.get(name, np.nan) for by_class in tasks] for name in names])

    def draw(axes: Axes) -> None:
        axes.pcolormesh(np.ma.masked_invalid(values), cmap="cividis", vmin=0, vmax=100)
        if len(names) <= NAMED:
            for c, t in zip(*np.nonzero(np.isfinite(values)), strict=True):
                color = "black" if values[c, t] > 55 else "white"
                axes.text(t + 0.5, c + 0.5, f"{values[c, t]:.0f}", ha="center", va="center", color=color, fontsize=7)
            axes.set_yticks(np.arange(len(names)) + 0.5, names)
        else:
            axes.set_yticks([])
        axes.set_xticks(np.arange(len(tasks)) + 0.5, [str(t + 1) for t in range(len(tasks))])
        axes.invert_yaxis()
        axes.grid(False)
        axes.tick_params(length=0)
        axes.set_xlabel("in the tests of task")
        axes.set_ylabel("class")

    means = ", ".join(f"{np.mean(list(by_class.values())):.0f}" for by_class in tasks)
    alt = (
        f"Map of the recall of {len(names)} classes by {len(tasks)} tasks; mean over the classes of each task: {means}."
    )
    size = (min(7.4, 1.6 + 0.42 * len(tasks)), min(4.5, 0.9 + 0.2 * len(names)))
    caption = "Recall at the end of each class in the tests of each task; white: it is not tested there."
    return Figure(caption, [Panel("", draw, alt, size)], columns=1)
