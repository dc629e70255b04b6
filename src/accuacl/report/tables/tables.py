"""Tables of means over seeds. A table is a filter and a layout; only those that have rows are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from accuacl.report.formats.document import Block, Cell, Column, Line, Mark, Table
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import METRICS, Group, Metric, Stat

MAIN = ("average_accuracy", "forgetting", "learning_accuracy")


@dataclass(frozen=True)
class Spec:
    """Which strategies of a cell a table compares, by which metrics, and where the paper has the same.

    strategies: those it takes, in its order (none: all that no other table is for). needs: only with learners that
    have one of these. where: only cells and learners that are exactly so.
    """

    title: str
    strategies: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    metrics: tuple[str, ...] = MAIN
    tables: tuple[str, ...] = ()
    where: tuple[tuple[str, object], ...] = ()


SPECS = (
    Spec("Average accuracy and forgetting", tables=("main", "learning-accuracy")),
    Spec(
        "Baselines that start from the memory",
        ("kcenter", "kcenter+memory", "badge", "badge+memory", "accuacl"),
        ("kcenter+memory", "badge+memory"),
        tables=("memory-baselines",),
    ),
    Spec(
        "Effect of the two scores",
        ("accuacl-magnitude", "accuacl-distribution", "accuacl"),
        ("accuacl-magnitude", "accuacl-distribution"),
        tables=("scores",),
    ),
    Spec(
        "Knowing all of the past",
        ("uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl", "accuacl-full"),
        ("accuacl-full",),
        tables=("full-past",),
    ),
    Spec(
        "Learning accuracy",
        ("uniform", "entropy", "least-confidence", "kcenter", "badge", "accuacl"),
        metrics=("learning_accuracy", "forgetting", "average_accuracy"),
        tables=("learning-accuracy",),
        where=(("benchmark", "split-cifar100"), ("memory", 500), ("learner", "der++")),
    ),
)
SPECIAL = {name for spec in SPECS for name in spec.needs}


def cell_tables(groups: Sequence[Group]) -> list[Table]:
    """The tables that suit one cell; the first is left out if all of it is in a more special one."""
    found: list[tuple[set[int], Table]] = []
    for spec in SPECS:
        chosen = _chosen(spec, groups)
        if chosen:
            found.append(({id(group) for group in chosen}, _compare(spec, chosen)))
    kept = [not any(ids <= more for more, _ in found[i + 1 :]) for i, (ids, _) in enumerate(found)]
    return [table for (_, table), keep in zip(found, kept, strict=True) if keep]


def marks(values: Sequence[float | None], metric: Metric) -> list[Mark]:
    """Best and second best, ties as they are printed; none where there is nothing to compare.

    >>> marks([1.0, 3.0, 2.0, 3.01, None], METRICS["average_accuracy"])
    ['', 'best', 'second', 'best', '']
    """
    shown = [None if value is None else round(value, metric.digits) for value in values]
    known = [value for value in shown if value is not None]
    if metric.larger is None or len(known) < 2:
        return [""] * len(shown)
    ranking = sorted(set(known), reverse=metric.larger)
    names: dict[float | None, Mark] = {ranking[0]: "best"}
    if len(known) > 2 and len(ranking) > 1:  # the second of two is the last
        names[ranking[1]] = "second"
    return [names.get(value, "") for value in shown]


def number(value: float, digits: int = 1) -> str:
    """
    >>> number(-0.01), number(12.34)
    ('0.0', '12.3')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def cell(found: Stat | None, metric: Metric, mark: Mark = "", seeds: int | None = None) -> Cell:
    """A mean with its deviation, and the number of seeds if it is not `seeds`."""
    if found is None:
        return Cell("-")
    small = "" if found.std is None else f"± {number(found.std, metric.digits)}"
    if seeds is not None and found.n != seeds:
        small = f"{small} (n={found.n})".strip()
    return Cell(number(found.mean, metric.digits), small, mark)


def common(groups: Sequence[Group]) -> int:
    """How many seeds most of the groups have."""
    counts = [len(group.rows) for group in groups]
    return max(set(counts), key=lambda n: (counts.count(n), n))


def over_seeds(n: int) -> str:
    return f"Mean ± standard deviation over n = {n} seeds" if n > 1 else "One seed each (n = 1), so without deviation"


def _chosen(spec: Spec, groups: Sequence[Group]) -> list[Group]:
    there = [group for group in groups if all(group[name] == value for name, value in spec.where)]
    if not spec.strategies:
        return [group for group in there if group["strategy"] not in SPECIAL]
    learners = {group.learner for group in there if not spec.needs or group["strategy"] in spec.needs}
    chosen = [group for group in there if group.learner in learners and group["strategy"] in spec.strategies]
    return sorted(chosen, key=lambda group: spec.strategies.index(group["strategy"]))  # stable: variants stay together


def _compare(spec: Spec, groups: Sequence[Group]) -> Table:
    """Strategies below each other in a block a learner; ours and the paper's side by side."""
    seeds = common(groups)
    names = [name for name in spec.metrics if any(group.stat(name) for group in groups)]
    theirs = {name: [paper.value(spec.tables, group, name) for group in groups] for name in names}
    columns = []
    for name in names:
        metric = METRICS[name]
        if any(theirs[name]):
            columns += [Column("ours", metric.head), Column("paper", metric.head, muted=True)]
        else:
            columns.append(Column(metric.head))
    blocks = []
    for learner in dict.fromkeys(group.learner for group in groups):
        block = [(i, group) for i, group in enumerate(groups) if group.learner == learner]
        cells: list[list[Cell]] = [[] for _ in block]
        for name in names:
            metric = METRICS[name]
            for row, (i, group), mark in zip(cells, block, _marks([g for _, g in block], name), strict=True):
                row.append(cell(group.stat(name), metric, mark, seeds))
                if any(theirs[name]):
                    row.append(cell(theirs[name][i], metric))
        lines = [Line([g.strategy], row, g["strategy"] == "full") for (_, g), row in zip(block, cells, strict=True)]
        blocks.append(Block(learner, lines))
    explained = ", ".join(f"{METRICS[name].short}: {METRICS[name].name}" for name in names)
    note = f"{over_seeds(seeds)}{' unless said' if any(len(g.rows) != seeds for g in groups) else ''}. {explained}."
    if any(cell.mark for block in blocks for line in block.lines for cell in line.cells):
        note += " Best in bold, second underlined, by learner."
    if any(group["strategy"] == "full" for group in groups):
        note += " full labels everything and does not compete."
    differs = paper.protocol(groups[0]) if any(any(values) for values in theirs.values()) else ""
    note += "".join(f" Paper: {remark}." for remark in paper.remarks(spec.tables, groups, names))
    return Table(f"{spec.title}: {groups[0].title}", ["strategy"], columns, blocks, f"{note} {differs}".strip())


def _marks(groups: Sequence[Group], metric: str) -> list[Mark]:
    stats = [None if group["strategy"] == "full" else group.stat(metric) for group in groups]
    return marks([None if found is None else found.mean for found in stats], METRICS[metric])
