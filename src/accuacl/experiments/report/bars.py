"""How evenly strategies pick, and what their queries cost: a bar for each strategy, a panel for each learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from accuacl.experiments import Row
from accuacl.experiments.report.curves import styles
from accuacl.experiments.report.document import (
    FAINT,
    INK,
    Block,
    Figure,
    LineStyle,
    Panel,
    Points,
    Table,
    TableCell,
    TableColumn,
    TableGroup,
    TableRow,
)
from accuacl.experiments.report.groups import Group, grouped
from accuacl.experiments.report.measures import number
from accuacl.experiments.report.paper import times_accuacl

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHORTEST = 1e-3  # seconds: shorter times are drawn like this one, because a logarithmic axis has no zero
Bars = dict[str, tuple[float, float]]  # {strategy: (begin of its bar, end of its bar)}


def picks(groups: Sequence[Group]) -> Figure | None:
    """Draw class balance and query seconds in a setup, with a panel of each for every learner, on the same axes."""
    groups = [group for group in groups if group["strategy"] != "full"]
    legend = styles(group.strategy for group in groups)
    by_learner = grouped(groups, lambda group: group.learner)
    shares = {learner: bars for learner, mine in by_learner.items() if (bars := _shares(mine))}
    seconds = {learner: lengths for learner, mine in by_learner.items() if (lengths := _seconds(mine))}
    panels, captions = [], []
    if shares:
        captions.append(
            "Labels of a task's rarest and commonest class as multiples of an even share, mean over tasks and seeds"
        )
        ends = [end for bars in shares.values() for pair in bars.values() for end in pair]
        panels += [_balance(learner, bars, (min(ends), max(ends)), legend) for learner, bars in shares.items()]
    if seconds:
        captions.append(
            "wall-clock seconds of all queries of a run, embedding the pool included, mean over seeds, logarithmic axis"
        )
        every = [length for by_strategy in seconds.values() for length in by_strategy.values()]
        limits, axis = (min(every), max(every)), "seconds, all queries"
        panels += [
            log_panel(learner, axis, f"Query seconds, {learner}", by_strategy, limits, legend)
            for learner, by_strategy in seconds.items()
        ]
    if not panels:
        return None
    return Figure(f"{'; '.join(captions)}: {groups[0].title}.", panels, columns=max(2, len(by_learner)))


def _shares(groups: Sequence[Group]) -> Bars:
    shares = {group.strategy: (group.mean_std("picked_least"), group.mean_std("picked_most")) for group in groups}
    return {label: (least.mean, most.mean) for label, (least, most) in shares.items() if least and most}


def _seconds(groups: Sequence[Group]) -> dict[str, float]:
    means = {group.strategy: group.mean_std("seconds_query") for group in groups}
    return {label: max(SHORTEST, seconds.mean) for label, seconds in means.items() if seconds}


def _balance(learner: str, bars: Bars, limits: tuple[float, float], legend: dict[str, LineStyle]) -> Panel:
    def draw(axes: Axes) -> None:
        axes.axvline(1, color=INK, linewidth=1)
        for i, (label, (least, most)) in enumerate(bars.items()):
            axes.plot([least, most], [i, i], color=legend[label].color, linewidth=2.5, marker="|", markersize=9)
            _number_beside(axes, least, i, number(least, 2), "right")
            _number_beside(axes, most, i, number(most, 2), "left")
        margin = 0.45 * max(limits[1] - limits[0], 0.1)
        axes.set_xlim(limits[0] - margin, limits[1] + margin)
        axes.set_xlabel("labels, 1 = even share")
        _names(axes, list(bars))

    spoken = ", ".join(f"{label} {number(low, 2)} to {number(high, 2)}" for label, (low, high) in bars.items())
    return Panel(learner, draw, f"Class balance, {learner}, rarest to commonest class: {spoken}.", _size(bars))


def log_panel(
    title: str,
    xlabel: str,
    alt: str,
    values: Mapping[str, float],
    limits: tuple[float, float],
    legend: Mapping[str, LineStyle],
    size: tuple[float, float] | None = None,
) -> Panel:
    """Return a panel of horizontal bars on a logarithmic axis, with names at the left and numbers at the right.

    alt: a description of the bars for people who cannot see them; names and numbers are added to it. limits: the least
    and the greatest value of all panels with the same axis.
    """

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_xlim(limits[0] / 4, limits[1] * 12)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        for i, (label, length) in enumerate(values.items()):
            axes.barh(i, length, color=legend[label].color, height=0.65)
            _number_beside(axes, length, i, short(length), "left")
        axes.set_xlabel(xlabel)
        _names(axes, list(values))

    spoken = ", ".join(f"{label} {short(value)}" for label, value in values.items())
    return Panel(title, draw, f"{alt}: {spoken}.", size or _size(values))


def _number_beside(axes: Axes, x: float, y: float, text: str, side: str) -> None:
    """Write the number beside the end of a bar."""
    shift = 4 if side == "left" else -4
    axes.annotate(text, (x, y), xytext=(shift, 0), textcoords="offset points", va="center", ha=side, fontsize=7.5)


def _names(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.spines["left"].set_color(FAINT)


def _size(bars: Mapping[str, object]) -> tuple[float, float]:
    """Return a panel's size: wider for long names, higher for many."""
    return 3.0 + 0.07 * max(0, max(map(len, bars)) - 16), 0.75 + 0.2 * len(bars)


