"""`--only setting=value`: some of many runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from accuacl.base.errors import InputError
from accuacl.experiment import ALIASES, Config
from accuacl.report import show
from accuacl.sweeps import SweepRun

T = TypeVar("T")


def narrow_runs(runs: Sequence[SweepRun], only: Sequence[str]) -> list[SweepRun]:
    """The runs that all conditions let through."""
    return narrow(runs, only, lambda run, name: getattr(run.config, name))


def narrow(runs: Sequence[T], only: Sequence[str], setting: Callable[[T, str], Any]) -> list[T]:
    """The runs, or rows of results, that all conditions `name=value` let through.

    setting: gives a run's value of the setting with a name.
    """
    chosen = list(runs)
    for condition in only:
        name, equals, text = condition.partition("=")
        name = ALIASES.get(name, name.replace("-", "_"))
        if not equals or name not in Config.model_fields:
            raise InputError(f"--only {condition}: give setting=value with a setting's name, like strategy=accuacl.")
        there = dict.fromkeys(setting(run, name) for run in runs)
        values = _meant(text, there)  # the whole text first: orders of classes have commas
        for word in [] if values else map(str.strip, text.split(",")):
            if not (meant := _meant(word, there)):
                known = "; ".join(map(show, there))
                raise InputError(f"--only {condition}: there is no {name} {word} here, only {known}.")
            values |= meant
        chosen = [run for run in chosen if setting(run, name) in values]
    if not chosen:
        raise InputError(f"--only {' --only '.join(only)} leaves no run; give less.")
    return chosen


def _meant(word: str, values: Iterable[Any]) -> set[Any]:
    """The values that a word stands for: the one it spells, or fractions that it rounds.

    >>> _meant("0", [0.0, 0.5]), _meant("0.667", [0.5, 2 / 3]), _meant("unset", [None, 0.5]), _meant("1000", [1001])
    ({0.0}, {0.6666666666666666}, {None}, set())
    """
    spelt = {value for value in values if word in (str(value), show(value))}
    try:
        number = float(word)
    except ValueError:
        return spelt
    numbers = [value for value in values if isinstance(value, int | float)]
    spelt |= {value for value in numbers if value == number}
    return spelt or {
        value for value in numbers if isinstance(value, float) and math.isclose(value, number, rel_tol=1e-3)
    }
