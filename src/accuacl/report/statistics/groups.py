"""Groups of runs that differ in nothing but their seed, and what to call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accuacl.experiment.config import DEFAULTS, OWN, Config
from accuacl.report.statistics.collect import Row

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # the paper's, in its order
STRATEGIES = (*BASELINES, "accuacl")
LEARNERS = ("er", "gss", "der++", "er-ace")
OF_STRATEGY = ("variant", "keep", "lam", "lam_from", "oversample")
OF_LEARNER = ("learner_variant", "replay")
OF_CELL = tuple(
    name for name in Config.model_fields if name not in ("strategy", "learner", "seed", *OF_STRATEGY, *OF_LEARNER)
)

HARMLESS = ("benchmark", "memory", "scale", "threads", "device", "evaluate")  # not a matter of the usual setting


@dataclass(frozen=True)
class Metric:
    """What is measured: its short and its full name, and whether larger is better (None: neither)."""

    short: str
    name: str
    larger: bool | None
    digits: int = 1

    @property
    def head(self) -> str:
        return self.short + {True: " ↑", False: " ↓", None: ""}[self.larger]


METRICS = {
    "average_accuracy": Metric("A", "average accuracy (%)", True),
    "forgetting": Metric("F", "forgetting (points)", False),
    "learning_accuracy": Metric("LA", "learning accuracy (%)", True),
    "forgetting_max": Metric("F max", "forgetting from each task's best (points)", False),
    "calibration_error": Metric("ECE", "calibration error (points)", False),
    "picked_least": Metric("rarest class", "labels of a task's rarest class, of an even share", None, 2),
    "picked_most": Metric("commonest class", "labels of a task's commonest class, of an even share", None, 2),
    "seconds_query": Metric("query s", "seconds for all queries", None),
    "seconds_cpu": Metric("CPU s", "CPU seconds of the run", None),
}

TWO = ("average_accuracy", "forgetting")


@dataclass(frozen=True)
class Stat:
    """Mean and sample standard deviation (None of a single value) of n values."""

    mean: float
    std: float | None
    n: int


def stat(values: Sequence[float]) -> Stat:
    """
    >>> stat([1.0, 2.0, 3.0])
    Stat(mean=2.0, std=1.0, n=3)
    """
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Stat(float(np.mean(values)), spread, len(values))


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one config with different seeds."""

    rows: tuple[Row, ...]

    def __getitem__(self, setting: str) -> Any:
        return self.rows[0].get(setting)

    @cached_property
    def cell(self) -> tuple[Any, ...]:
        """All settings that are shared by the strategies and learners that are compared with each other."""
        return tuple(self[name] for name in OF_CELL)

    @cached_property
    def strategy(self) -> str:
        """Its name, and what of its options is not as usual: `accuacl, lam 0.5 from task 4`."""
        parts = _unusual(self, OF_STRATEGY)
        return ", ".join([str(self["strategy"]), *parts]).replace(", lam from ", " from task ")

    @cached_property
    def learner(self) -> str:
        return ", ".join([str(self["learner"]), *_unusual(self, OF_LEARNER)])

    @cached_property
    def title(self) -> str:
        return self.where()

    def where(self, without: Sequence[str] = ()) -> str:
        """The cell in words: what is not as usual for the benchmark at its scale, but for some settings."""
        parts = [str(self["benchmark"]), f"memory {self['memory']}"]
        parts += _unusual(self, [n for n in OF_CELL if n not in ("benchmark", "memory", "scale", *without)])
        return f"{', '.join(parts)} ({self['scale']} scale)"

    def values(self, metric: str) -> dict[int, float]:
        """The metric by seed, of the runs that have it."""
        found = {row["seed"]: _value(row, metric) for row in self.rows}
        return {seed: value for seed, value in found.items() if value is not None}

    def stat(self, metric: str) -> Stat | None:
        values = list(self.values(metric).values())
        return stat(values) if values else None


