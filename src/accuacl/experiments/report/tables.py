"""Tables of means over seeds: strategies side by side, task orders, varied settings, and all means as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.experiments import Config, is_class_incremental
from accuacl.experiments.report import paper
from accuacl.experiments.report.document import Rank, Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import LEARNER_SETTINGS, SETUP_SETTINGS, Group, grouped, show
from accuacl.experiments.report.measures import MAIN_METRICS, METRICS, MeanStd, mean_std, number, ranks


def mean_cell(value: MeanStd | None, metric: str, rank: Rank = "", seeds: int | None = None) -> TableCell:
    """Return a cell with a mean, its deviation, and the number of seeds if that is not `seeds`."""
    if value is None:
        return TableCell("-")
    digits = METRICS[metric].digits
    small = "" if value.std is None else f"± {number(value.std, digits)}"
    if seeds is not None and value.n != seeds:
        small = f"{small} (n={value.n})".strip()
    return TableCell(number(value.mean, digits), small, rank)


def columns_beside_paper(metric: str, in_paper: bool) -> list[TableColumn]:
    """Return a column for our values of the metric, and one for the paper's if it has any."""
    head = METRICS[metric].head
    if in_paper:
        return [TableColumn("ours", head), TableColumn("paper", head, muted=True)]
    return [TableColumn(head)]


def usual_seeds(groups: Sequence[Group]) -> int:
    """Return how many seeds most of the groups have."""
    counts = [len(group.rows) for group in groups]
    return max(set(counts), key=lambda n: (counts.count(n), n))


def over_seeds(groups: Sequence[Group]) -> str:
    n = usual_seeds(groups)
    text = f"Mean ± standard deviation over n = {n} seeds" if n > 1 else "One seed each (n = 1), so no deviations"
    return f"{text} unless stated" if any(len(group.rows) != n for group in groups) else text


@dataclass(frozen=True)
class Spec:
    """The specification of a table: its strategies and metrics, and the paper's tables with the same comparison.

    strategies: those that it shows, in this order (none: all that have no separate table). needs: the table is shown
    for learners with at least one of these strategies. only: it is shown if these settings have exactly these values.
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
)  # shown if the stream is irregular, or classes are of different sizes
UNEVEN = 1.0  # classes count as uneven if their mean differs by this many points from the mean over examples
SPECIAL = {name for spec in SPECS for name in spec.needs}


def comparison_tables(groups: Sequence[Group], bounds: Sequence[Group] = ()) -> list[Table]:
    """Return the tables that fit one setup; a table is left out if a later, more special one has all of its groups.

    bounds: groups of the same setup, with any memory, that rehearse nothing or train on everything together.
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
    """Return whether common and rare classes have different accuracies, so that the two kinds of mean differ."""
    by_class, by_example = (group.mean_std(metric) for metric in CLASSES.metrics[:2])
    return by_class is not None and by_example is not None and abs(by_class.mean - by_example.mean) > UNEVEN


def _chosen(spec: Spec, groups: Sequence[Group]) -> list[Group]:
    groups = [group for group in groups if all(group[name] == value for name, value in spec.only)]
    if not spec.strategies:
        return [group for group in groups if group["strategy"] not in SPECIAL]
    learners = {group.learner for group in groups if not spec.needs or group["strategy"] in spec.needs}
    chosen = [group for group in groups if group.learner in learners and group["strategy"] in spec.strategies]
    return sorted(chosen, key=lambda group: spec.strategies.index(group["strategy"]))  # the order of variants stays


def _table(spec: Spec, groups: Sequence[Group], bounds: Sequence[Group]) -> Table:
    """Return a table with a row for each strategy, grouped by learner, our values beside the paper's, then bounds."""
    metrics = [metric for metric in spec.metrics if any(group.mean_std(metric) for group in groups)]
    in_paper = {m for m in metrics if any(paper.value(spec.papers, group, m) for group in groups)}
    columns = [column for metric in metrics for column in columns_beside_paper(metric, metric in in_paper)]
    seeds = usual_seeds(groups)

    def cells(group: Group, ranks_of: Mapping[str, Mapping[Group, Rank]]) -> list[TableCell]:
        row = []
        for metric in metrics:
            row.append(mean_cell(group.mean_std(metric), metric, ranks_of[metric].get(group, ""), seeds))
            if metric in in_paper:
                row.append(mean_cell(paper.value(spec.papers, group, metric), metric))
        return row

    row_groups = []
    for learner, mine in grouped(groups, lambda group: group.learner).items():
        ranks_of = {metric: _ranks_of(mine, metric) for metric in metrics}
        rows = [TableRow([group.strategy], cells(group, ranks_of), group["strategy"] == "full") for group in mine]
        row_groups.append(TableGroup(learner, rows))
    if bounds:
        unranked: dict[str, dict[Group, Rank]] = {metric: {} for metric in metrics}
        rows = [
            TableRow([f"{group.bound}: {group.learner}, {group.strategy}"], cells(group, unranked))
            for group in sorted(bounds, key=lambda group: group.bound)
        ]
        title = "bounds" if all("bound" in group.bound for group in bounds) else "bounds, and without a memory"
        row_groups.append(TableGroup(title, rows))
    return Table(f"{spec.title}: {groups[0].title}", ["strategy"], columns, row_groups, _note(spec, groups, metrics))


