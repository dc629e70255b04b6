"""The paper's own figures: its values beside ours, how its protocol differs, and whether the conclusions agree."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from accuacl.experiments.report.document import Table, TableCell, TableColumn, TableGroup, TableRow
from accuacl.experiments.report.groups import (
    BASELINES,
    NEUTRAL_SETTINGS,
    SETUP_SETTINGS,
    Group,
    defaults,
    describe,
    grouped,
    has_default_settings,
    show,
)
from accuacl.experiments.report.measures import MAIN_METRICS, METRICS, MeanStd, number, ranks

Key = tuple[str, str, int, str, str, str]  # (table, benchmark, memory, learner, strategy, metric)
PAPERS_BENCHMARKS = ("split-cifar10", "split-cifar100", "split-tiny-imagenet")
ORDER_SETTINGS = ("order", "order_seed")
SEEDS = 3  # how many seeds each of the paper's values is the mean of


@cache
def figures() -> dict[Key, dict[str, MeanStd]]:
    """Return all of the paper's values by `Key` and note; only the table of task orders has several notes for a key."""
    values: dict[Key, dict[str, MeanStd]] = {}
    text = resources.files("accuacl.experiments.report").joinpath("paper.csv").read_text(encoding="utf-8")
    for line in csv.DictReader(text.splitlines()):
        if line["mean"]:
            names = line["learner"], line["strategy"], line["metric"]
            key = (line["table"], line["benchmark"], int(line["memory"]), *names)
            std = float(line["std"]) if line["std"] else None
            values.setdefault(key, {})[line["note"]] = MeanStd(float(line["mean"]), std, SEEDS)
    return values


def value(tables: Sequence[str], group: Group, metric: str) -> MeanStd | None:
    """Return the paper's value from the first of these tables that has it; None for runs with changed settings."""
    if not has_default_settings(group):
        return None
    by_note = [figures().get(_key(table, group, metric), {}) for table in tables]
    return next((next(iter(values.values())) for values in by_note if values), None)


def remarks(tables: Sequence[str], groups: Sequence[Group], metrics: Sequence[str]) -> list[str]:
    """Return the notes on the paper's values for these groups; if one note begins like another, only the longer."""
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
    """Return the paper's value with the tasks in order, or its mean over four permutations, which it does not list."""
    if not has_default_settings(group, ignored=ORDER_SETTINGS):
        return None
    by_note = figures().get(_key("task-order", group, metric), {})
    if not permuted:
        return by_note.get("sequential")
    means = [of_order.mean for note, of_order in by_note.items() if note.startswith("perm")]
    return MeanStd(sum(means) / len(means), None, len(means)) if means else None


def main_cells(metric: str) -> dict[tuple[str, int, str], dict[str, float]]:
    """Return the main table's means: {(benchmark, memory, learner): {strategy: mean}}."""
    cells: dict[tuple[str, int, str], dict[str, float]] = {}
    for (table, benchmark, memory, learner, strategy, name), by_note in figures().items():
        if table == "main" and name == metric:
            cells.setdefault((benchmark, memory, learner), {})[strategy] = next(iter(by_note.values())).mean
    return cells


def times_accuacl(strategy: str, metric: str) -> float:
    """Return how many times AccuACL's time or memory the queries of a strategy take."""
    return figures()["efficiency", "", 0, "", strategy, metric][""].mean


def protocol(group: Group) -> str:
    """Return a sentence that names the runs' settings that are not the paper's; "" if there are none."""
    if group["benchmark"] not in PAPERS_BENCHMARKS:
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


def agreement_table(groups: Sequence[Group]) -> Table | None:
    """Return a table of the best strategies here and in the paper, and of how well the two orders agree."""
    compared = [group for group in groups if group.strategy != "full" and value(("main",), group, MAIN_METRICS[0])]
    cells = [cell for cell in grouped(compared, lambda group: (group.setup, group.learner)).values() if len(cell) > 1]
    agree = dict.fromkeys(MAIN_METRICS, 0)
    rows: dict[str, list[TableRow]] = {}
    for cell in cells:
        best, taus = [], []
        for metric in MAIN_METRICS:
            pairs = [(group.mean_std(metric), value(("main",), group, metric)) for group in cell]
            ours, papers = (
                [
                    group.strategy
                    for group, rank in zip(cell, ranks(values, METRICS[metric]), strict=True)
                    if rank == "best"
                ]
                for values in zip(*pairs, strict=True)
            )
            same = bool(set(ours) & set(papers))
            agree[metric] += same
            best += [
                TableCell(", ".join(ours) or "-", rank="best" if same else ""),
                TableCell(", ".join(papers) or "-"),
            ]
            tau = kendall([(mine.mean, theirs.mean) for mine, theirs in pairs if mine and theirs])
            taus.append(TableCell("-" if tau is None else number(tau, 2)))
        rows.setdefault(cell[0].title, []).append(
            TableRow([cell[0].learner], [*best, *taus, TableCell(str(len(cell)))])
        )
    if not cells:
        return None
    heads = [METRICS[metric].short for metric in MAIN_METRICS]
    columns = [
        TableColumn(who, f"best by {head}", muted=who == "paper", text=True)
        for head in heads
        for who in ("ours", "paper")
    ]
    columns += [TableColumn(head, "Kendall's tau") for head in heads]
    counts = " ".join(
        f"The best by {METRICS[metric].short} is the paper's best in {count} of {len(cells)} cells."
        for metric, count in agree.items()
    )
    note = (
        f"{counts} Kendall's tau, of three strategies or more, is 1 if the order of their means is the paper's, -1 if "
        "it is the opposite, and about 0 if they are unrelated. Bold: best in the paper too."
    )
    caption = "Order of the strategies, here and in the paper"
    row_groups = [TableGroup(title, each) for title, each in rows.items()]
    return Table(caption, ["learner"], [*columns, TableColumn("strategies")], row_groups, note, grouped_by="setup")


