"""Where our ordering of the strategies is the paper's, and where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from accuacl.report.formats.document import Block, Cell, Column, Line, Table
from accuacl.report.statistics import paper
from accuacl.report.statistics.groups import METRICS, TWO, Group, Stat, at_scale
from accuacl.report.tables.tables import marks, number


def kendall(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Kendall's rank correlation (tau-b): 1 the same order, -1 the opposite; None where one of them has no order.

    >>> kendall([1, 2, 3], [1, 3, 2])
    0.3333333333333333
    """
    pairs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in combinations(range(len(x)), 2)]
    ordered = sum(abs(a) for a, _ in pairs) * sum(abs(b) for _, b in pairs)
    return float(sum(a * b for a, b in pairs) / np.sqrt(ordered)) if ordered else None


def compare(groups: Sequence[Group]) -> tuple[list[str], list[str], Table | None]:
    """How often the best strategy is the paper's, where so and where not, and a table of rank agreement."""
    cells: dict[tuple[object, str], list[Group]] = {}
    for group in groups:
        if group["strategy"] != "full" and paper.value(("main",), group, "average_accuracy"):
            cells.setdefault((group.cell, group.learner), []).append(group)
    compared = [found for found in cells.values() if len(found) > 1]
    if not compared:
        return [], [], None
    scales = list(dict.fromkeys(str(found[0]["scale"]) for found in compared))
    said = []
    for scale in scales:
        these = [found for found in compared if found[0]["scale"] == scale]
        for metric in TWO:
            short, sentences = _sentences(these, metric)
            said.append((at_scale(scale, scales, short), sentences))
    titles = dict.fromkeys(found[0].title for found in compared)
    blocks = [Block(title, [_line(found) for found in compared if found[0].title == title]) for title in titles]
    columns = [
        Column("ours", "best by A", text=True),
        Column("paper", "best by A", muted=True, text=True),
        Column("ours", "best by F", text=True),
        Column("paper", "best by F", muted=True, text=True),
        Column("A", "Kendall's tau"),
        Column("F", "Kendall's tau"),
        Column("strategies"),
    ]
    note = (
        "Among the strategies that both have, full left out. Kendall's tau, from three strategies on: 1 if the order "
        "of their means is the paper's, -1 if it is the opposite, about 0 if unrelated. Bold: the paper's best too."
    )
    table = Table("Ordering of the strategies, ours and the paper's", ["learner"], columns, blocks, note, by="cell")
    return [short for short, _ in said], [sentence for _, sentences in said for sentence in sentences], table


def _sentences(compared: Sequence[Sequence[Group]], metric: str) -> tuple[str, list[str]]:
    """How often the best strategy is the paper's; where so, and a sentence for each place where it is not."""
    agree: dict[str, list[str]] = {}
    differ = []
    name = METRICS[metric].name.split(" (")[0]
    for found in compared:
        ours, theirs = _values(found, metric)
        best, their_best = _best(found, ours, metric), _best(found, theirs, metric)
        if set(best) & set(their_best):
            agree.setdefault(found[0].title, []).append(found[0].learner)
        elif best and their_best:
            differ.append(
                f"Not the paper's best in {name}: in {found[0].title} with {found[0].learner} it is {_names(best)} "
                f"({_spread(best[0], metric)}), in the paper {_names(their_best)}, which has "
                f"{_spread(their_best[0], metric)} here."
            )
    count = sum(len(learners) for learners in agree.values())
    total = f"{count} of {count + len(differ)} cells and learners" if count + len(differ) > 1 else f"{count} of 1 cell"
    short = f"The best strategy in {name} is the paper's best in {total}."
    where = "; ".join(f"{title} with {', '.join(learners)}" for title, learners in agree.items())
    return short, ([f"The paper's best in {name} in {where}."] if where else []) + differ


def _values(groups: Sequence[Group], metric: str) -> tuple[list[Stat | None], list[Stat | None]]:
    return [g.stat(metric) for g in groups], [paper.value(("main",), g, metric) for g in groups]


def _best(groups: Sequence[Group], values: Sequence[Stat | None], metric: str) -> list[Group]:
    best = marks([None if value is None else value.mean for value in values], METRICS[metric])
    return [group for group, mark in zip(groups, best, strict=True) if mark == "best"]


def _line(groups: Sequence[Group]) -> Line:
    cells, taus = [], []
    for metric in TWO:
        ours, theirs = _values(groups, metric)
        best, their_best = _best(groups, ours, metric), _best(groups, theirs, metric)
        same = bool(set(best) & set(their_best))
        cells += [Cell(_names(best), mark="best" if same else ""), Cell(_names(their_best))]
        both = [(a.mean, b.mean) for a, b in zip(ours, theirs, strict=True) if a and b]
        tau = kendall([a for a, _ in both], [b for _, b in both]) if len(both) > 2 else None
        taus.append(Cell("-" if tau is None else number(tau, 2)))
    return Line([groups[0].learner], [*cells, *taus, Cell(str(len(groups)))])


def _names(groups: Sequence[Group]) -> str:
    return ", ".join(group.strategy for group in groups) or "-"


def _spread(group: Group, metric: str) -> str:
    found = group.stat(metric)
    if found is None:
        return "-"
    return number(found.mean) + ("" if found.std is None else f" ± {number(found.std)}")
