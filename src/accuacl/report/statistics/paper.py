"""The paper's own figures, and how its protocol differs from that of our runs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources

from accuacl.report.statistics.groups import Group, has_default_settings
from accuacl.report.statistics.metrics import MeanStd
from accuacl.report.statistics.settings import NEUTRAL_SETTINGS, SETUP_SETTINGS, defaults, describe, show

Key = tuple[str, str, int, str, str, str]  # table, benchmark, memory, learner, strategy, metric
BENCHMARKS = ("split-cifar10", "split-cifar100", "split-tiny-imagenet")
ORDER_SETTINGS = ("order", "order_seed")
SEEDS = 3  # of each of the paper's values


@cache
def figures() -> dict[Key, dict[str, MeanStd]]:
    """All values by the key above, then by note; only the table of task orders has more than one for a key."""
    values: dict[Key, dict[str, MeanStd]] = {}
    text = resources.files("accuacl.report.statistics").joinpath("paper.csv").read_text()
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
