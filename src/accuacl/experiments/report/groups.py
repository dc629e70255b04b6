"""Groups of runs that differ in their seed only, and what to call them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accuacl.experiments import DEFAULTS, OPTION_SETTINGS, OPTIONS, OWN, Config, metrics
from accuacl.experiments.report.metrics import MeanStd, mean_std

Row = dict[str, Any]  # a finished run: its settings, metrics, seconds and origin
Setup = tuple[Any, ...]  # the values of SETUP_SETTINGS
Cell = tuple[Setup, str]  # a setup and a learner: all that strategies have in common when they are compared

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # the paper's, in its order
STRATEGIES = (*BASELINES, "accuacl")
LEARNERS = ("er", "gss", "der++", "er-ace", "ridge")


@dataclass(frozen=True, eq=False)
class Group:
    """Runs that have all settings in common but the seed; `group["memory"]` is one of these settings."""

    rows: tuple[Row, ...]

    def __getitem__(self, setting: str) -> Any:
        return self.rows[0].get(setting)

    @cached_property
    def setup(self) -> Setup:
        return tuple(self[name] for name in SETUP_SETTINGS)

    @property
    def cell(self) -> Cell:
        return self.setup, self.learner

    @cached_property
    def strategy(self) -> str:
        """The strategy's name and those of its options that are not the defaults: `accuacl, lam 0.5 from task 4`."""
        changed = _changed(self, STRATEGY_SETTINGS)
        return ", ".join([str(self["strategy"]), *changed]).replace(", lam from ", " from task ")

    @cached_property
    def learner(self) -> str:
        return ", ".join([str(self["learner"]), *_changed(self, LEARNER_SETTINGS)])

    @cached_property
    def title(self) -> str:
        """The setup in words."""
        return self.title_without(())

    def title_without(self, ignored: Sequence[str]) -> str:
        """The setup in words, without the ignored settings: benchmark, memory, scale and what is not the default."""
        words = [str(self["benchmark"]), f"memory {self['memory']}"]
        words += _changed(self, [n for n in SETUP_SETTINGS if n not in ("benchmark", "memory", "scale", *ignored)])
        return f"{', '.join(words)} ({self['scale']} scale)"

    def values(self, metric: str) -> dict[int, float]:
        """The metric by seed, for the runs that have it."""
        values = {row["seed"]: _value(row, metric) for row in self.rows}
        return {seed: value for seed, value in values.items() if value is not None}

    def mean_std(self, metric: str) -> MeanStd | None:
        values = list(self.values(metric).values())
        return mean_std(values) if values else None


def make_groups(rows: Iterable[Row]) -> list[Group]:
    """The rows grouped by all settings but the seed, in the paper's order of benchmarks, learners and strategies."""
    by_settings: dict[tuple[Any, ...], list[Row]] = {}
    for row in ({OPTIONS: ""} | row for row in rows):
        by_settings.setdefault(tuple(row[name] for name in Config.model_fields if name != "seed"), []).append(row)
    groups = [Group(tuple(sorted(same, key=lambda row: int(row["seed"])))) for same in by_settings.values()]
    return sorted(groups, key=_paper_order)


def has_default_length(group: Group) -> bool:
    """Whether the runs neither stop early nor go on longer than usual; those that do begin just like the others."""
    default = defaults(group["benchmark"], group["scale"])
    return all(group[name] == default[name] for name in ("tasks", "last_rounds"))


def has_default_settings(group: Group, ignored: Sequence[str] = ()) -> bool:
    """Whether setup and learner have their benchmark's and scale's default settings, apart from the ignored ones."""
    names = [*SETUP_SETTINGS, *LEARNER_SETTINGS]
    return not _changed(group, [name for name in names if name not in (*NEUTRAL_SETTINGS, *ignored)])


def _changed(group: Group, settings: Iterable[str]) -> list[str]:
    """Those of the settings that are not the defaults, in words."""
    default = defaults(group["benchmark"], group["scale"])
    return [describe(name, group[name]) for name in settings if group[name] != default[name]]


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
        _index(group["learner"], LEARNERS),
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


