"""How evenly strategies pick, and what their queries cost: a bar a strategy, a panel a learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accuacl.report.figures.looks import FAINT, INK, Look, looks
from accuacl.report.formats.document import Figure, Panel
from accuacl.report.statistics.groups import Group
from accuacl.report.tables.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 1e-3  # seconds that a bar on a logarithmic axis can show
Bars = dict[str, tuple[float, float]]  # where each begins and ends


def picks(groups: Sequence[Group]) -> Figure | None:
    """Class balance and query seconds of a cell, a panel each for every learner."""
    groups = [group for group in groups if group["strategy"] != "full"]
    look = looks(group.strategy for group in groups)
    learners = list(dict.fromkeys(group.learner for group in groups))
    shares = {learner: _shares([g for g in groups if g.learner == learner]) for learner in learners}
    seconds = {learner: _seconds([g for g in groups if g.learner == learner]) for learner in learners}
    panels, said = [], []
    if any(shares.values()):
        said.append(
            "Labels of a task's rarest and commonest class as multiples of an even share, mean over tasks and seeds"
        )
        panels += [_balance(learner, bars, _span(shares), look) for learner, bars in shares.items() if bars]
    if any(seconds.values()):
        said.append("wall-clock seconds of a run's queries, looking at the pool included, mean over seeds, logarithmic")
        panels += [_cost(learner, bars, _span(seconds), look) for learner, bars in seconds.items() if bars]
    if not panels:
        return None
    return Figure(f"{'; '.join(said)}: {groups[0].title}.", panels, columns=max(2, len(learners)))


def _shares(groups: Sequence[Group]) -> Bars:
    found = {group.strategy: (group.stat("picked_least"), group.stat("picked_most")) for group in groups}
    return {label: (least.mean, most.mean) for label, (least, most) in found.items() if least and most}


def _seconds(groups: Sequence[Group]) -> Bars:
    found = {group.strategy: group.stat("seconds_query") for group in groups}
    return {label: (max(LEAST, seconds.mean),) * 2 for label, seconds in found.items() if seconds}


def _balance(learner: str, bars: Bars, span: tuple[float, float], look: dict[str, Look]) -> Panel:
    def draw(axes: Axes) -> None:
        axes.axvline(1, color=INK, linewidth=1)
        for i, (label, (least, most)) in enumerate(bars.items()):
            axes.plot([least, most], [i, i], color=look[label].color, linewidth=2.5, marker="|", markersize=9)
            _note(axes, least, i, number(least, 2), "right")
            _note(axes, most, i, number(most, 2), "left")
        margin = 0.45 * max(span[1] - span[0], 0.1)
        axes.set_xlim(span[0] - margin, span[1] + margin)
        axes.set_xlabel("labels, 1 = even share")
        _names(axes, list(bars))

    said = ", ".join(f"{label} {number(low, 2)} to {number(high, 2)}" for label, (low, high) in bars.items())
    return Panel(learner, draw, f"Class balance, {learner}, rarest to commonest class: {said}.", _size(bars))


def _cost(learner: str, bars: Bars, span: tuple[float, float], look: dict[str, Look]) -> Panel:
    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_xlim(span[0] / 4, span[1] * 12)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        name_bars(axes, {label: (seconds, look[label].color) for label, (_, seconds) in bars.items()})
        axes.set_xlabel("seconds, all queries")

    said = ", ".join(f"{label} {short(end)}" for label, (_, end) in bars.items())
    return Panel(learner, draw, f"Query seconds, {learner}: {said}.", _size(bars))


def name_bars(axes: Axes, bars: Mapping[str, tuple[float, str]]) -> None:
    """Horizontal bars with their names at the left and their numbers at the right: length and colour by name."""
    for i, (length, color) in enumerate(bars.values()):
        axes.barh(i, length, color=color, height=0.65)
        _note(axes, length, i, short(length), "left")
    _names(axes, list(bars))


def _span(bars: dict[str, Bars]) -> tuple[float, float]:
    """From the least to the greatest over all learners, so that their panels have one scale."""
    ends = [pair for some in bars.values() for pair in some.values()]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _note(axes: Axes, x: float, y: float, text: str, side: str) -> None:
    """The number beside the end of a bar."""
    shift = 4 if side == "left" else -4
    axes.annotate(text, (x, y), xytext=(shift, 0), textcoords="offset points", va="center", ha=side, fontsize=7.5)


def _names(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.spines["left"].set_color(FAINT)


def _size(bars: Bars) -> tuple[float, float]:
    """Wider for long names, higher for many."""
    return 3.0 + 0.07 * max(0, max(map(len, bars)) - 16), 0.75 + 0.2 * len(bars)


def short(seconds: float) -> str:
    """
    >>> short(0.0123), short(12.3), short(1234.0)
    ('0.012', '12', '1,234')
    """
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"