def make_groups(rows: Iterable[Row]) -> list[Group]:
    """The rows by config, in the paper's order of benchmarks, learners and strategies."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in Config.model_fields if name != "seed"), []).append(row)
    groups = [Group(tuple(sorted(rows, key=lambda row: int(row["seed"])))) for rows in found.values()]
    return sorted(groups, key=_place)


def is_whole(group: Group) -> bool:
    """Whether it neither stops early nor goes on longer than usual: such runs begin just like others."""
    normal = usual(group["benchmark"], group["scale"])
    return all(group[name] == normal[name] for name in ("tasks", "last_rounds"))


def is_usual(group: Group, but: Sequence[str] = ()) -> bool:
    """Whether cell and learner are in the usual setting of their benchmark and scale, but for these settings."""
    return not _unusual(group, [name for name in (*OF_CELL, *OF_LEARNER) if name not in (*HARMLESS, *but)])


def by_scale(groups: Sequence[Group]) -> dict[str, list[Group]]:
    """What a summary is about, each scale apart: cells in their usual setting.

    Where these have nothing to compare AccuACL with, all that are neither cut nor prolonged, or else all.
    """
    found = {}
    for scale in dict.fromkeys(str(group["scale"]) for group in groups):
        these = [group for group in groups if group["scale"] == scale]
        sets = [[g for g in these if is_usual(g)], [g for g in these if is_whole(g)]]
        found[scale] = next((some for some in sets if _compares(some)), these)
    return found


def is_pooled(groups: Iterable[Group]) -> bool:
    """Whether a benchmark is there in several settings."""
    names = [name for name in (*OF_CELL, *OF_LEARNER) if name not in HARMLESS or name == "benchmark"]
    settings = {tuple(group[name] for name in names) for group in groups}
    return len(settings) > len({setting[names.index("benchmark")] for setting in settings})


def own_names(groups: Sequence[Group]) -> list[str]:
    """Which AccuACL is compared with the others: the usual one, or those with other options if it is not there."""
    names = list(dict.fromkeys(group.strategy for group in groups if group["strategy"] == "accuacl"))
    return ["accuacl"] if "accuacl" in names else names


def at_scale(scale: str, scales: Sequence[str], text: str) -> str:
    """The sentence, with its scale where there are several."""
    if len(scales) == 1:
        return text
    return f"At {scale} scale, {text if text.startswith('accuacl') else text[0].lower() + text[1:]}"


def usual(benchmark: str, scale: str) -> dict[str, Any]:
    """The settings that a run has which sets none."""
    fields = {name: field.default for name, field in Config.model_fields.items()}
    return fields | DEFAULTS.get(benchmark, OWN).get(scale, {}) | {"benchmark": benchmark, "scale": scale}


def show(value: Any) -> str:
    """A setting's value in words.

    >>> show(2 / 3), show(None), show("once")
    ('0.6667', 'unset', 'once')
    """
    return "unset" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def say(setting: str, value: Any) -> str:
    """The setting and its value in words.

    >>> say("weight_decay", 0.1), say("tasks", 3), say("tasks", 1)
    ('weight decay 0.1', 'first 3 tasks', 'first task')
    """
    if setting == "tasks" and value:
        return f"first {value} tasks" if value > 1 else "first task"
    return f"{setting.replace('_', ' ')} {show(value)}"


def _unusual(group: Group, names: Iterable[str]) -> list[str]:
    normal = usual(group["benchmark"], group["scale"])
    return [say(name, group[name]) for name in names if group[name] != normal[name]]


def _compares(groups: Sequence[Group]) -> bool:
    """Whether AccuACL and another strategy are there in one cell."""
    found: dict[object, set[bool]] = {}
    for group in groups:
        if group["strategy"] != "full":
            found.setdefault((group.cell, group.learner), set()).add(group["strategy"] == "accuacl")
    return any(len(kinds) == 2 for kinds in found.values())


def _value(row: Row, metric: str) -> float | None:
    if metric in ("picked_least", "picked_most"):
        extreme = min if metric == "picked_least" else max
        shares = [extreme(counts) * len(counts) / sum(counts) for counts in row.get("picked") or [] if sum(counts)]
        return float(np.mean(shares)) if shares else None
    value = row.get(metric)
    return None if value is None else float(value)


def _place(group: Group) -> tuple[Any, ...]:
    """Where it comes: known names in the paper's order, then others, `full` last."""
    benchmarks = list(DEFAULTS)
    cell = [f"{value:>24}" if isinstance(value, int) else str(value) for value in group.cell]
    strategy = str(group["strategy"])
    return (
        _index(group["benchmark"], benchmarks),
        group["memory"],
        group.title.count(","),  # the usual settings first
        cell,
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