def short(seconds: float) -> str:
    """Return a number as text with two digits, or from ten on as a whole number.

    >>> short(0.0123), short(12.3), short(1234.0)
    ('0.012', '12', '1,234')
    """
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


OURS = "accuacl"
TITLE = "Time and memory of queries"


def cost_blocks(rows: Sequence[Row]) -> list[Block]:
    """Return a table and two plots of query times for each size of pool. rows: as `read_query_times` returns them.

    A strategy that was not measured at all sizes is named and left out, because its sum cannot be compared.
    """
    blocks: list[Block] = []
    for (n, d, b), alike in grouped(rows, lambda row: (row["n"], row["d"], row["b"])).items():
        by_strategy: dict[str, dict[tuple[int, ...], Row]] = {}
        for row in alike:  # if a size was measured twice, the last counts
            by_strategy.setdefault(row["strategy"], {})[row["K"], row["m"], row["labelled"]] = row
        sizes = {size: None for measured in by_strategy.values() for size in measured}
        whole = {name: measured.values() for name, measured in by_strategy.items() if len(measured) == len(sizes)}
        seconds = {name: sum(row["cpu_seconds"] for row in measured) for name, measured in whole.items()}
        mebibytes = {name: max(row["extra_bytes"] for row in measured) / 2**20 for name, measured in whole.items()}
        classes = ", ".join(dict.fromkeys(str(K) for K, *_ in sizes))
        what = f"{b:,} picks of {n:,} examples, {d} wide, one query for each number of classes ({classes})"
        if whole:
            blocks += _table_and_plots(
                seconds, mebibytes, f"{what}: time of all, memory of the largest beyond its inputs"
            )
        lacking = [name for name in by_strategy if name not in whole]
        notes = [f"Not measured at all sizes, and left out: {', '.join(lacking)}."] if lacking else []
        machines = "; ".join(dict.fromkeys(row["machine"] for row in alike))
        notes.append(f"Features are random and have the sizes of the benchmark's; measured on {machines}.")
        time, memory = (times_accuacl("bait", metric) for metric in ("time", "memory"))
        ratios = f"{time:g} times AccuACL's time and {memory:g} times its memory"
        notes.append(f"In the paper BAIT takes {ratios}, both in their authors' own code.")
        blocks.append(Points(notes))
    return blocks


def _table_and_plots(seconds: Mapping[str, float], mebibytes: Mapping[str, float], caption: str) -> list[Block]:
    rows = []
    for name in seconds:
        cells = []
        for values in (seconds, mebibytes):
            ratio = f"{values[name] / values[OURS]:,.2f}" if values.get(OURS) else ""
            cells += [TableCell(short(values[name])), TableCell(ratio)]
        rows.append(TableRow([name], cells))
    columns = [TableColumn("CPU s"), TableColumn("x accuacl"), TableColumn("MiB"), TableColumn("x accuacl")]
    size, legend = (3.4, 0.75 + 0.2 * len(seconds)), styles(seconds)
    panels = []
    for what, values, least in (("CPU seconds", seconds, 1e-3), ("memory, MiB", mebibytes, 0.1)):
        shown = {name: max(value, least) for name, value in values.items()}
        limits = min(shown.values()), max(shown.values())
        panels.append(log_panel(what, what, what, shown, limits, legend, size))
    plots = Figure("Time of all queries and memory of the largest, on logarithmic axes.", panels, columns=2)
    return [Table(caption, ["strategy"], columns, [TableGroup("", rows)]), plots]
