"""Tables of means over seeds: strategies side by side, task orders, varied settings, and all means as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.experiments import Config, is_class_incremental
from accuacl.experiments.report import paper
from accuacl.experiments.report.document import Rank, Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import (
    LEARNER_SETTINGS,
    MAIN_METRICS,
    METRICS,
    SETUP_SETTINGS,
    Group,
    MeanStd,
    mean_std,
    number,
    ranks,
    show,
)


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


@dataclass(frozen=True)
class Spec:
    """Which strategies of a setup a table compares, by which metrics, and which of the paper's tables have the same.

    strategies: those that it shows, in its order (none: all without a separate table). needs: it is shown for
    learners with at least one of these strategies. only: it is shown where these settings have exactly these values.
    """

    title: str
    strategies: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ("average_accuracy", "forgetting", "learning_accuracy")
    papers: tuple[str, ...] = ()
    only: tuple[tuple[str, object], ...] = ()


SPECS = (
    Spec("Average accuracy and forgetting", papers=("main", "learning-accuracy")),
    Spec(
        "Baselines that start from the memory",
        ("kcenter", "kcenter+memory", "badge", "badge+memory", "accuacl"),
        ("kcenter+memory", "badge+memory"),
        papers=("memory-baselines",),
    ),
    Spec(
        "Effect of the two scores",
        ("accuacl-magnitude", "accuacl-distribution", "accuacl"),
        ("accuacl-magnitude", "accuacl-distribution"),
        papers=("scores",),
    ),
    Spec(
        "Knowing all of the past",
        ("uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl", "accuacl-full"),
        ("accuacl-full",),
        papers=("full-past",),
    ),
    Spec(
        "Learning accuracy",
        ("uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl"),
        metrics=("learning_accuracy", "forgetting", "average_accuracy"),
        papers=("learning-accuracy",),
        only=(("benchmark", "split-cifar100"), ("memory", 500), ("learner", "der++")),
    ),
)
CLASSES = Spec(
    "By class",
    metrics=("class_accuracy", "example_accuracy", "class_forgetting", "found_mean", "rarest_end"),
)  # where the stream is irregular, or classes are of different sizes
UNEVEN = 1.0  # points between the mean over classes and the mean over examples
SPECIAL = {name for spec in SPECS for name in spec.needs}


def comparison_tables(groups: Sequence[Group], bounds: Sequence[Group] = ()) -> list[Table]:
    """The tables that fit one setup; a table is left out if a later, more special one has all of its groups.

    bounds: runs of the same setup that rehearse nothing, or train on everything together, whatever the memory.
    """
    chosen = [(spec, _chosen(spec, groups)) for spec in SPECS]
    tables = [
        _table(spec, mine, () if spec.strategies else bounds)
        for i, (spec, mine) in enumerate(chosen)
        if mine and not any(set(mine) <= set(more) for _, more in chosen[i + 1 :])
    ]
    known = any(group.mean_std(CLASSES.metrics[0]) for group in groups)
    if known and (not is_class_incremental(groups[0].rows[0]) or any(_is_uneven(group) for group in groups)):
        tables.append(_table(CLASSES, groups, bounds))
    return tables


def _is_uneven(group: Group) -> bool:
    """Whether common classes fare otherwise than rare ones, so that it matters what a mean is over."""
    by_class, by_example = (group.mean_std(metric) for metric in CLASSES.metrics[:2])
    return by_class is not None and by_example is not None and abs(by_class.mean - by_example.mean) > UNEVEN


def _chosen(spec: Spec, groups: Sequence[Group]) -> list[Group]:
    groups = [group for group in groups if all(group[name] == value for name, value in spec.only)]
    if not spec.strategies:
        return [group for group in groups if group["strategy"] not in SPECIAL]
    learners = {group.learner for group in groups if not spec.needs or group["strategy"] in spec.needs}
    chosen = [group for group in groups if group.learner in learners and group["strategy"] in spec.strategies]
    return sorted(chosen, key=lambda group: spec.strategies.index(group["strategy"]))  # stable: variants stay together


def _table(spec: Spec, groups: Sequence[Group], bounds: Sequence[Group]) -> Table:
    """A row for each strategy, grouped by learner; ours and the paper's side by side; then the bounds."""
    metrics = [metric for metric in spec.metrics if any(group.mean_std(metric) for group in groups)]
    in_paper = {m for m in metrics if any(paper.value(spec.papers, group, m) for group in groups)}
    columns = [column for metric in metrics for column in columns_beside_paper(metric, metric in in_paper)]
    row_groups = []
    for learner in dict.fromkeys(group.learner for group in groups):
        mine = [group for group in groups if group.learner == learner]
        row_groups.append(TableGroup(learner, _rows(spec, mine, metrics, in_paper, usual_seeds(groups))))
    if bounds:
        rows = [
            TableRow([f"{group.bound}: {group.learner}, {group.strategy}"], _bound_cells(group, metrics, in_paper))
            for group in sorted(bounds, key=lambda group: group.bound)
        ]
        title = "bounds" if all("bound" in group.bound for group in bounds) else "bounds, and without a memory"
        row_groups.append(TableGroup(title, rows))
    note = _note(spec, groups, metrics, any(c.rank for part in row_groups for row in part.rows for c in row.cells))
    if in_paper:
        note = f"{note} {paper.protocol(groups[0])}".strip()
    return Table(f"{spec.title}: {groups[0].title}", ["strategy"], columns, row_groups, note)


