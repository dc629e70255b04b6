"""What queries cost: seconds and memory of each strategy, a table and two plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from accuacl.base.files import write_text
from accuacl.report.figures.bars import name_bars, short
from accuacl.report.figures.looks import looks
from accuacl.report.formats import page
from accuacl.report.formats.document import Block, Cell, Code, Column, Document, Figure, Line, Panel, Table, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS = "accuacl"
PAPER = "The paper has BAIT at 462.1 times AccuACL's time and 85.5 times its memory, both as the authors wrote them."


def write_efficiency(
    costs: Mapping[str, tuple[float, float]], out: Path, title: str, about: str, command: str, machine: str
) -> Path:
    """Write the page; costs: by strategy, CPU seconds of all queries and bytes of the largest."""
    columns = [Column("CPU s"), Column("x accuacl"), Column("MiB"), Column("x accuacl")]
    ours = costs.get(OURS)
    lines = []
    for name, (seconds, most) in costs.items():
        cells = [Cell(short(seconds)), Cell(_times(seconds, ours and ours[0]))]
        cells += [Cell(short(most / 2**20)), Cell(_times(most, ours and ours[1]))]
        lines.append(Line([name], cells))
    panels = [
        _panel("CPU seconds", {name: max(seconds, 1e-3) for name, (seconds, _) in costs.items()}),
        _panel("memory, MiB", {name: max(most / 2**20, 0.1) for name, (_, most) in costs.items()}),
    ]
    document = Document(
        title,
        [
            Text(f"{about[0].upper()}{about[1:]}."),
            Table("Time of all queries and memory beyond the inputs", ["strategy"], columns, [Block("", lines)], by=""),
            Figure("Time of all queries and memory of the largest, logarithmic.", panels, columns=2),
            Text(f"Features are random, their sizes those of the benchmark; {machine}; seed 0. {PAPER}"),
            Code("All of it again", [command]),
        ],
    )
    write_text(out, page.render(document))
    return out


def _times(value: float, base: float | None) -> str:
    return f"{value / base:,.2f}" if base else ""


def _panel(what: str, values: Mapping[str, float]) -> Panel:
    look = looks(values)

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_xlim(min(values.values()) / 4, max(values.values()) * 12)
        axes.xaxis.set_major_formatter(lambda value, _: short(value))
        name_bars(axes, {name: (value, look[name].color) for name, value in values.items()})
        axes.set_xlabel(what)

    said = ", ".join(f"{name} {short(value)}" for name, value in values.items())
    return Panel(what, draw, f"{what}: {said}.", (3.4, 0.75 + 0.2 * len(values)))
