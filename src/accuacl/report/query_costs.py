"""The report of what queries cost: CPU seconds and memory of each strategy, as a table and two plots."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from accuacl.base.files import write_text
from accuacl.report.figures.bars import log_panel, short
from accuacl.report.figures.styles import styles
from accuacl.report.formats import page
from accuacl.report.formats.document import (
    Code,
    Document,
    Figure,
    Panel,
    Table,
    TableCell,
    TableColumn,
    TableGroup,
    TableRow,
    Text,
)

OURS = "accuacl"
PAPER = "In the paper BAIT takes 462.1 times AccuACL's time and 85.5 times its memory, both in their authors' own code."


def write_efficiency(
    costs: Mapping[str, tuple[float, float]], out: Path, title: str, about: str, command: str, machine: str
) -> Path:
    """Write the page; costs: CPU seconds of all queries and bytes of the largest query, by strategy."""
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
    caption = "Time of all queries, and memory of the largest beyond its inputs"
    document = Document(
        title,
        [
            Text(f"{about[0].upper()}{about[1:]}."),
            Table(caption, ["strategy"], columns, [TableGroup("", rows)]),
            Figure("Time of all queries and memory of the largest, on logarithmic axes.", panels, columns=2),
            Text(f"Features are random and have the sizes of the benchmark's; {machine}; seed 0. {PAPER}"),
            Code("To reproduce all of it", [command]),
        ],
    )
    write_text(out, page.render(document))
    return out


def _times(value: float, base: float | None) -> str:
    return f"{value / base:,.2f}" if base else ""


def _panel(what: str, values: Mapping[str, float]) -> Panel:
    limits = min(values.values()), max(values.values())
    return log_panel(what, what, what, values, limits, styles(values), (3.4, 0.75 + 0.2 * len(values)))