def _rows(
    spec: Spec, groups: Sequence[Group], metrics: Sequence[str], in_paper: set[str], seeds: int
) -> list[TableRow]:
    """The rows of one learner's strategies, ranked by each metric; full is not ranked."""
    rows: list[list[TableCell]] = [[] for _ in groups]
    for metric in metrics:
        ranked = ranks([None if g["strategy"] == "full" else g.mean_std(metric) for g in groups], METRICS[metric])
        for row, group, rank in zip(rows, groups, ranked, strict=True):
            row.append(mean_cell(group.mean_std(metric), metric, rank, seeds))
            if metric in in_paper:
                row.append(mean_cell(paper.value(spec.papers, group, metric), metric))
    return [TableRow([g.strategy], row, g["strategy"] == "full") for g, row in zip(groups, rows, strict=True)]


def _bound_cells(group: Group, metrics: Sequence[str], in_paper: set[str]) -> list[TableCell]:
    cells = []
    for metric in metrics:
        cells += [mean_cell(group.mean_std(metric), metric), *([TableCell("")] if metric in in_paper else [])]
    return cells


def _note(spec: Spec, groups: Sequence[Group], metrics: Sequence[str], ranked: bool) -> str:
    seeds = usual_seeds(groups)
    explained = ", ".join(f"{METRICS[metric].short}: {METRICS[metric].name}" for metric in metrics)
    unless = " unless stated" if any(len(group.rows) != seeds for group in groups) else ""
    note = f"{over_seeds(seeds)}{unless}. {explained}."
    if ranked:
        note += " For each learner, the best is bold and the second best underlined."
    if any(group["strategy"] == "full" for group in groups):
        note += " full labels everything and is not ranked."
    return note + "".join(f" Paper: {remark}." for remark in paper.remarks(spec.papers, groups, metrics))


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
    varying = []
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    for alike in _alike(fixed_order, [name for name in SETUP_SETTINGS if name not in NOT_VARIED]):
        setups: dict[str, set[object]] = {}
        for group in alike:
            setups.setdefault(group["learner"], set()).add(group.setup)
        varied = [group for group in alike if len(setups[group["learner"]]) > 1]
        if varied:
            names = (*SETUP_SETTINGS, *LEARNER_SETTINGS)
            varying.append((varied, [name for name in names if len({group[name] for group in varied}) > 1]))
    return varying


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
    by_setup: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        by_setup.setdefault(tuple(group[name] for name in SETUP_SETTINGS if name not in ignored), []).append(group)
    return list(by_setup.values())


def _sort_key(value: Any) -> tuple[bool, float, str]:
    """Numbers by size, after all that is text."""
    return (True, value, "") if isinstance(value, int | float) else (False, 0.0, str(value))


PAPERS_TABLES = ("main", "learning-accuracy", "memory-baselines", "scores", "full-past")


def means_csv(groups: Sequence[Group]) -> str:
    """All settings but the seed, then metric, mean, std, n, and the paper's mean and std where it has them."""
    settings = [name for name in Config.model_fields if name != "seed"]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*settings, "metric", "mean", "std", "n", "paper_mean", "paper_std"])
    for group in groups:
        values = [group[name] for name in settings]
        for metric in METRICS:
            ours, papers = group.mean_std(metric), paper.value(PAPERS_TABLES, group, metric)
            if ours:
                of_paper = [papers.mean, papers.std] if papers else [None, None]
                writer.writerow([*values, metric, ours.mean, ours.std, ours.n, *of_paper])
    return text.getvalue()