STRATEGY_SETTINGS = (
    *(name for name in Config.model_fields if name in (*OPTION_SETTINGS, "lam_from", OPTIONS)),
    "first_round",
)
LEARNER_SETTINGS = ("learner_variant", "replay", "alpha", "beta", "memory_policy", "sampling")
SETUP_SETTINGS = tuple(  # what the learners and strategies that are compared with each other have in common
    name
    for name in Config.model_fields
    if name not in ("strategy", "learner", "seed", *STRATEGY_SETTINGS, *LEARNER_SETTINGS)
)
# Whatever these are, a setup counts as its benchmark's usual one: they choose it, or do not change its results.
NEUTRAL_SETTINGS = ("benchmark", "memory", "scale", "threads", "device", "evaluate")


def defaults(benchmark: str, scale: str) -> dict[str, Any]:
    """The settings of a run that sets nothing but its benchmark and scale."""
    fields = {name: field.default for name, field in Config.model_fields.items()} | {OPTIONS: ""}
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
    if setting == "tasks" and value:
        return f"first {value} tasks" if value > 1 else "first task"
    return f"{setting.replace('_', ' ')} {show(value)}"


def by_scale(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """The groups that a summary compares, separately for each scale: those with default settings.

    Where these have nothing to compare AccuACL with, all groups of the default length; failing that, all groups.
    """
    chosen = {}
    for scale in dict.fromkeys(str(group["scale"]) for group in groups):
        at_scale = [group for group in groups if group["scale"] == scale]
        usual = [group for group in at_scale if has_default_settings(group)]
        whole = [group for group in at_scale if has_default_length(group)]
        chosen[scale] = next((candidates for candidates in (usual, whole) if _can_compare(candidates)), at_scale)
    return chosen


def mixes_settings(groups: Iterable[Group]) -> bool:
    """Whether some benchmark occurs with several settings."""
    names = [name for name in (*SETUP_SETTINGS, *LEARNER_SETTINGS) if name not in NEUTRAL_SETTINGS]
    kinds = {(group["benchmark"], *(group[name] for name in names)) for group in groups}
    return len(kinds) > len({benchmark for benchmark, *_ in kinds})


def accuacl_names(groups: Sequence[Group]) -> list[str]:
    """Which AccuACL is compared with the others: that with default options, or all others where it is missing."""
    names = list(dict.fromkeys(group.strategy for group in groups if group["strategy"] == "accuacl"))
    return ["accuacl"] if "accuacl" in names else names


def with_scale(sentence: str, scale: str) -> str:
    """The sentence, which begins with its scale unless that is "".

    >>> with_scale("The best is uniform.", "cpu")
    'At cpu scale, the best is uniform.'
    """
    if not scale:
        return sentence
    return f"At {scale} scale, {sentence[0].lower()}{sentence[1:]}"


def _can_compare(groups: Sequence[Group]) -> bool:
    """Whether some cell has both AccuACL and another strategy."""
    kinds: dict[Cell, set[bool]] = {}
    for group in groups:
        if group["strategy"] != "full":
            kinds.setdefault(group.cell, set()).add(group["strategy"] == "accuacl")
    return any(len(both) == 2 for both in kinds.values())


Pair = tuple[float, float]


def pairs(groups: Sequence[Group], ours: str, other: str, metric: str) -> dict[Cell, dict[int, Pair]]:
    """The metric of both strategies by cell and seed, where both have it; each pair of runs once.

    Runs with the same accuracies are the same run: without this, a setting that made no difference (a memory that was
    never full) would make one pair count twice.
    """
    cells: dict[Cell, dict[str, Group]] = {}
    for group in groups:
        cells.setdefault(group.cell, {})[group.strategy] = group
    by_cell: dict[Cell, dict[int, Pair]] = {}
    seen = set()
    for cell, by_strategy in cells.items():
        if ours not in by_strategy or other not in by_strategy:
            continue
        mine, theirs = by_strategy[ours].values(metric), by_strategy[other].values(metric)
        for seed in sorted(mine.keys() & theirs.keys()):
            runs = _identity(by_strategy[ours], seed), _identity(by_strategy[other], seed)
            if None in runs or runs not in seen:
                seen.add(runs)
                by_cell.setdefault(cell, {})[seed] = mine[seed], theirs[seed]
    return by_cell


def _identity(group: Group, seed: int) -> str | None:
    """What the run is known by, whatever its settings; None if its accuracies were not recorded."""
    matrix = next(row.get("accuracy_matrix") for row in group.rows if row["seed"] == seed)
    return json.dumps([group["benchmark"], group["learner"], seed, matrix]) if matrix else None


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
