"""What is measured of runs, and groups of runs that differ in their seed only: their names, metrics and means.

A group's *setup* is what the learners and strategies that are compared have in common: benchmark, memory, labels, ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np

from accuacl.experiments import BUILT_IN, DEFAULTS, OPTION_SETTINGS, OPTIONS, OWN, Config, learners, metrics

Item = TypeVar("Item")
Key = TypeVar("Key")
Row = dict[str, Any]  # a finished run: its settings, metrics, seconds and origin

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # the paper's, in its order
STRATEGIES = (*BASELINES, "accuacl")
SOURCE = "source"  # a setting of rows alone: the directory of a run, where two directories hold the same runs; or ""
STRATEGY_SETTINGS = (
    *(name for name in Config.model_fields if name in (*OPTION_SETTINGS, "lam_from", OPTIONS)),
    "first_round",
    "sample",  # which only some strategies look at
    SOURCE,
)
LEARNER_OPTIONS = ("learner_variant", *learners.SETTINGS)  # a learner's settings, apart from its name
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
    def setup(self) -> tuple[Any, ...]:
        return self.setup_without(())

    def setup_without(self, ignored: Collection[str]) -> tuple[Any, ...]:
        return tuple(self[name] for name in SETUP_SETTINGS if name not in ignored)

    @cached_property
    def strategy(self) -> str:
        return self.name_of("strategy")

    @cached_property
    def learner(self) -> str:
        return self.name_of("learner")

    def name_of(self, setting: str, without: Collection[str] = ()) -> str:
        """The strategy or learner and those of its options that are not the defaults: `accuacl, lam 0.5`."""
        options = STRATEGY_SETTINGS if setting == "strategy" else LEARNER_SETTINGS
        changed = self.changed(name for name in options if name not in without)
        return ", ".join([str(self[setting]), *changed]).replace(", lam from ", " from task ")

    @cached_property
    def bound(self) -> str:
        """Whether the runs are a lower bound (nothing is rehearsed), an upper bound (joint training), or neither: "".

        "no memory": a learner that needs none because it does something else against forgetting, or one of a plugin,
        of which nobody knows what it does.
        """
        if self["learner"] == "joint":
            return "upper bound"
        if self["learner"] == "finetune":
            return "lower bound"
        entry = learners.REGISTRY.get(self["learner"])
        if self["memory"] or (entry and entry.exact):
            return ""
        rehearses = self["learner"] in BUILT_IN["learner"] and entry is not None and "memory" not in entry.fixed
        return "lower bound" if rehearses else "no memory"

    @property
    def labels(self) -> str:
        """How many labels a task has, as a phrase."""
        return "all labels" if self["strategy"] == "full" else f"{self['labels']} labels a task"

    @cached_property
    def title(self) -> str:
        return self.title_without(())

    def title_without(self, ignored: Collection[str]) -> str:
        """The setup as a phrase: benchmark, memory, labels, scale and all that is not the default, unless ignored."""
        shown = {"benchmark": str(self["benchmark"]), "memory": f"memory {self['memory']}"}
        shown["labels"] = self.labels
        words = [text for name, text in shown.items() if name not in ignored]
        words += self.changed([name for name in SETUP_SETTINGS if name not in (*shown, "scale", *ignored)])
        return f"{', '.join(words)} ({self['scale']} scale)"

    def changed(self, settings: Iterable[str]) -> list[str]:
        """The settings that differ from the defaults, as a phrase."""
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
    whole = ({OPTIONS: "", SOURCE: ""} | row for row in rows)
    by_settings = grouped(whole, lambda row: tuple(row[name] for name in names))
    groups = [Group(tuple(sorted(same, key=lambda row: int(row["seed"])))) for same in by_settings.values()]
    return sorted(groups, key=_paper_order)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """The items by their key, in their order.

    >>> grouped([1, 2, 3], lambda number: number % 2)
    {1: [1, 3], 0: [2]}
    """
    by_key: dict[Key, list[Item]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    return by_key


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
    """A setting and its value as a phrase.

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


@dataclass(frozen=True)
class Metric:
    """A metric's short and full name, whether larger is better (None: neither), and the decimals that are shown."""

    short: str
    name: str
    larger: bool | None
    digits: int = 1

    @property
    def head(self) -> str:
        """The short name with an arrow to the better side."""
        return self.short + {True: " ↑", False: " ↓", None: ""}[self.larger]


METRICS = {
    "average_accuracy": Metric("A", "average accuracy (%)", True),
    "forgetting": Metric("F", "forgetting (points)", False),
    "learning_accuracy": Metric("LA", "learning accuracy (%)", True),
    "forgetting_max": Metric("F max", "forgetting from each task's best (points)", False),
    "class_accuracy": Metric("class A", "mean recall of the classes (%)", True),
    "example_accuracy": Metric("example A", "accuracy over all test examples (%)", True),
    "class_forgetting": Metric("class F", "mean forgetting of the classes (points)", False),
    "found_mean": Metric("found", "classes with a label, mean over all rounds (%)", True),
    "rarest_end": Metric("rarest", "labels of the rarest class at the end", None),
    "calibration_error": Metric("ECE", "calibration error (points)", False),
    "picked_least": Metric("rarest class", "labels of a task's rarest class, of an even share", None, 2),
    "picked_most": Metric("commonest class", "labels of a task's commonest class, of an even share", None, 2),
    "seconds_query": Metric("query s", "seconds for all queries", None),
    "seconds_cpu": Metric("CPU s", "CPU seconds of the run", None),
}
MAIN_METRICS = ("average_accuracy", "forgetting")  # those that the paper compares strategies by


@dataclass(frozen=True)
class MeanStd:
    """Mean and sample standard deviation (None for a single value) of n values."""

    mean: float
    std: float | None
    n: int

    def __str__(self) -> str:
        """
        >>> str(MeanStd(12.34, 0.56, 3)), str(MeanStd(12.34, None, 1))
        ('12.3 ± 0.6', '12.3')
        """
        return number(self.mean) + ("" if self.std is None else f" ± {number(self.std)}")


def mean_std(values: Sequence[float]) -> MeanStd:
    """
    >>> mean_std([1.0, 2.0, 3.0])
    MeanStd(mean=2.0, std=1.0, n=3)
    """
    std = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return MeanStd(float(np.mean(values)), std, len(values))


def number(value: float, digits: int = 1) -> str:
    """The value with this many decimals, never as -0.0.

    >>> number(-0.01), number(12.34)
    ('0.0', '12.3')
    """
    return f"{round(value, digits) + 0.0:.{digits}f}"


def ranks(values: Sequence[MeanStd | float | None], metric: Metric) -> list[Literal["", "best", "second"]]:
    """Which means are best and second best; means that print the same are tied.

    Nothing is best where there is nothing to compare it with.

    >>> ranks([1.0, 3.0, 2.0, 3.01, None], METRICS["average_accuracy"])
    ['', 'best', 'second', 'best', '']
    """
    means = [value.mean if isinstance(value, MeanStd) else value for value in values]
    shown = [None if mean is None else round(mean, metric.digits) for mean in means]
    known = [mean for mean in shown if mean is not None]
    if metric.larger is None or len(known) < 2:
        return [""] * len(shown)
    ordered = sorted(set(known), reverse=metric.larger)
    names: dict[float | None, Literal["", "best", "second"]] = {ordered[0]: "best"}
    if len(known) > 2 and len(ordered) > 1:  # the second of two is the worst, so it gets no mark
        names[ordered[1]] = "second"
    return [names.get(mean, "") for mean in shown]