def _ranks_of(groups: Sequence[Group], metric: str) -> dict[Group, Rank]:
    """Return the best and second best of the groups; `full`, which labels everything, is not ranked."""
    values = [None if group["strategy"] == "full" else group.mean_std(metric) for group in groups]
    return dict(zip(groups, ranks(values, METRICS[metric]), strict=True))


def _note(spec: Spec, groups: Sequence[Group], metrics: Sequence[str]) -> str:
    """Return a note on the number of seeds, the meaning of the metrics, and how the paper's protocol differs."""
    explained = ", ".join(f"{METRICS[metric].short}: {METRICS[metric].name}" for metric in metrics)
    note = f"{over_seeds(groups)}. {explained}. For each learner, the best is bold and the second best underlined."
    if any(group["strategy"] == "full" for group in groups):
        note += " full labels everything and is not ranked."
    note += "".join(f" Paper: {remark}." for remark in paper.remarks(spec.papers, groups, metrics))
    in_paper = any(paper.value(spec.papers, group, metric) for group in groups for metric in metrics)
    return f"{note} {paper.protocol(groups[0])}".strip() if in_paper else note


OWN_ORDER, ALL_PERMUTATIONS = "as they are", "all permutations"
FEW = 3  # up to this many strategies, all metrics fit side by side into one table
SHARES = ("picked_least", "picked_most")
# All rows of a table of varied settings have the same value of each of these.
NOT_VARIED = ("benchmark", "memory", "scale", "tasks", "last_rounds", "evaluate", "classes_per_task")


def order_tables(groups: Sequence[Group]) -> list[Table]:
    """Return a table for each setup whose tasks were permuted: every order, and the mean over all permutations."""
    ordered = [group for group in groups if group["order"] in ("fixed", "tasks")]
    setups = grouped(ordered, lambda group: group.setup_without(paper.ORDER_SETTINGS)).values()
    return [_order_table(alike) for alike in setups if any(group["order"] == "tasks" for group in alike)]


def _order_table(groups: Sequence[Group]) -> Table:
    """Return a table with a row for each order and strategy; strategies are ranked within an order."""
    permuted = [group for group in groups if group["order"] == "tasks"]
    compared = dict.fromkeys((group.learner, group.strategy) for group in permuted)
    groups = [group for group in groups if (group.learner, group.strategy) in compared]
    own = [group for group in groups if group["order"] == "fixed"]
    by_seed = grouped(permuted, lambda group: int(group["order_seed"]))
    orders = {OWN_ORDER: own} if own else {}
    orders |= {f"order {seed}": by_seed[seed] for seed in sorted(by_seed)} | {ALL_PERMUTATIONS: permuted}
    in_paper = any(paper.with_order(group, metric, True) for group in groups for metric in MAIN_METRICS)
    row_groups = []
    for learner, strategies in grouped(compared, lambda names: names[0]).items():
        rows: list[TableRow] = []
        for order, of_order in orders.items():
            same = [[g for g in of_order if (g.learner, g.strategy) == names] for names in strategies]
            cells: list[list[TableCell]] = [[] for _ in same]
            for metric in MAIN_METRICS:
                values = [[value for group in alike for value in group.values(metric).values()] for alike in same]
                means = [mean_std(numbers) if numbers else None for numbers in values]
                seeds = usual_seeds(permuted) * (len(by_seed) if order == ALL_PERMUTATIONS else 1)
                ranked = ranks(means, METRICS[metric])
                for row, alike, mean, rank in zip(cells, same, means, ranked, strict=True):
                    row.append(mean_cell(mean, metric, rank, seeds))
                    if in_paper:
                        known = alike and order in (OWN_ORDER, ALL_PERMUTATIONS)
                        papers = paper.with_order(alike[0], metric, order == ALL_PERMUTATIONS) if known else None
                        row.append(mean_cell(papers, metric))
            rows += [TableRow([order, name], row) for (_, name), row in zip(strategies, cells, strict=True)]
        row_groups.append(TableGroup(learner, rows))
    note = f"{over_seeds(permuted)}; {ALL_PERMUTATIONS}: over all seeds of all of them."
    if in_paper:
        note += " The paper does not say which four permutations it used, so only its mean over them is given. "
        note += paper.protocol(permuted[0])
    title = permuted[0].title_without(paper.ORDER_SETTINGS)
    columns = [column for metric in MAIN_METRICS for column in columns_beside_paper(metric, in_paper)]
    return Table(f"Task orders: {title}", ["order", "strategy"], columns, row_groups, note.strip())