def kendall(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return Kendall's rank correlation (tau-b): 1 for the same order, -1 for the opposite; None if one side is tied.

    >>> kendall([(1, 3), (2, 2), (3, 1)]), kendall([(1, 2), (2, 1)])
    (-1.0, None)
    """
    from scipy.stats import kendalltau  # imported here because it is slow to load

    if len(pairs) < 3:
        return None
    tau = float(kendalltau(*zip(*pairs, strict=True)).statistic)
    return None if math.isnan(tau) else tau


Changes = dict[tuple[tuple[Any, ...], str], float]  # {(cell, baseline): the relative change}


def gain_table(groups: Sequence[Group]) -> Table | None:
    """Return a table of AccuACL's mean relative gain over baselines, the paper's headline, here and in the paper.

    Both are over the same cells. Runs with changed settings are left out; None if the paper has none of our cells.
    """
    usual = [group for group in groups if has_default_settings(group)]
    gains = {name: _mean(c) for name in BASELINES if (c := our_changes(usual, [name], MAIN_METRICS[0]))}
    comparisons = {"uniform": ["uniform"]} if "uniform" in gains else {}
    if len(gains) > 1:
        hardest = min(gains, key=lambda name: gains[name])
        comparisons |= {f"{hardest}, the strongest": [hardest]} if hardest != "uniform" else {}
        comparisons[f"all of {', '.join(gains)}"] = list(gains)
    rows = []
    for name, baselines in comparisons.items():
        ours = [our_changes(usual, baselines, metric) for metric in MAIN_METRICS]
        papers = [papers_changes(baselines, metric) for metric in MAIN_METRICS]
        same = [
            {(cell, baseline): there[cell[:3], baseline] for cell, baseline in here if (cell[:3], baseline) in there}
            for here, there in zip(ours, papers, strict=True)
        ]
        if all(same):  # otherwise the paper has none of these cells
            cells = [TableCell(_percent(changes)) for of_metrics in (ours, same, papers) for changes in of_metrics]
            rows.append(TableRow([name], [*cells, TableCell(str(len(ours[0])))]))
    if not rows:
        return None
    columns = [
        TableColumn(METRICS[metric].head, shared, muted=shared != "ours")
        for shared in ("ours", "paper, same cells", "paper, all its cells")
        for metric in MAIN_METRICS
    ]
    note = (
        "Mean over cells and baselines of (accuacl - baseline) / baseline in percent, as the paper measures it. Runs "
        "with other than the default settings are left out."
    )
    caption = "Relative gain of accuacl over the paper's baselines"
    return Table(caption, ["baseline"], [*columns, TableColumn("pairs")], [TableGroup("", rows)], note)


def our_changes(groups: Sequence[Group], baselines: Sequence[str], metric: str) -> Changes:
    """Return (accuacl - baseline) / baseline of our runs, from the means over the seeds that both have."""
    cells: dict[tuple[Any, ...], dict[str, dict[int, float]]] = {}
    for group in groups:
        cell = (group["benchmark"], group["memory"], group.learner, group["scale"])
        cells.setdefault(cell, {}).setdefault(group.strategy, group.values(metric))
    changes = {}
    for cell, by_strategy in cells.items():
        for baseline in baselines:
            ours, theirs = by_strategy.get("accuacl", {}), by_strategy.get(baseline, {})
            seeds = ours.keys() & theirs.keys()
            mine, base = (sum(values[seed] for seed in seeds) for values in (ours, theirs))
            if base > 0:
                changes[cell, baseline] = (mine - base) / base
    return changes


def papers_changes(baselines: Sequence[str], metric: str) -> Changes:
    """Return (accuacl - baseline) / baseline in the paper's main table, where it has both."""
    return {
        (cell, baseline): (means["accuacl"] - means[baseline]) / means[baseline]
        for cell, means in main_cells(metric).items()
        for baseline in baselines
        if "accuacl" in means and baseline in means
    }


def _mean(changes: Changes) -> float:
    return sum(changes.values()) / len(changes)


def _percent(changes: Changes) -> str:
    return f"{round(100 * _mean(changes), 1) + 0.0:+.1f} %"  # + 0.0 turns -0.0 into 0.0
