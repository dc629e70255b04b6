"""What tables have in common: means in cells, columns beside the paper's, and how many seeds there are."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.report.formats.document import Rank, TableCell, TableColumn
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.metrics import METRICS, MeanStd, number


def mean_cell(value: MeanStd | None, metric: str, rank: Rank = "", seeds: int | None = None) -> TableCell:
    """A mean with its deviation, and the number of seeds if that is not `seeds`."""
    if value is None:
        return TableCell("-")
    digits = METRICS[metric].digits
    small = "" if value.std is None else f"± {number(value.std, digits)}"
    if seeds is not None and value.n != seeds:
        small = f"{small} (n={value.n})".strip()
    return TableCell(number(value.mean, digits), small, rank)


def columns_beside_paper(metric: str, in_paper: bool) -> list[TableColumn]:
    """A column for our values of the metric, and one for the paper's if it has any."""
    head = METRICS[metric].head
    if in_paper:
        return [TableColumn("ours", head), TableColumn("paper", head, muted=True)]
    return [TableColumn(head)]


def usual_seeds(groups: Sequence[Group]) -> int:
    """How many seeds most of the groups have."""
    counts = [len(group.rows) for group in groups]
    return max(set(counts), key=lambda n: (counts.count(n), n))


def over_seeds(n: int) -> str:
    return f"Mean ± standard deviation over n = {n} seeds" if n > 1 else "One seed each (n = 1), so no deviations"
