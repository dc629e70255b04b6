"""The paper's own figures, and how its protocol differs from that of our runs."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources

from accuacl.experiments.report.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import (
    NEUTRAL_SETTINGS,
    SETUP_SETTINGS,
    Cell,
    Group,
    defaults,
    describe,
    has_default_settings,
    show,
    with_scale,
)
from accuacl.experiments.report.metrics import MAIN_METRICS, METRICS, MeanStd, number, ranks

Key = tuple[str, str, int, str, str, str]  # table, benchmark, memory, learner, strategy, metric
BENCHMARKS = ("split-cifar10", "split-cifar100", "split-tiny-imagenet")
ORDER_SETTINGS = ("order", "order_seed")
SEEDS = 3  # of each of the paper's values


@cache
def figures() -> dict[Key, dict[str, MeanStd]]:
    """All values by the key above, then by note; only the table of task orders has more than one for a key."""
    values: dict[Key, dict[str, MeanStd]] = {}
    text = resources.files("accuacl.experiments.report").joinpath("paper.csv").read_text()
    for line in csv.DictReader(text.splitlines()):
        if line["mean"]:
            where = line["table"], line["benchmark"], int(line["memory"])
            key = (*where, line["learner"], line["strategy"], line["metric"])
            std = float(line["std"]) if line["std"] else None
            values.setdefault(key, {})[line["note"]] = MeanStd(float(line["mean"]), std, SEEDS)
    return values


def value(tables: Sequence[str], group: Group, metric: str) -> MeanStd | None:
    """The paper's value from the first of these tables that has it; None for runs that do not have the defaults."""
    if not has_default_settings(group):
        return None
    by_note = [figures().get(_key(table, group, metric), {}) for table in tables]
    return next((next(iter(values.values())) for values in by_note if values), None)


def remarks(tables: Sequence[str], groups: Sequence[Group], metrics: Sequence[str]) -> list[str]:
    """The notes on the paper's values for these groups; of two notes that begin alike, the longer one."""
    notes = {
        note
        for table in tables
        for group in groups
        for metric in metrics
        if has_default_settings(group)
        for note in figures().get(_key(table, group, metric), {})
        if note
    }
    return sorted(note for note in notes if not any(other.startswith(f"{note}:") for other in notes))


def with_order(group: Group, metric: str, permuted: bool) -> MeanStd | None:
    """The paper's value with the tasks as they are, or its mean over four permutations; it does not say which."""
    if not has_default_settings(group, ignored=ORDER_SETTINGS):
        return None
    by_note = figures().get(_key("task-order", group, metric), {})
    if not permuted:
        return by_note.get("sequential")
    means = [of_order.mean for note, of_order in by_note.items() if note.startswith("perm")]
    return MeanStd(sum(means) / len(means), None, len(means)) if means else None


def main_cells(metric: str) -> dict[tuple[str, int, str], dict[str, float]]:
    """The main table: the mean of each strategy by benchmark, memory and learner."""
    cells: dict[tuple[str, int, str], dict[str, float]] = {}
    for (table, benchmark, memory, learner, strategy, name), by_note in figures().items():
        if table == "main" and name == metric:
            cells.setdefault((benchmark, memory, learner), {})[strategy] = next(iter(by_note.values())).mean
    return cells


def protocol(group: Group) -> str:
    """Which of the runs' settings are not the paper's, as a sentence; empty where all are."""
    if group["benchmark"] not in BENCHMARKS:
        return ""
    papers = defaults(group["benchmark"], "paper")
    differing = [
        f"{name.replace('_', ' ')} {show(group[name])} (paper: {show(papers[name])})"
        for name in SETUP_SETTINGS
        if name not in (*NEUTRAL_SETTINGS, *ORDER_SETTINGS, "tasks") and group[name] != papers[name]
    ]
    if group["tasks"]:
        differing.insert(0, f"only the {describe('tasks', group['tasks'])}")
    return f"Not the paper's protocol: {', '.join(differing)}." if differing else ""


