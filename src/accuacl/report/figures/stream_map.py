"""A stream as a picture: how many examples of each class arrive in each task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from accuacl.report.formats.document import Figure, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 24  # an axis names its classes if there are no more than this


def stream_map(pools: Sequence[Sequence[int]], classes: Sequence[str]) -> Figure:
    """pools: how many examples of each class, in their order, each task has."""
    counts = np.array(pools, float).T

    def draw(axes: Axes) -> None:
        draw_map(axes, counts, classes)

    present = int((counts > 0).sum(axis=0).max())
    alt = (
        f"Map of {len(classes)} classes by {len(pools)} tasks; the largest pool of a class has {counts.max():.0f} "
        f"examples, a task has up to {present} classes."
    )
    size = (min(7.4, 1.6 + 0.42 * len(pools)), min(4.5, 0.9 + 0.2 * len(classes)))
    caption = "The stream: examples of each class in each task's pool; the darker, the more; white: none."
    return Figure(caption, [Panel("", draw, alt, size)], columns=1)


def draw_map(axes: Axes, counts: np.ndarray, classes: Sequence[str]) -> None:
    """counts: (classes, tasks). Colours are by logarithm, for tails are long."""
    from matplotlib.colors import LogNorm

    top = max(2.0, float(counts.max(initial=0)))
    axes.pcolormesh(np.ma.masked_less(counts, 1), cmap="cividis_r", norm=LogNorm(1, top))
    if len(classes) <= NAMED:
        for c, t in zip(*np.nonzero(counts), strict=True):
            color = "white" if counts[c, t] ** 2 > top else "black"  # beyond the middle of the colours
            axes.text(t + 0.5, c + 0.5, f"{counts[c, t]:.0f}", ha="center", va="center", color=color, fontsize=7)
    axes.invert_yaxis()
    axes.grid(False)
    tasks = range(counts.shape[1])
    axes.set_xticks([t + 0.5 for t in tasks], [str(t + 1) for t in tasks])
    if len(classes) <= NAMED:
        axes.set_yticks([c + 0.5 for c in range(len(classes))], list(classes))
    axes.tick_params(length=0)
    axes.set_xlabel("task")
    axes.set_ylabel("class")
