"""What is measured of runs: names, directions, means over seeds, and which value is best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np


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

    @property
    def plain_name(self) -> str:
        """The full name without its unit.

        >>> METRICS["forgetting"].plain_name
        'forgetting'
        """
        return self.name.split(" (")[0]


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
    """The value with so many decimals, never as -0.0.

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
