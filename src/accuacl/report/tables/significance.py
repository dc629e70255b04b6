"""The table of differences between AccuACL and the other strategies, with their p-values."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.report.formats.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.report.statistics.metrics import MAIN_METRICS, METRICS, number
from accuacl.report.statistics.significance import EXACT_PAIRS, FLIPS, LEVEL, Comparison, Opponent

NOTE = (
    "Differences in points, paired by seed within each cell (the same benchmark, memory, learner and other settings); "
    "runs with identical accuracies count once. Pairs that share a seed are treated as independent. Two-sided p from a "
    f"sign-flip test: all flips for up to {EXACT_PAIRS} pairs, {FLIPS:,} random flips for more; not corrected for the "
    "number of comparisons. With n pairs p is at least 2 / 2^n, so five pairs or fewer never reach 0.05. Bold: better "
    f"with p < {LEVEL}, from at least two seeds."
)


def significance_table(comparisons: Sequence[Comparison]) -> Table:
    """A group of rows for each comparison, a row for each opponent."""
    columns = []
    for metric in MAIN_METRICS:
        columns += [TableColumn("difference", METRICS[metric].short), TableColumn("p", METRICS[metric].short)]
    columns += [TableColumn("pairs"), TableColumn("cells")]
    row_groups = [TableGroup(_title(comparison), list(map(_row, comparison.opponents))) for comparison in comparisons]
    cut = any(comparison.cut for comparison in comparisons)
    note = f"{NOTE}{' Runs that stop early or go on longer than usual are left out.' if cut else ''}"
    return Table("Significance of the differences", ["strategy"], columns, row_groups, note, grouped_by="difference")


def p_value(p: float) -> str:
    """
    >>> p_value(0.125), p_value(0.03125), p_value(0.00001)
    ('0.125', '0.031', '< 0.001')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)


def _title(comparison: Comparison) -> str:
    scale = f" at {comparison.scale} scale" if comparison.scale else ""
    return f"{comparison.ours}{scale}{', all settings pooled,' if comparison.pooled else ''} minus"


def _row(opponent: Opponent) -> TableRow:
    cells = []
    for test in opponent.tests.values():
        mean = f"{round(test.mean, 2) + 0.0:+.2f}"
        cells += [TableCell(mean, rank="best" if test.verdict == "better" else ""), TableCell(p_value(test.p))]
    return TableRow([opponent.strategy], [*cells, TableCell(str(opponent.pairs)), TableCell(str(opponent.cells))])
