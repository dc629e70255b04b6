"""Groups of runs that differ in their seed only: their settings, their names and the order in which they are shown.

A group's *setup* is what the learners and strategies that are compared have in common: benchmark, memory, labels, ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from accuacl.experiments import BUILT_IN, DEFAULTS, OPTION_SETTINGS, OPTIONS, OWN, Config, Row, learners
from accuacl.experiments.report.measures import MeanStd, mean_std, value_of

Element = TypeVar("Element")
Key = TypeVar("Key")

BASELINES = ("uniform", "entropy", "least-confidence", "kcenter", "badge", "bait")  # in the paper's order
STRATEGIES = (*BASELINES, "accuacl")
SOURCE = "source"  # a setting of rows alone: the directory of a run, where two directories hold the same runs; or ""
STRATEGY_SETTINGS = (
    *(name for name in Config.model_fields if name in (*OPTION_SETTINGS, "lam_from", OPTIONS)),
    "first_round",
    "sample",  # only some strategies use it
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
    """Runs that differ only in their seed; `group["memory"]` is one of these settings."""

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
        """Return the strategy or learner and those of its options that are not the defaults: `accuacl, lam 0.5`."""
        options = STRATEGY_SETTINGS if setting == "strategy" else LEARNER_SETTINGS
        changed = self.changed(name for name in options if name not in without)
        return ", ".join([str(self[setting]), *changed]).replace(", lam from ", " from task ")

    @cached_property
    def bound(self) -> str:
        """The kind of bound: a lower one (nothing is rehearsed), an upper one (joint training), or "" for neither.

        "no memory" is a learner without a memory that is no bound: it does something else against forgetting, or comes
        from a plugin and is unknown.
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
        """The number of labels per task, as a phrase."""
        return "all labels" if self["strategy"] == "full" else f"{self['labels']} labels a task"

    @cached_property
    def title(self) -> str:
        return self.title_without(())

    def title_without(self, ignored: Collection[str]) -> str:
        """Return the setup as a phrase: benchmark, memory, labels, scale, and changed settings, unless ignored."""
        shown = {"benchmark": str(self["benchmark"]), "memory": f"memory {self['memory']}"}
        shown["labels"] = self.labels
        words = [text for name, text in shown.items() if name not in ignored]
        words += self.changed([name for name in SETUP_SETTINGS if name not in (*shown, "scale", *ignored)])
        return f"{', '.join(words)} ({self['scale']} scale)"

    def changed(self, settings: Iterable[str]) -> list[str]:
        """Return phrases for those of the settings that differ from their defaults."""
        default = defaults(self["benchmark"], self["scale"], self["learner"])
        return [describe(name, self[name]) for name in settings if self[name] != default[name]]

    def values(self, metric: str) -> dict[int, float]:
        """Return the metric by seed, for the runs that have it."""
        values = {row["seed"]: value_of(row, metric) for row in self.rows}
        return {seed: value for seed, value in values.items() if value is not None}

    def mean_std(self, metric: str) -> MeanStd | None:
        values = list(self.values(metric).values())
        return mean_std(values) if values else None


def make_groups(rows: Iterable[Row]) -> list[Group]:
    """Group the rows by all settings but the seed, in the paper's order of benchmarks, learners and strategies."""
    names = [name for name in (*Config.model_fields, SOURCE) if name != "seed"]
    whole = ({OPTIONS: "", SOURCE: ""} | row for row in rows)
    by_settings = grouped(whole, lambda row: tuple(row[name] for name in names))
    groups = [Group(tuple(sorted(same, key=lambda row: int(row["seed"])))) for same in by_settings.values()]
    return sorted(groups, key=_paper_order)


def grouped(items: Iterable[Element], key: Callable[[Element], Key]) -> dict[Key, list[Element]]:
    """Return {key: the items with that key, in their order}.

    >>> grouped([1, 2, 3], lambda number: number % 2)
    {1: [1, 3], 0: [2]}
    """
    by_key: dict[Key, list[Element]] = {}
    for item in items:
        by_key.setdefault(key(item), []).append(item)
    return by_key


def has_default_settings(group: Group, ignored: Sequence[str] = ()) -> bool:
    """Return whether setup and learner have the defaults of their benchmark and scale, but for ignored settings."""
    names = [*SETUP_SETTINGS, *LEARNER_SETTINGS]
    return not group.changed([name for name in names if name not in (*NEUTRAL_SETTINGS, *ignored)])


def defaults(benchmark: str, scale: str, learner: str = "") -> dict[str, Any]:
    """Return the settings of a run that sets nothing but its benchmark, scale and learner."""
    fields = {name: field.default for name, field in Config.model_fields.items()} | {OPTIONS: "", SOURCE: ""}
    fields |= learners.REGISTRY[learner].settings if learner in learners.REGISTRY else {}
    return fields | DEFAULTS.get(benchmark, OWN).get(scale, {}) | {"benchmark": benchmark, "scale": scale}


def show(value: Any) -> str:
    """Return a setting's value as text.

    >>> show(2 / 3), show(None), show("once")
    ('0.6667', 'unset', 'once')
    """
    return "unset" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def describe(setting: str, value: Any) -> str:
    """Return a setting and its value as a phrase.

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


def _paper_order(group: Group) -> tuple[Any, ...]:
    """Return a sort key: the paper's names in its order, then others by name, `full` last."""
    setup = [f"{value:>24}" if isinstance(value, int) else str(value) for value in group.setup]
    strategy = str(group["strategy"])
    return (
        _index(group["benchmark"], list(DEFAULTS)),
        group["memory"],
        group.title.count(","),  # puts setups with few changed settings first
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
