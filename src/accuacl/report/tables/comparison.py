"""Strategies compared in one setup. A table is a choice of strategies and metrics; only those with runs are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accuacl.experiment import is_tidy
from accuacl.report.formats.document import Table, TableCell, TableGroup, TableRow
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import Group
from accuacl.report.statistics.metrics import METRICS, ranks
from accuacl.report.tables.cells import columns_beside_paper, mean_cell, over_seeds, usual_seeds


@dataclass(frozen=True)
class Spec:
    """Which strategies of a setup a table compares, by which metrics, and which of the paper's tables have the same.

    strategies: those that it shows, in its order (none: all that have no table of their own). needs: it is shown for
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
)  # where the stream is not tidy, or classes are not alike
UNEVEN = 1.0  # points between the mean over classes and the mean over examples
SPECIAL = {name for spec in SPECS for name in spec.needs}


def comparison_tables(groups: Sequence[Group]) -> list[Table]:
    """The tables that fit one setup; a table is left out if a later, more special one has all of its groups."""
    chosen = [(spec, _chosen(spec, groups)) for spec in SPECS]
    tables = [
        _table(spec, mine)
        for i, (spec, mine) in enumerate(chosen)
        if mine and not any(set(mine) <= set(more) for _, more in chosen[i + 1 :])
    ]
    known = any(group.mean_std(CLASSES.metrics[0]) for group in groups)
    if known and (not is_tidy(groups[0].rows[0]) or any(_is_uneven(group) for group in groups)):
        tables.append(_table(CLASSES, groups))
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


def _table(spec: Spec, groups: Sequence[Group]) -> Table:
    """A row for each strategy, grouped by learner; ours and the paper's side by side."""
    metrics = [metric for metric in spec.metrics if any(group.mean_std(metric) for group in groups)]
    in_paper = {m for m in metrics if any(paper.value(spec.papers, group, m) for group in groups)}
    columns = [column for metric in metrics for column in columns_beside_paper(metric, metric in in_paper)]
    row_groups = []
    for learner in dict.fromkeys(group.learner for group in groups):
        mine = [group for group in groups if group.learner == learner]
        row_groups.append(TableGroup(learner, _rows(spec, mine, metrics, in_paper, usual_seeds(groups))))
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
