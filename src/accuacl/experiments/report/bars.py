"""How evenly strategies pick, and what their queries cost: a bar for each strategy, a panel for each learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accuacl.base.files import write_text
from accuacl.experiments.report.curves import styles
from accuacl.experiments.report.document import (
    FAINT,
    INK,
    Block,
    Code,
    Document,
    Figure,
    LineStyle,
    Panel,
    Points,
    Table,
    TableCell,
    TableColumn,
    TableGroup,
    TableRow,
    Text,
)
from accuacl.experiments.report.formats import render_html
from accuacl.experiments.report.groups import Group, number
from accuacl.experiments.report.paper import times_accuacl

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHORTEST = 1e-3  # the fewest seconds that a bar on a logarithmic axis shows
Bars = dict[str, tuple[float, float]]  # where each strategy's bar begins and ends


def picks(groups: Sequence[Group]) -> Figure | None:
    """Class balance and query seconds in a setup, a panel of each for every learner."""
    groups = [group for group in groups if group["strategy"] != "full"]
    legend = styles(group.strategy for group in groups)
    learners = list(dict.fromkeys(group.learner for group in groups))
    shares = {learner: _shares([g for g in groups if g.learner == learner]) for learner in learners}
    seconds = {learner: _seconds([g for g in groups if g.learner == learner]) for learner in learners}
    panels, captions = [], []
    if any(shares.values()):
        captions.append(
            "Labels of a task's rarest and commonest class as multiples of an even share, mean over tasks and seeds"
        )
        ends = [end for bars in shares.values() for pair in bars.values() for end in pair]
        limits = min(ends), max(ends)  # panels have the same axis
        panels += [_balance(learner, bars, limits, legend) for learner, bars in shares.items() if bars]
    if any(seconds.values()):
        captions.append(
            "wall-clock seconds of all queries of a run, embedding the pool included, mean over seeds, logarithmic axis"
        )
        all_seconds = [value for bars in seconds.values() for value in bars.values()]
        limits = min(all_seconds), max(all_seconds)  # panels have the same axis
        panels += [
            log_panel(learner, "seconds, all queries", f"Query seconds, {learner}", bars, limits, legend)
            for learner, bars in seconds.items()
            if bars
        ]
    if not panels:
        return None
    return Figure(f"{'; '.join(captions)}: {groups[0].title}.", panels, columns=max(2, len(learners)))


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
    """Horizontal bars on a logarithmic axis, with their names at the left and their numbers at the right.

    alt: what the bars are, to which their names and numbers are added. limits: the least and the greatest value that
    panels with the same axis have.
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
    """A panel's size: wider for long names, higher for many."""
    return 3.0 + 0.07 * max(0, max(map(len, bars)) - 16), 0.75 + 0.2 * len(bars)


def short(seconds: float) -> str:
    """The number with two digits, or in full from ten on.

    >>> short(0.0123), short(12.3), short(1234.0)
    ('0.012', '12', '1,234')
    """
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.2g}"


OURS = "accuacl"
TITLE = "Time and memory of queries"
RANDOM = "Features are random and have the sizes of the benchmark's"

Costs = Mapping[str, tuple[float, float]]  # CPU seconds of all queries and bytes of the largest, by strategy


def write_efficiency(costs: Costs, out: Path, title: str, about: str, command: str, machine: str) -> Path:
    """Write the page of `accuacl paper efficiency`."""
    what = "Time of all queries, and memory of the largest beyond its inputs"
    blocks = [
        Text(f"{about[0].upper()}{about[1:]}."),
        *_table_and_plots(costs, what),
        Text(f"{RANDOM}; {machine}; seed 0. {_in_paper()}"),
        Code("To reproduce all of it", [command]),
    ]
    write_text(out, render_html(Document(title, blocks)))
    return out


def _in_paper() -> str:
    time, memory = (times_accuacl("bait", metric) for metric in ("time", "memory"))
    ratios = f"{time:g} times AccuACL's time and {memory:g} times its memory"
    return f"In the paper BAIT takes {ratios}, both in their authors' own code."


def cost_blocks(rows: Sequence[Mapping[str, Any]]) -> list[Block]:
    """Tables of query times as blocks of a report: a table and two plots for each size of pool.

    rows: as `read_query_times` gives them. A strategy that lacks one of the sizes that others have is named, and left
    out: its sum would say too little.
    """
    blocks: list[Block] = []
    for (n, d, b), alike in _by_pool(rows).items():
        sizes = list(dict.fromkeys((row["K"], row["m"], row["labelled"]) for row in alike))
        costs, lacking = _costs(alike, len(sizes))
        classes = ", ".join(dict.fromkeys(str(K) for K, _, _ in sizes))
        what = f"{b:,} picks of {n:,} examples, {d} wide, one query for each number of classes ({classes})"
        blocks += (
            _table_and_plots(costs, f"{what}: time of all, memory of the largest beyond its inputs") if costs else []
        )
        machines = "; ".join(dict.fromkeys(row["machine"] for row in alike))
        notes = [f"{RANDOM}; measured on {machines}.", _in_paper()]
        if lacking:
            notes.insert(0, f"Not measured at all sizes, and left out: {', '.join(lacking)}.")
        blocks.append(Points(notes))
    return blocks


def _by_pool(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int, int], list[Mapping[str, Any]]]:
    pools: dict[tuple[int, int, int], list[Mapping[str, Any]]] = {}
    for row in rows:
        pools.setdefault((row["n"], row["d"], row["b"]), []).append(row)
    return pools


def _costs(rows: Sequence[Mapping[str, Any]], sizes: int) -> tuple[dict[str, tuple[float, float]], list[str]]:
    """The cost of strategies measured at all `sizes` sizes, and the names of the others."""
    by_strategy: dict[str, dict[Any, Mapping[str, Any]]] = {}
    for row in rows:  # if a size was measured twice, the last counts
        by_strategy.setdefault(row["strategy"], {})[row["K"], row["m"], row["labelled"]] = row
    costs = {
        name: (
            sum(row["cpu_seconds"] for row in measured.values()),
            max(row["extra_bytes"] for row in measured.values()),
        )
        for name, measured in by_strategy.items()
        if len(measured) == sizes
    }
    return costs, [name for name in by_strategy if name not in costs]


def _table_and_plots(costs: Costs, caption: str) -> list[Block]:
    columns = [TableColumn("CPU s"), TableColumn("x accuacl"), TableColumn("MiB"), TableColumn("x accuacl")]
    ours = costs.get(OURS)
    rows = []
    for strategy, (seconds, size) in costs.items():
        cells = [TableCell(short(seconds)), TableCell(_times(seconds, ours and ours[0]))]
        cells += [TableCell(short(size / 2**20)), TableCell(_times(size, ours and ours[1]))]
        rows.append(TableRow([strategy], cells))
    panels = [
        _panel("CPU seconds", {name: max(seconds, 1e-3) for name, (seconds, _) in costs.items()}),
        _panel("memory, MiB", {name: max(size / 2**20, 0.1) for name, (_, size) in costs.items()}),
    ]
    plots = Figure("Time of all queries and memory of the largest, on logarithmic axes.", panels, columns=2)
    return [Table(caption, ["strategy"], columns, [TableGroup("", rows)]), plots]


def _times(value: float, base: float | None) -> str:
    return f"{value / base:,.2f}" if base else ""


def _panel(what: str, values: Mapping[str, float]) -> Panel:
    limits = min(values.values()), max(values.values())
    return log_panel(what, what, what, values, limits, styles(values), (3.4, 0.75 + 0.2 * len(values)))
