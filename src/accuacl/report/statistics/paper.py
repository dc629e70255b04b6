"""The paper's own figures, and how its protocol differs from that of some runs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources

from accuacl.report.statistics.groups import HARMLESS, OF_CELL, Group, Stat, is_usual, say, show, usual

Key = tuple[str, str, int, str, str, str]  # table, benchmark, memory, learner, strategy, metric
BENCHMARKS = ("split-cifar10", "split-cifar100", "split-tiny-imagenet")
ORDER = ("order", "order_seed")


@cache
def figures() -> dict[Key, dict[str, Stat]]:
    """All values by the key above, then by note: tables have one value, but that of task orders has five."""
    found: dict[Key, dict[str, Stat]] = {}
    text = resources.files("accuacl.report.statistics").joinpath("paper.csv").read_text()
    for line in csv.DictReader(text.splitlines()):
        if line["mean"]:
            where = line["table"], line["benchmark"], int(line["memory"])
            key = (*where, line["learner"], line["strategy"], line["metric"])
            spread = float(line["std"]) if line["std"] else None
            found.setdefault(key, {})[line["note"]] = Stat(float(line["mean"]), spread, 3)
    return found


def value(tables: tuple[str, ...], group: Group, metric: str) -> Stat | None:
    """The paper's value from the first of its tables that has it; none for runs in another than the usual setting."""
    found = [figures().get(_key(table, group, metric), {}) for table in tables if is_usual(group)]
    return next((next(iter(notes.values())) for notes in found if notes), None)


def remarks(tables: tuple[str, ...], groups: Sequence[Group], metrics: Sequence[str]) -> list[str]:
    """What must be known about the paper's values in these places, the fullest wording of each."""
    found = {
        note
        for table in tables
        for group in groups
        for metric in metrics
        if is_usual(group)
        for note in figures().get(_key(table, group, metric), {})
        if note
    }
    return sorted(note for note in found if not any(other.startswith(f"{note}:") for other in found))


def of_order(group: Group, metric: str, permuted: bool) -> Stat | None:
    """The paper's value with the tasks as they are, or its mean over four permutations: it does not say which."""
    notes = figures().get(_key("task-order", group, metric), {}) if is_usual(group, but=ORDER) else {}
    if not permuted:
        return notes.get("sequential")
    means = [found.mean for note, found in notes.items() if note.startswith("perm")]
    return Stat(sum(means) / len(means), None, len(means)) if means else None


def main_cells(metric: str) -> dict[tuple[str, int, str], dict[str, float]]:
    """The main table: the values of its strategies by benchmark, memory and learner."""
    cells: dict[tuple[str, int, str], dict[str, float]] = {}
    for (table, benchmark, memory, learner, strategy, name), notes in figures().items():
        if table == "main" and name == metric:
            cells.setdefault((benchmark, memory, learner), {})[strategy] = next(iter(notes.values())).mean
    return cells


def protocol(group: Group) -> str:
    """In words, where the runs' settings are not the paper's; empty where they are."""
    if group["benchmark"] not in BENCHMARKS:
        return ""
    theirs = usual(group["benchmark"], "paper")
    parts = [
        f"{name.replace('_', ' ')} {show(group[name])} (paper: {show(theirs[name])})"
        for name in OF_CELL
        if name not in (*HARMLESS, *ORDER, "tasks") and group[name] != theirs[name]
    ]
    if group["tasks"]:
        parts.insert(0, f"only the {say('tasks', group['tasks'])}")
    return f"Not the paper's protocol: {', '.join(parts)}." if parts else ""


def _key(table: str, group: Group, metric: str) -> Key:
    return table, group["benchmark"], group["memory"], group.learner, group.strategy, metric
