"""Which settings tell runs apart, what their defaults are, and how they read in words."""

from __future__ import annotations

from typing import Any

from accuacl.experiment import DEFAULTS, OWN, Config

STRATEGY_SETTINGS = ("variant", "keep", "lam", "lam_from", "oversample", "share", "uncertainty", "first_round")
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
    fields = {name: field.default for name, field in Config.model_fields.items()}
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
    if setting == "tasks" and value:
        return f"first {value} tasks" if value > 1 else "first task"
    return f"{setting.replace('_', ' ')} {show(value)}"
