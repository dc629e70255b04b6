"""The table of orderings: which strategy is best, here and in the paper, and how far the orderings agree."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.report.formats.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.report.statistics.agreement import Ordering, names
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.metrics import MAIN_METRICS, number

NOTE = (
    "Compared are the strategies that both have, without full. Kendall's tau is given for three strategies or more: 1 "
    "if the order of their means is the paper's, -1 if it is the opposite, about 0 if they are unrelated. Bold: best "
    "in the paper too."
)


def agreement_table(cells: Sequence[Sequence[Group]]) -> Table:
    """A row for each of these cells."""
    columns = [
        TableColumn("ours", "best by A", text=True),
        TableColumn("paper", "best by A", muted=True, text=True),
        TableColumn("ours", "best by F", text=True),
        TableColumn("paper", "best by F", muted=True, text=True),
        TableColumn("A", "Kendall's tau"),
        TableColumn("F", "Kendall's tau"),
        TableColumn("strategies"),
    ]
    titles = dict.fromkeys(groups[0].title for groups in cells)
    row_groups = [TableGroup(title, [_row(groups) for groups in cells if groups[0].title == title]) for title in titles]
    caption = "Order of the strategies, here and in the paper"
    return Table(caption, ["learner"], columns, row_groups, NOTE, grouped_by="setup")


def _row(groups: Sequence[Group]) -> TableRow:
    cells, taus = [], []
    for ordering in (Ordering(groups, metric) for metric in MAIN_METRICS):
        cells.append(TableCell(names(ordering.best), rank="best" if ordering.agrees else ""))
        cells.append(TableCell(names(ordering.papers_best)))
        taus.append(TableCell("-" if ordering.tau is None else number(ordering.tau, 2)))
    return TableRow([groups[0].learner], [*cells, *taus, TableCell(str(len(groups)))])
