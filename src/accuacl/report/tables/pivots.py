"""Tables across cells: other orders of the tasks, and settings that were varied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accuacl.report.formats.document import Block, Cell, Column, Line, Table
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import METRICS, OF_CELL, OF_LEARNER, TWO, Group, Stat, show, stat
from accuacl.report.tables.tables import cell, common, marks, over_seeds

FIXED, ALL = "as they are", "all permutations"
FEW = 3  # strategies that fit side by side for every metric in one table
SHARES = ("picked_least", "picked_most")
# What a table of varied settings is about; these are not compared in it.
KEPT = ("benchmark", "memory", "scale", "tasks", "last_rounds", "evaluate", "classes_per_task", "order", "order_seed")


def order_tables(groups: Sequence[Group]) -> list[Table]:
    """Strategies with their tasks permuted, each order beside the others, and over all of them."""
    tables = []
    for alike in _alike([group for group in groups if group["order"] in ("fixed", "tasks")], ("order", "order_seed")):
        if any(group["order"] == "tasks" for group in alike):
            tables.append(_orders(alike))
    return tables


def _orders(groups: Sequence[Group]) -> Table:
    """A row for each order and strategy; marks are among the strategies of an order."""
    permuted = [group for group in groups if group["order"] == "tasks"]
    names = dict.fromkeys((group.learner, group.strategy) for group in permuted)
    groups = [group for group in groups if (group.learner, group.strategy) in names]
    seeds, orders = common(permuted), sorted({group["order_seed"] for group in permuted})
    places: list[tuple[str, Any]] = [(f"order {order}", order) for order in orders] + [(ALL, None)]
    if any(group["order"] == "fixed" for group in groups):
        places.insert(0, (FIXED, None))
    theirs = any(paper.of_order(group, metric, True) for group in groups for metric in TWO)
    columns = []
    for metric in TWO:
        head = METRICS[metric].head
        columns += [Column("ours", head), Column("paper", head, muted=True)] if theirs else [Column(head)]
    blocks = []
    for learner in dict.fromkeys(learner for learner, _ in names):
        strategies = [strategy for one, strategy in names if one == learner]
        alike = [[g for g in groups if (g.learner, g.strategy) == (learner, strategy)] for strategy in strategies]
        lines = []
        for place, order in places:
            rows: list[list[Cell]] = [[] for _ in strategies]
            for metric in TWO:
                found = [_of_order(some, place, order, metric) for some in alike]
                best = marks([None if one is None else one.mean for one in found], METRICS[metric])
                for row, some, one, mark in zip(rows, alike, found, best, strict=True):
                    row.append(cell(one, METRICS[metric], mark, seeds * len(orders) if place == ALL else seeds))
                    if theirs:
                        known = paper.of_order(some[0], metric, place == ALL) if place in (FIXED, ALL) else None
                        row.append(cell(known, METRICS[metric]))
            lines += [Line([place, s], row) for s, row in zip(strategies, rows, strict=True)]
        blocks.append(Block(learner, lines))
    note = f"{over_seeds(seeds)} unless said; {ALL}: over all seeds of all of them."
    if theirs:
        note += " Which four permutations the paper had is not known, so its mean over them stands there. "
        note += paper.protocol(permuted[0])
    where = permuted[0].where(without=("order", "order_seed"))
    return Table(f"Other orders of the tasks: {where}", ["order", "strategy"], columns, blocks, note.strip())


def _of_order(groups: Sequence[Group], place: str, order: Any, metric: str) -> Stat | None:
    chosen = [g for g in groups if (g["order"] == "fixed") == (place == FIXED) and order in (None, g["order_seed"])]
    values = [value for group in chosen for value in group.values(metric).values()]
    return stat(values) if values else None


def varied_settings(groups: Sequence[Group]) -> list[tuple[list[Group], list[str]]]:
    """Groups of learners that are alike but for some settings, and which settings those are."""
    found = []
    for alike in _alike([g for g in groups if g["order"] != "tasks"], [n for n in OF_CELL if n not in KEPT]):
        cells = {
            learner: {g.cell for g in alike if g["learner"] == learner} for learner in {g["learner"] for g in alike}
        }
        several = [group for group in alike if len(cells[group["learner"]]) > 1]
        if several:
            names = (*OF_CELL, *OF_LEARNER)
            found.append((several, [name for name in names if len({group[name] for group in several}) > 1]))
    return found


def setting_tables(groups: Sequence[Group]) -> list[Table]:
    """What changes with settings that were varied: a row each, strategies side by side."""
    return [table for alike, varied in varied_settings(groups) for table in _settings(alike, varied)]


def _settings(groups: Sequence[Group], varied: Sequence[str]) -> list[Table]:
    seeds = common(groups)
    heads = [name.replace("_", " ") for name in varied]
    strategies = list(dict.fromkeys(group.strategy for group in sorted(groups, key=lambda g: g["strategy"] == "full")))
    metrics = ["average_accuracy", "forgetting"]
    if len(strategies) <= FEW:
        metrics += [metric for metric in SHARES if any(group.stat(metric) for group in groups)]
    several = len({group["learner"] for group in groups}) > 1
    tables = []
    for part in [metrics] if len(strategies) <= FEW else [[metric] for metric in metrics]:
        columns = [Column(s, METRICS[metric].head) for metric in part for s in strategies]
        blocks = []
        for learner in dict.fromkeys(group["learner"] for group in groups):
            rows: dict[tuple[Any, ...], dict[str, Group]] = {}
            for group in (g for g in groups if g["learner"] == learner):
                rows.setdefault(tuple(group[name] for name in varied), {})[group.strategy] = group
            lines = [
                Line([show(value) for value in key], _across(found, strategies, part, seeds))
                for key, found in sorted(rows.items(), key=lambda item: [_sortable(value) for value in item[0]])
            ]
            blocks.append(Block(str(learner) if several else "", lines))
        what = " and ".join(METRICS[metric].name for metric in part[:2])
        note = f"{over_seeds(seeds)} unless said. Best of a row in bold, second underlined. 0: the usual value or all."
        if set(part) & set(SHARES):
            note += " Rarest and commonest class: labels it got, as a multiple of an even share, mean over tasks."
        where = groups[0].where(without=varied)
        tables.append(Table(f"{what.capitalize()} by {', '.join(heads)}: {where}", heads, columns, blocks, note))
    return tables


def _across(found: dict[str, Group], strategies: Sequence[str], metrics: Sequence[str], seeds: int) -> list[Cell]:
    cells = []
    for name in metrics:
        stats = [found[s].stat(name) if s in found else None for s in strategies]
        competing = [
            None if s is None or label == "full" else s.mean for s, label in zip(stats, strategies, strict=True)
        ]
        best = marks(competing, METRICS[name])
        cells += [cell(s, METRICS[name], mark, seeds) for s, mark in zip(stats, best, strict=True)]
    return cells


def _alike(groups: Sequence[Group], ignoring: Sequence[str]) -> list[list[Group]]:
    """Groups together whose cells differ in the ignored settings only."""
    found: dict[tuple[Any, ...], list[Group]] = {}
    for group in groups:
        found.setdefault(tuple(group[name] for name in OF_CELL if name not in ignoring), []).append(group)
    return list(found.values())


def _sortable(value: Any) -> tuple[bool, float, str]:
    return (True, value, "") if isinstance(value, int | float) else (False, 0.0, str(value))