def _key(table: str, group: Group, metric: str) -> Key:
    return table, group["benchmark"], group["memory"], group.learner, group.strategy, metric


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's rank correlation (tau-b): 1 the same order, -1 the opposite; None where one of them has no order.

    >>> kendall([1, 2, 3], [3, 2, 1])
    -1.0
    """
    from scipy.stats import kendalltau

    tau = float(kendalltau(x, y).statistic)
    return None if math.isnan(tau) else tau


def cells_of_paper(groups: Sequence[Group]) -> list[list[Group]]:
    """The groups of each cell in which the paper has values for at least two of our strategies."""
    cells: dict[Cell, list[Group]] = {}
    for group in groups:
        if group["strategy"] != "full" and value(("main",), group, "average_accuracy"):
            cells.setdefault(group.cell, []).append(group)
    return [strategies for strategies in cells.values() if len(strategies) > 1]


class Ordering:
    """The strategies of one cell by one metric, ours and the paper's; best: those with the best mean, ties included."""

    def __init__(self, groups: Sequence[Group], metric: str) -> None:
        self.ours = [group.mean_std(metric) for group in groups]
        self.papers = [value(("main",), group, metric) for group in groups]
        self.best = _best(groups, self.ours, metric)
        self.papers_best = _best(groups, self.papers, metric)

    @property
    def agrees(self) -> bool:
        """Whether a strategy that is best here is best in the paper too."""
        return bool(set(self.best) & set(self.papers_best))

    @property
    def tau(self) -> float | None:
        """Kendall's tau; None for fewer than three strategies."""
        both = [(a.mean, b.mean) for a, b in zip(self.ours, self.papers, strict=True) if a and b]
        return kendall([a for a, _ in both], [b for _, b in both]) if len(both) > 2 else None


def names(groups: Sequence[Group]) -> str:
    return ", ".join(group.strategy for group in groups) or "-"


def sentences(cells: Sequence[Sequence[Group]]) -> tuple[list[str], list[str]]:
    """How often the best strategy is the paper's, by scale and metric; and where it is, and where it is not."""
    scales = list(dict.fromkeys(str(groups[0]["scale"]) for groups in cells))
    counts, details = [], []
    for scale in scales:
        for metric in MAIN_METRICS:
            count, more = _sentences([groups for groups in cells if groups[0]["scale"] == scale], metric)
            counts.append(with_scale(count, scale if len(scales) > 1 else ""))
            details += more
    return counts, details


def _sentences(cells: Sequence[Sequence[Group]], metric: str) -> tuple[str, list[str]]:
    agreeing: dict[str, list[str]] = {}  # learners by setup
    differing = []
    name = METRICS[metric].plain_name
    for groups in cells:
        ordering, title, learner = Ordering(groups, metric), groups[0].title, groups[0].learner
        if ordering.agrees:
            agreeing.setdefault(title, []).append(learner)
        elif ordering.best and ordering.papers_best:
            best, papers_best = ordering.best, ordering.papers_best
            differing.append(
                f"In {title} with {learner}, {names(best)} is best in {name} ({best[0].mean_std(metric)}), "
                f"in the paper {names(papers_best)} (here {papers_best[0].mean_std(metric) or '-'})."
            )
    count = sum(len(learners) for learners in agreeing.values())
    total = count + len(differing)
    sentence = f"The best strategy in {name} is the paper's best in {count} of {total} cell{'s' * (total != 1)}."
    where = "; ".join(f"{title} with {', '.join(learners)}" for title, learners in agreeing.items())
    return sentence, ([f"The paper's best in {name} is best here too in {where}."] if where else []) + differing


def _best(groups: Sequence[Group], values: Sequence[MeanStd | None], metric: str) -> list[Group]:
    return [group for group, rank in zip(groups, ranks(values, METRICS[metric]), strict=True) if rank == "best"]


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
