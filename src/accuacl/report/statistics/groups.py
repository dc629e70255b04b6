"""Groups of runs that differ in their seed only, and what to call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from accuacl.experiment import DEFAULTS, Config
from accuacl.report.statistics.metrics import MeanStd, mean_std
from accuacl.report.statistics.settings import (
    LEARNER_SETTINGS,
    NEUTRAL_SETTINGS,
    SETUP_SETTINGS,
    STRATEGY_SETTINGS,
    defaults,
    describe,
)

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
    for row in rows:
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
