"""Groups of runs that differ in their seed only: what to call them, and their metrics over tasks and rounds.

A group's *setup* is what the learners and strategies that are compared have in common: benchmark, memory, labels, ...
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accuacl.experiments import DEFAULTS, OPTION_SETTINGS, OPTIONS, OWN, Config, learners, metrics
from accuacl.experiments.report.metrics import MeanStd, mean_std

Row = dict[str, Any]  # a finished run: its settings, metrics, seconds and origin
Setup = tuple[Any, ...]  # the values of SETUP_SETTINGS
Cell = tuple[Setup, str]  # a setup and a learner: all that strategies have in common when they are compared

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # the paper's, in its order
STRATEGIES = (*BASELINES, "accuacl")
SOURCE = "source"  # a setting of rows alone: the directory of a run, where two directories hold the same runs; or ""
STRATEGY_SETTINGS = (
    *(name for name in Config.model_fields if name in (*OPTION_SETTINGS, "lam_from", OPTIONS)),
    "first_round",
    SOURCE,
)
LEARNER_OPTIONS = ("learner_variant", *learners.SETTINGS)  # what a learner has besides its name
LEARNER_SETTINGS = (*LEARNER_OPTIONS, "memory_policy", "sampling")
SETUP_SETTINGS = tuple(
    name
    for name in Config.model_fields
    if name not in ("strategy", "learner", "seed", *STRATEGY_SETTINGS, *LEARNER_SETTINGS)
)
# Whatever these are, a setup counts as its benchmark's usual one: they choose it, or do not change its results.
NEUTRAL_SETTINGS = ("benchmark", "memory", "scale", "threads", "device", "evaluate")


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that have all settings in common but the seed; `group["memory"]` is one of these settings."""

    rows: tuple[Row, ...]

    def __getitem__(self, setting: str) -> Any:
        return self.rows[0].get(setting, "" if setting == SOURCE else None)

    @cached_property
    def setup(self) -> Setup:
        return tuple(self[name] for name in SETUP_SETTINGS)

    @property
    def cell(self) -> Cell:
        return self.setup, self.learner

    @cached_property
    def strategy(self) -> str:
        """The strategy's name and those of its options that are not the defaults: `accuacl, lam 0.5 from task 4`."""
        changed = self.changed(STRATEGY_SETTINGS)
        return ", ".join([str(self["strategy"]), *changed]).replace(", lam from ", " from task ")

    @cached_property
    def learner(self) -> str:
        return ", ".join([str(self["learner"]), *self.changed(LEARNER_SETTINGS)])

    @cached_property
    def bound(self) -> str:
        """Whether the runs are a lower bound (nothing is rehearsed) or an upper bound (joint training), or ""."""
        if self["learner"] == "joint":
            return "upper bound"
        exact = self["learner"] in learners.REGISTRY and learners.REGISTRY[self["learner"]].exact
        return "lower bound" if self["learner"] == "finetune" or (self["memory"] == 0 and not exact) else ""

    @cached_property
    def title(self) -> str:
        """The setup in words."""
        return self.title_without(())

    def title_without(self, ignored: Sequence[str]) -> str:
        """The setup in words: benchmark, memory, labels, scale and whatever else is not the default, unless ignored."""
        shown = {"benchmark": str(self["benchmark"]), "memory": f"memory {self['memory']}"}
        shown["labels"] = f"{self['labels']} labels a task"
        words = [text for name, text in shown.items() if name not in ignored]
        words += self.changed([name for name in SETUP_SETTINGS if name not in (*shown, "scale", *ignored)])
        return f"{', '.join(words)} ({self['scale']} scale)"

    def changed(self, settings: Iterable[str]) -> list[str]:
        """Those of the settings that are not the defaults, in words."""
        default = defaults(self["benchmark"], self["scale"], self["learner"])
        return [describe(name, self[name]) for name in settings if self[name] != default[name]]

    def values(self, metric: str) -> dict[int, float]:
        """The metric by seed, for the runs that have it."""
        values = {row["seed"]: _value(row, metric) for row in self.rows}
        return {seed: value for seed, value in values.items() if value is not None}

    def mean_std(self, metric: str) -> MeanStd | None:
        values = list(self.values(metric).values())
        return mean_std(values) if values else None


def make_groups(rows: Iterable[Row]) -> list[Group]:
    """The rows grouped by all settings but the seed, in the paper's order of benchmarks, learners and strategies."""
    names = [name for name in (*Config.model_fields, SOURCE) if name != "seed"]
    by_settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in ({OPTIONS: "", SOURCE: ""} | row for row in rows):
        by_settings.setdefault(tuple(row[name] for name in names), []).append(row)
    groups = [Group(tuple(sorted(same, key=lambda row: int(row["seed"])))) for same in by_settings.values()]
    return sorted(groups, key=_paper_order)


