"""Groups of runs that differ in nothing but their seed, and what to call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accuacl.experiment.config import DEFAULTS, OWN, Config
from accuacl.report.collect import Row

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # the paper's, in its order
STRATEGIES = (*BASELINES, "accuacl")
LEARNERS = ("er", "gss", "der++", "er-ace")
OF_STRATEGY = ("variant", "keep", "lam", "lam_from", "oversample")
OF_LEARNER = ("learner_variant", "replay")
OF_CELL = tuple(
    name for name in Config.model_fields if name not in ("strategy", "learner", "seed", *OF_STRATEGY, *OF_LEARNER)
)


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


def whole(groups: Sequence[Group]) -> list[Group]:
    """Without those that stop early or go on longer than usual: they begin just like others and would count twice."""
    normal = {group: usual(group["benchmark"], group["scale"]) for group in groups}
    kept = [g for g in groups if all(g[name] == normal[g][name] for name in ("tasks", "last_rounds"))]
    return kept or list(groups)


def comparable(groups: Sequence[Group]) -> list[Group]:
    """Those in the usual setting of their benchmark and scale, as in the paper's main table; all if none is."""
    settings = [name for name in OF_CELL if name not in ("benchmark", "memory", "scale")]
    kept = [group for group in whole(groups) if not _unusual(group, settings)]
    return kept or whole(groups)


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

    >>> say("weight_decay", 0.1), say("tasks", 3)
    ('weight decay 0.1', 'first 3 tasks')
    """
    if setting == "tasks" and value:
        return f"first {value} tasks"
    return f"{setting.replace('_', ' ')} {show(value)}"


def _unusual(group: Group, names: Iterable[str]) -> list[str]:
    normal = usual(group["benchmark"], group["scale"])
    return [say(name, group[name]) for name in names if group[name] != normal[name]]


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
