"""The report of many runs, from the summary to the commands."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.report.figures import bars, curves
from accuacl.report.formats.document import Code, Document, Figure, Heading, Points, Table, Text
from accuacl.report.statistics import agreement, gains, origin, significance
from accuacl.report.statistics.collect import Row
from accuacl.report.statistics.groups import Group, make_groups
from accuacl.report.tables.pivots import order_tables, setting_tables, varied_settings
from accuacl.report.tables.tables import cell_tables

FEW = 3  # cells with fewer strategies have no section of their own if they are in a table of settings


def document(
    rows: Sequence[Row], title: str = "", command: str = "", unfinished: int = 0, notices: Sequence[str] = ()
) -> Document:
    """All that the rows have to say.

    command: what made them, if it was one; unfinished: runs that are not there; notices: what must be said first.
    """
    groups = make_groups(rows)
    report = Document(title or _title(groups))
    add = report.blocks.append
    add(Text(origin.lede(rows)))
    if unfinished:
        add(Text(f"Runs that are not finished yet and so left out: {unfinished}.", notice=True))
    for note in (*notices, *origin.notes(rows)):
        add(Text(note if note.endswith(".") else f"{note}.", notice=True))
    differences, sure = significance.compare(groups)
    agreed, orderings, ranks = agreement.compare(groups)
    summary = gains.sentences(groups) + differences + agreed
    if summary:
        add(Heading("Summary"))
        add(Points(summary))
    elsewhere = {group for alike, _ in varied_settings(groups) for group in alike}
    for cell in _cells(groups):
        if set(cell) <= elsewhere and len({group.strategy for group in cell}) < FEW:
            continue
        tables = cell_tables(cell)
        add(Heading(cell[0].title))
        report.blocks.extend(tables)
        figures = [curves.tasks(cell), curves.lam(cell), curves.rounds(cell), bars.picks(cell)]
        report.blocks.extend([figure for figure in figures if figure])
    _section(report, "Other orders of the tasks", order_tables(groups))
    fixed = [group for group in groups if group["order"] != "tasks"]
    _section(report, "Settings that were varied", [*setting_tables(groups), *curves.labels(fixed)])
    if sure:
        _section(report, "Significance", [sure])
    if ranks:
        add(Heading("Agreement with the paper"))
        add(Points([*agreed, *orderings]))
        add(ranks)
    add(Heading("Where this comes from"))
    add(Points(origin.facts(rows)))
    if command:
        add(Code("All of it again", [command]))
    each = origin.again("Each run again" if command else "All of it again", groups)
    add(Code(each, [origin.command(group) for group in groups]))
    return report


def _cells(groups: Sequence[Group]) -> list[list[Group]]:
    cells: dict[object, list[Group]] = {}
    for group in groups:
        if group["order"] != "tasks":
            cells.setdefault(group.cell, []).append(group)
    return list(cells.values())


def _section(report: Document, title: str, blocks: Sequence[Table | Figure]) -> None:
    if blocks:
        report.blocks.extend([Heading(title), *blocks])


def _title(groups: Sequence[Group]) -> str:
    return f"Results: {', '.join(dict.fromkeys(str(group['benchmark']) for group in groups))}"
