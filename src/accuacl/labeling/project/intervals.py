"""Intervals for shares and for the change of a share, 95 % unless told otherwise. Fit for small counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Z = 1.959963984540054  # two-sided 95 %


@dataclass(frozen=True)
class Estimate:
    """A value in percent, between what and what it probably lies, and from how many examples."""

    value: float
    low: float
    high: float
    count: int


def share(right: int, count: int) -> Estimate:
    """A share with Wilson's interval.

    >>> estimate = share(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (49.0, 80.0, 94.3)
    """
    p, n = right / count, count
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return Estimate(100 * p, 100 * max(0.0, centre - half), 100 * min(1.0, centre + half), n)


def exact(right: int, count: int) -> Estimate:
    """The same with Clopper's and Pearson's interval, which is never too narrow.

    >>> estimate = exact(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (44.4, 80.0, 97.5)
    """
    from scipy.special import betaincinv  # scikit-learn brings it

    low = betaincinv(right, count - right + 1, 0.025) if right else 0.0
    high = betaincinv(right + 1, count - right, 0.975) if right < count else 1.0
    return Estimate(100 * right / count, 100 * float(low), 100 * float(high), count)


def change(lost: int, gained: int, count: int) -> Estimate:
    """By how much a share has fallen, when `lost` of the same examples were right and now are wrong, `gained` the other
    way round: paired, with the interval of Bonett and Price (2012), which holds its level in small samples.

    >>> estimate = change(3, 1, 20)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (-12.4, 10.0, 30.6)
    """
    a, b, n = (lost + 1) / (count + 2), (gained + 1) / (count + 2), count + 2
    half = Z * math.sqrt((a + b - (a - b) ** 2) / n)
    low, high = max(-1.0, a - b - half), min(1.0, a - b + half)
    return Estimate(100 * (lost - gained) / count, 100 * low, 100 * high, count)


def mean(parts: Sequence[Estimate]) -> Estimate:
    """The mean over tasks, each counting alike. Its interval is made of theirs, as by Zou and Donner (2008).

    Of shares take the `exact` ones: many intervals that are a little too narrow make one that is much so.

    >>> estimate = mean([exact(8, 10), exact(10, 10)])
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (66.4, 90.0, 98.7)
    """
    value = sum(part.value for part in parts) / len(parts)
    below = math.sqrt(sum((part.value - part.low) ** 2 for part in parts)) / len(parts)
    above = math.sqrt(sum((part.high - part.value) ** 2 for part in parts)) / len(parts)
    return Estimate(value, value - below, value + above, sum(part.count for part in parts))
