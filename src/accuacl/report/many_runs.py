"""The report of many runs, from the summary to the commands."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.report import provenance, query_costs
from accuacl.report.figures import bars, curves
from accuacl.report.figures.discovery import discovery
from accuacl.report.formats.document import Block, Code, Document, Heading, Points, Text
from accuacl.report.statistics import agreement, gains, significance
from accuacl.report.statistics.groups import Group, Row, make_groups
from accuacl.report.tables.agreement import agreement_table
from accuacl.report.tables.comparison import comparison_tables
from accuacl.report.tables.significance import significance_table
from accuacl.report.tables.variations import order_tables, setting_tables, varied_settings

FEW = 3  # a setup with fewer strategies has no section of its own if it is in a table of varied settings


def document(
    rows: Sequence[Row],
    title: str = "",
    command: str = "",
    unfinished: int = 0,
    notices: Sequence[str] = (),
    source: str = "",
    query_times: Sequence[Row] = (),
) -> Document:
    """The report of these rows.

    command: the one that made them all, if there is one. unfinished: how many runs are not there yet. notices:
    sentences to begin with. source: a sentence on where the rows were read. query_times: what queries cost.
    """
    if not rows:
        return Document(title or query_costs.TITLE, [*query_costs.cost_blocks(query_times), Points([source])])
    groups = make_groups(rows)
    report = Document(title or f"Results: {', '.join(dict.fromkeys(str(group['benchmark']) for group in groups))}")
    add = report.blocks.append
    add(Text(provenance.overview(rows)))
    if unfinished:
        is_left = "unfinished run is" if unfinished == 1 else "unfinished runs are"
        add(Text(f"{unfinished} {is_left} left out.", notice=True))
    report.blocks.extend(provenance.notices(rows, notices))
    comparisons = significance.compare(groups)
    cells_of_paper = agreement.cells_of_paper(groups)
    agreed, orderings = agreement.sentences(cells_of_paper)
    summary = [*gains.sentences(groups), *significance.sentences(comparisons), *agreed]
    if summary:
        add(Heading("Summary"))
        add(Points(summary))
    for setup in _setups(groups):
        add(Heading(setup[0].title))
        report.blocks.extend(comparison_tables(setup))
        figures = [curves.tasks(setup), curves.lam(setup), curves.rounds(setup), bars.picks(setup), discovery(setup)]
        report.blocks.extend([figure for figure in figures if figure])
    _section(report, "Task orders", order_tables(groups))
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    _section(report, "Varied settings", [*setting_tables(groups), *curves.labels(fixed_order)])
    if comparisons:
        _section(report, "Significance", [significance_table(comparisons)])
    if cells_of_paper:
        _section(report, "Agreement with the paper", [Points([*agreed, *orderings]), agreement_table(cells_of_paper)])
    _section(report, query_costs.TITLE, query_costs.cost_blocks(query_times))
    facts = [*([source] if source else []), *provenance.facts(rows)]
    _section(report, "Where these results come from", [Points(facts)])
    if command:
        add(Code("To reproduce all runs", [command]))
    add(provenance.commands("To reproduce single runs" if command else "To reproduce all runs", groups))
    return report


def _setups(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups of each setup that has a section of its own; permuted orders of the tasks have another section."""
    varied = {group for alike, _ in varied_settings(groups) for group in alike}
    setups: dict[object, list[Group]] = {}
    for group in groups:
        if group["order"] != "tasks":
            setups.setdefault(group.setup, []).append(group)
    return [
        setup
        for setup in setups.values()
        if not set(setup) <= varied or len({group.strategy for group in setup}) >= FEW
    ]


def _section(report: Document, title: str, blocks: Sequence[Block]) -> None:
    if blocks:
        report.blocks.extend([Heading(title), *blocks])
