"""When to stop: how many more labels a task needs for an accuracy, from its own learning curve.

Errors fall as a power of the number of labels, error(n) = e (n / n1)^-b. Which e and b fit is weighed by how likely
they make the held-out answers after each round. These are about the same few items every time, so R rounds do not count
as R times as much evidence: each has the weight 1 / R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import counted

TARGETS = (60, 70, 80, 90, 95, 99)  # the accuracies, in percent, that are forecast
FASTEST = 1.5  # the largest b that is tried; measured learning curves have 0.1 to 1
Array = NDArray[np.float64]
FARTHEST = 20.0  # nothing is forecast beyond this many times the present labels
FEW = 10  # this many labels, or a tenth of those there are, hardly change an accuracy
FAR = 5  # points: a target farther away than this is not reached with few labels


@dataclass(frozen=True)
class Measured:
    """A measurement after a round: the labels of the task so far, and how many of its held-out items were right."""

    labels: int
    right: int
    held: int

    @property
    def percent(self) -> float:
        return 100 * self.right / self.held


@dataclass(frozen=True)
class Forecast:
    """How many more labels an accuracy in percent takes, with a 95 % interval; None: more than can be foreseen.

    left: how many items of the pool are still to be labelled, if that is known; `high` is None if it exceeds them.
    most: the accuracy if all of them were labelled. last: the last measurement.
    """

    target: int
    labels: int | None
    low: int | None
    high: int | None
    left: int | None = None
    most: float | None = None
    last: Measured | None = None

    @property
    def too_few(self) -> bool:
        """Whether the target takes more items than the pool has."""
        return self.left is not None and self.most is not None and self.most < self.target

    @property
    def in_doubt(self) -> bool:
        """Whether the curve has almost or fully reached the target, but the last held-out answers are below it."""
        if self.last is None or self.labels is None or self.too_few:
            return False
        if self.labels > max(FEW, self.last.labels / 10):
            return False
        below = self.target - self.last.percent
        return below >= FAR if self.labels else below > 0

    @property
    def text(self) -> str:
        """The forecast as a sentence.

        >>> Forecast(90, 60, 20, None).text
        'about 60 more labels for 90 % (at least 20)'
        >>> Forecast(90, 60, 0, None).text
        'about 60 more labels for 90 %, perhaps many more'
        >>> Forecast(90, None, 0, None).text
        'how many labels 90 % takes cannot be foreseen yet'
        >>> Forecast(90, 600, 200, None, left=150, most=81.6).text
        'the pool has too few items for 90 %: labelling the 150 items left leads to about 82 %'
        >>> Forecast(90, 600, 200, None, left=0, most=81.6).text
        'nothing is left to label; 90 % takes more data'
        >>> Forecast(70, 1, 0, None, last=Measured(85, 9, 15)).text
        'by its learning curve it should be near 70 %; its 15 held-out examples say 60 %'
        """
        if self.left == 0 and self.too_few:
            return f"nothing is left to label; {self.target} % takes more data"
        if self.left is not None and self.most is not None and self.too_few:
            reached = min(round(self.most), self.target - 1)
            text = f"the pool has too few items for {self.target} %"
            if self.last is not None and reached <= round(self.last.percent):
                return text
            return f"{text}: labelling the {counted(self.left, 'item')} left leads to about {reached} %"
        if self.in_doubt and self.last is not None:
            held = f"{counted(self.last.held, 'held-out example')} {'says' if self.last.held == 1 else 'say'}"
            return f"by its learning curve it should be near {self.target} %; its {held} {self.last.percent:.0f} %"
        if self.labels is None:
            least = f" (at least {self.low} more)" if self.low else ""
            return f"how many labels {self.target} % takes cannot be foreseen yet{least}"
        about = f"about {self.labels} more label{'s' if self.labels != 1 else ''} for {self.target} %"
        if self.high is not None:
            return f"{about} ({self.low} to {self.high})"
        return f"{about} (at least {self.low})" if self.low else f"{about}, perhaps many more"


def forecast(curve: Sequence[Measured], target: int, left: int | None = None, since: int = 0) -> Forecast | None:
    """Return how many more labels the target takes; None before two rounds were measured or without held-out items.

    left: how many items of the pool are still to be labelled. since: how many labels came after the last measurement.
    """
    points = _usable(curve)
    if not points:
        return None
    last, now = points[-1], points[-1].labels + since
    e, b, weights = _weighed(points)
    with np.errstate(over="ignore"):
        reached = points[0].labels * (e / (1 - target / 100)) ** (1 / b)
    quantiles = _quantiles(np.maximum(0, reached - now), weights)
    low, middle, high = (_rounded(value, now) for value in quantiles)
    if left is None:
        return Forecast(target, middle, low, high, last=last)
    most = predicted_accuracy(curve, [now + left])[0][1]
    if quantiles[2] > left:
        high = None
    if most >= target:  # otherwise the target takes more labels than the pool has items
        low, middle, high = (None if labels is None else min(labels, left) for labels in (low, middle, high))
    return Forecast(target, middle, low, high, left, most, last)


def predicted_accuracy(curve: Sequence[Measured], labels: Sequence[float]) -> list[tuple[float, float, float]]:
    """Return the accuracy in percent that the curve predicts for each number of labels, as (low, middle, high).

    The outer two are a 95 % interval. The list is empty if nothing can be forecast.
    """
    points = _usable(curve)
    if not points:
        return []
    e, b, weights = _weighed(points)
    errors = [_quantiles(np.minimum(1.0, e * (n / points[0].labels) ** -b), weights) for n in labels]
    return [(100 - 100 * high, 100 - 100 * middle, 100 - 100 * low) for low, middle, high in errors]


def _usable(curve: Sequence[Measured]) -> list[Measured]:
    """Return the rounds with labels and held-out items; none if they are too few for a curve."""
    points = [point for point in curve if point.held and point.labels]
    return points if len({point.labels for point in points}) >= 2 else []


def _weighed(points: Sequence[Measured]) -> tuple[Array, Array, Array]:
    """Return the values of e and b on a grid, and how likely each pair is."""
    e, b = np.meshgrid(np.linspace(0.005, 0.995, 199), np.linspace(0.02, FASTEST, 100), indexing="ij")
    likelihood = np.zeros_like(e)
    for point in points:
        error = np.clip(e * (point.labels / points[0].labels) ** -b, 1e-9, 1 - 1e-9)
        likelihood += point.right * np.log1p(-error) + (point.held - point.right) * np.log(error)
    return e, b, np.exp((likelihood - likelihood.max()) / len(points))


def _quantiles(values: Array, weights: Array) -> tuple[float, float, float]:
    """Return (low, middle, high) of weighted values: 95 % of the weight lies between the outer two."""
    order = np.argsort(values.ravel())
    share = np.cumsum(weights.ravel()[order]) / weights.sum()
    low, middle, high = (float(values.ravel()[order[np.searchsorted(share, q)]]) for q in (0.025, 0.5, 0.975))
    return low, middle, high


def next_target(curve: Sequence[Measured]) -> int | None:
    """The first target above the accuracy now, by the last held-out answers and by the curve; None without any."""
    if not curve or not curve[-1].held:
        return None
    expected = [middle for _, middle, _ in predicted_accuracy(curve, [curve[-1].labels])]
    reached = max([curve[-1].percent, *expected])
    return next((target for target in TARGETS if target > reached), None)


def _rounded(labels: float, now: int) -> int | None:
    """Return a number of labels rounded to tens, or above 1000 to hundreds, as a forecast is no more precise."""
    if labels > FARTHEST * now:
        return None
    unit = 1 if labels < 20 else 10 if labels < 1000 else 100
    return int(unit * round(labels / unit))
