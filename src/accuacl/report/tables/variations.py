"""Tables across setups: task orders, and settings that were varied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accuacl.report.formats.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.metrics import MAIN_METRICS, METRICS, MeanStd, mean_std, ranks
from accuacl.report.statistics.settings import LEARNER_SETTINGS, SETUP_SETTINGS, show
from accuacl.report.tables.cells import columns_beside_paper, mean_cell, over_seeds, usual_seeds

OWN_ORDER, ALL_PERMUTATIONS = "as they are", "all permutations"
FEW = 3  # strategies for which all metrics fit side by side into one table
SHARES = ("picked_least", "picked_most")
# A table of varied settings is about one value of each of these.
NOT_VARIED = (
    "benchmark",
    "memory",
    "scale",
    "tasks",
    "last_rounds",
    "evaluate",
    "classes_per_task",
    *paper.ORDER_SETTINGS,
)


def order_tables(groups: Sequence[Group]) -> list[Table]:
    """A table for each setup whose tasks were permuted: every order, and the mean over all permutations."""
    ordered = [group for group in groups if group["order"] in ("fixed", "tasks")]
    return [
        _order_table(alike)
        for alike in _alike(ordered, paper.ORDER_SETTINGS)
        if any(group["order"] == "tasks" for group in alike)
    ]


def _order_table(groups: Sequence[Group]) -> Table:
    """A row for each order and strategy; strategies are ranked within an order."""
    permuted = [group for group in groups if group["order"] == "tasks"]
    compared = dict.fromkeys((group.learner, group.strategy) for group in permuted)
    groups = [group for group in groups if (group.learner, group.strategy) in compared]
    seeds, order_seeds = usual_seeds(permuted), sorted({group["order_seed"] for group in permuted})
    orders: list[tuple[str, int | None]] = [(f"order {seed}", seed) for seed in order_seeds]
    orders.append((ALL_PERMUTATIONS, None))
    if any(group["order"] == "fixed" for group in groups):
        orders.insert(0, (OWN_ORDER, None))
    in_paper = any(paper.with_order(group, metric, True) for group in groups for metric in MAIN_METRICS)
    row_groups = []
    for learner in dict.fromkeys(learner for learner, _ in compared):
        by_strategy = {
            strategy: [group for group in groups if (group.learner, group.strategy) == (learner, strategy)]
            for other, strategy in compared
            if other == learner
        }
        rows = []
        for order, order_seed in orders:
            cells: dict[str, list[TableCell]] = {strategy: [] for strategy in by_strategy}
            for metric in MAIN_METRICS:
                means = [_mean_in_order(same, order, order_seed, metric) for same in by_strategy.values()]
                expected = seeds * len(order_seeds) if order == ALL_PERMUTATIONS else seeds
                ranked = zip(by_strategy.items(), means, ranks(means, METRICS[metric]), strict=True)
                for (strategy, same), mean, rank in ranked:
                    cells[strategy].append(mean_cell(mean, metric, rank, expected))
                    if in_paper:
                        known = order in (OWN_ORDER, ALL_PERMUTATIONS)
                        papers = paper.with_order(same[0], metric, order == ALL_PERMUTATIONS) if known else None
                        cells[strategy].append(mean_cell(papers, metric))
            rows += [TableRow([order, strategy], row) for strategy, row in cells.items()]
        row_groups.append(TableGroup(learner, rows))
    note = f"{over_seeds(seeds)} unless stated; {ALL_PERMUTATIONS}: over all seeds of all of them."
    if in_paper:
        note += " The paper does not say which four permutations it used, so only its mean over them is given. "
        note += paper.protocol(permuted[0])
    title = permuted[0].title_without(paper.ORDER_SETTINGS)
    columns = [column for metric in MAIN_METRICS for column in columns_beside_paper(metric, in_paper)]
    return Table(f"Task orders: {title}", ["order", "strategy"], columns, row_groups, note.strip())


def _mean_in_order(groups: Sequence[Group], order: str, order_seed: int | None, metric: str) -> MeanStd | None:
    values = [
        value
        for group in groups
        if (group["order"] == "fixed") == (order == OWN_ORDER) and order_seed in (None, group["order_seed"])
        for value in group.values(metric).values()
    ]
    return mean_std(values) if values else None


def varied_settings(groups: Sequence[Group]) -> list[tuple[list[Group], list[str]]]:
    """Groups whose setups differ in some settings only, with the names of these settings."""
    found = []
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    for alike in _alike(fixed_order, [name for name in SETUP_SETTINGS if name not in NOT_VARIED]):
        setups: dict[str, set[object]] = {}
        for group in alike:
            setups.setdefault(group["learner"], set()).add(group.setup)
        varied = [group for group in alike if len(setups[group["learner"]]) > 1]
        if varied:
            names = (*SETUP_SETTINGS, *LEARNER_SETTINGS)
            found.append((varied, [name for name in names if len({group[name] for group in varied}) > 1]))
    return found


def setting_tables(groups: Sequence[Group]) -> list[Table]:
    """What changes with the settings that were varied: a row for each combination, strategies side by side."""
    return [table for alike, varied in varied_settings(groups) for table in _setting_tables(alike, varied)]


def _setting_tables(groups: Sequence[Group], varied: Sequence[str]) -> list[Table]:
    seeds = usual_seeds(groups)
    heads = [name.replace("_", " ") for name in varied]
    strategies = list(dict.fromkeys(group.strategy for group in sorted(groups, key=lambda g: g["strategy"] == "full")))
    metrics = list(MAIN_METRICS)
    if len(strategies) <= FEW:
        metrics += [metric for metric in SHARES if any(group.mean_std(metric) for group in groups)]
    learners = list(dict.fromkeys(group["learner"] for group in groups))
    tables = []
    for shown in [metrics] if len(strategies) <= FEW else [[metric] for metric in metrics]:
        columns = [TableColumn(strategy, METRICS[metric].head) for metric in shown for strategy in strategies]
        row_groups = []
        for learner in learners:
            by_values: dict[tuple[Any, ...], dict[str, Group]] = {}
            for group in (group for group in groups if group["learner"] == learner):
                by_values.setdefault(tuple(group[name] for name in varied), {})[group.strategy] = group
            rows = [
                TableRow([show(value) for value in values], _cells(by_strategy, strategies, shown, seeds))
                for values, by_strategy in sorted(by_values.items(), key=lambda item: [*map(_sort_key, item[0])])
            ]
            row_groups.append(TableGroup(str(learner) if len(learners) > 1 else "", rows))
        names = " and ".join(METRICS[metric].name for metric in shown[:2])
        note = f"{over_seeds(seeds)} unless stated. In each row, the best is bold and the second best underlined."
        note += " A setting of 0 stands for the default, or for all."
        if set(shown) & set(SHARES):
            note += " Rarest and commonest class: labels it got, as a multiple of an even share, mean over tasks."
        caption = f"{names.capitalize()} by {', '.join(heads)}: {groups[0].title_without(varied)}"
        tables.append(Table(caption, heads, columns, row_groups, note))
    return tables


def _cells(
    by_strategy: dict[str, Group], strategies: Sequence[str], metrics: Sequence[str], seeds: int
) -> list[TableCell]:
    cells = []
    for metric in metrics:
        means = [by_strategy[name].mean_std(metric) if name in by_strategy else None for name in strategies]
        competing = [None if name == "full" else mean for name, mean in zip(strategies, means, strict=True)]
        ranked = ranks(competing, METRICS[metric])
        cells += [mean_cell(mean, metric, rank, seeds) for mean, rank in zip(means, ranked, strict=True)]
    return cells


def _alike(groups: Sequence[Group], ignored: Sequence[str]) -> list[list[Group]]:
    """Groups together whose setups differ in the ignored settings only."""
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        found.setdefault(tuple(group[name] for name in SETUP_SETTINGS if name not in ignored), []).append(group)
    return list(found.values())


def _sort_key(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, after all that is text."""
    return (True, value, "") if isinstance(value, int | float) else (False, 0.0, str(value))