def has_default_settings(group: Group, ignored: Sequence[str] = ()) -> bool:
    """Whether setup and learner have their benchmark's and scale's default settings, apart from the ignored ones."""
    names = [*SETUP_SETTINGS, *LEARNER_SETTINGS]
    return not group.changed([name for name in names if name not in (*NEUTRAL_SETTINGS, *ignored)])


def defaults(benchmark: str, scale: str, learner: str = "") -> dict[str, Any]:
    """The settings of a run that sets nothing but its benchmark, scale and learner."""
    fields = {name: field.default for name, field in Config.model_fields.items()} | {OPTIONS: "", SOURCE: ""}
    fields |= learners.REGISTRY[learner].settings if learner in learners.REGISTRY else {}
    return fields | DEFAULTS.get(benchmark, OWN).get(scale, {}) | {"benchmark": benchmark, "scale": scale}


def show(value: Any) -> str:
    """A setting's value as text.

    >>> show(2 / 3), show(None), show("once")
    ('0.6667', 'unset', 'once')
    """
    return "unset" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def describe(setting: str, value: Any) -> str:
    """A setting and its value in words.

    >>> describe("weight_decay", 0.1), describe("tasks", 3), describe("tasks", 1)
    ('weight decay 0.1', 'first 3 tasks', 'first task')
    """
    if setting == OPTIONS:
        return str(value)
    if setting == SOURCE:
        return f"from {value}"
    if setting == "tasks" and value:
        return f"first {value} tasks" if value > 1 else "first task"
    return f"{setting.replace('_', ' ')} {show(value)}"


def _value(row: Row, metric: str) -> float | None:
    if metric in ("picked_least", "picked_most"):
        extreme = min if metric == "picked_least" else max
        shares = [extreme(counts) * len(counts) / sum(counts) for counts in row.get("picked") or [] if sum(counts)]
        return float(np.mean(shares)) if shares else None
    if metric == "found_mean":
        shares = [share for task in row.get("found") or [] for share in task]
        return float(np.mean(shares)) if shares else None
    if metric == "rarest_end":
        return float(row["rarest_labels"][-1][-1]) if row.get("rarest_labels") else None
    value = row.get(metric)
    return None if value is None else float(value)


def _paper_order(group: Group) -> tuple[Any, ...]:
    """A sort key: the paper's names in its order, then others by name, `full` last."""
    setup = [f"{value:>24}" if isinstance(value, int) else str(value) for value in group.setup]
    strategy = str(group["strategy"])
    return (
        _index(group["benchmark"], list(DEFAULTS)),
        group["memory"],
        group.title.count(","),  # setups with few changed settings first
        setup,
        _index(group["learner"], learners.NAMES),
        group.learner,
        strategy == "full",
        _index(strategy, STRATEGIES),
        strategy,
        group["lam"] is not None,
        group["lam"] or 0.0,
        group.strategy,
    )


def _index(name: str, known: Sequence[str]) -> int:
    return known.index(name) if name in known else len(known)


def after_tasks(row: Row, metric: str) -> list[float]:
    """The metric after each task, from the accuracy matrix; forgetting begins with the second task.

    >>> after_tasks({"accuracy_matrix": [[90, None], [60, 80]]}, "forgetting")
    [30.0]
    """
    matrix = row.get("accuracy_matrix") or []
    so_far = [[line[: t + 1] for line in matrix[: t + 1]] for t in range(len(matrix))]
    if metric == "forgetting":
        return [metrics.forgetting(part) for part in so_far[1:]]
    return [metrics.average_accuracy(part) for part in so_far]


def labels_spent(row: Row) -> list[int]:
    """How many labels there were after each round of all tasks: a pool that is used up gives no more.

    >>> row = {"labels": 10, "rounds": 2, "found": [[50.0, 100.0], [80.0, 80.0]], "picked": [[7, 3], [4, 2]]}
    >>> labels_spent(row)
    [5, 10, 15, 16]
    """
    labels, rounds = int(row["labels"]), int(row["rounds"])
    spent, before = [], 0
    for task, done in enumerate(row["found"]):
        total = sum(row["picked"][task])
        spent += [before + min(labels * (r + 1) // rounds, total) for r in range(len(done))]
        before += total
    return spent


def over_rounds(row: Row, metric: str, task: int = -1) -> list[float]:
    """The metric after each round of a task, by default the last; empty where the rounds were not tested.

    >>> row = {"accuracy_matrix": [[90, None], [60, 80]], "round_accuracy": [[[85], [90]], [[70, 60], [60, 80]]]}
    >>> over_rounds(row, "forgetting"), over_rounds(row, "average_accuracy")
    ([20.0, 30.0], [65.0, 70.0])
    """
    rounds, matrix = row.get("round_accuracy") or [], row.get("accuracy_matrix") or []
    if not rounds or not matrix:
        return []
    values = []
    for accuracies in rounds[task]:
        before = len(accuracies) - 1  # tasks learned earlier
        if metric == "average_accuracy":
            values.append(float(np.mean(accuracies)))
        elif before:
            values.append(float(np.mean([matrix[j][j] - accuracies[j] for j in range(before)])))
    return values