def varied_settings(groups: Sequence[Group]) -> list[tuple[list[Group], list[str]]]:
    """Return sets of groups whose setups differ in few settings, each set with the names of these settings."""
    varying = []
    varied_names = [name for name in SETUP_SETTINGS if name not in (*NOT_VARIED, *paper.ORDER_SETTINGS)]
    fixed_order = [group for group in groups if group["order"] != "tasks"]
    for alike in grouped(fixed_order, lambda group: group.setup_without(varied_names)).values():
        setups = {name: {g.setup for g in of} for name, of in grouped(alike, lambda g: str(g["learner"])).items()}
        varied = [group for group in alike if len(setups[group["learner"]]) > 1]
        if varied:
            names = (*SETUP_SETTINGS, *LEARNER_SETTINGS)
            varying.append((varied, [name for name in names if len({group[name] for group in varied}) > 1]))
    return varying


def setting_tables(groups: Sequence[Group]) -> list[Table]:
    """Return tables of varied settings, with a row for each combination of values and strategies side by side.

    If there are few strategies, both metrics and the class balance are in one table; otherwise each has its own.
    """
    tables = []
    for alike, varied in varied_settings(groups):
        if len({group.strategy for group in alike}) > FEW:
            tables += [_setting_table(alike, varied, [metric]) for metric in MAIN_METRICS]
        else:
            shares = [metric for metric in SHARES if any(group.mean_std(metric) for group in alike)]
            tables.append(_setting_table(alike, varied, [*MAIN_METRICS, *shares]))
    return tables


def _setting_table(groups: Sequence[Group], varied: Sequence[str], metrics: Sequence[str]) -> Table:
    strategies = list(dict.fromkeys(group.strategy for group in sorted(groups, key=lambda g: g["strategy"] == "full")))
    by_learner = grouped(groups, lambda group: str(group["learner"]))
    row_groups = []
    for learner, mine in by_learner.items():
        rows = []
        by_values = grouped(mine, lambda group: tuple(group[name] for name in varied))
        for values in sorted(by_values, key=lambda values: [*map(_sort_key, values)]):
            of_strategy = {group.strategy: group for group in by_values[values]}
            cells = []
            for metric in metrics:
                rank = _ranks_of(list(of_strategy.values()), metric)
                for group in map(of_strategy.get, strategies):
                    mean = group.mean_std(metric) if group else None
                    cells.append(mean_cell(mean, metric, rank[group] if group else "", usual_seeds(groups)))
            rows.append(TableRow([show(value) for value in values], cells))
        row_groups.append(TableGroup(learner if len(by_learner) > 1 else "", rows))
    note = f"{over_seeds(groups)}. In each row, the best is bold and the second best underlined."
    note += " A setting of 0 stands for the default, or for all."
    if set(metrics) & set(SHARES):
        note += " Rarest and commonest class: labels it got, as a multiple of an even share, mean over tasks."
    heads = [name.replace("_", " ") for name in varied]
    names = " and ".join(METRICS[metric].name for metric in metrics[:2])
    caption = f"{names.capitalize()} by {', '.join(heads)}: {groups[0].title_without(varied)}"
    columns = [TableColumn(strategy, METRICS[metric].head) for metric in metrics for strategy in strategies]
    return Table(caption, heads, columns, row_groups, note)


def _sort_key(value: Any) -> tuple[bool, float, str]:
    """Return a sort key that puts numbers in order of size after all text."""
    return (True, value, "") if isinstance(value, int | float) else (False, 0.0, str(value))


PAPERS_TABLES = ("main", "learning-accuracy", "memory-baselines", "scores", "full-past")


def means_csv(groups: Sequence[Group]) -> str:
    """Return a CSV file: all settings but the seed, then metric, mean, std, n, and the paper's mean and std if any."""
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
