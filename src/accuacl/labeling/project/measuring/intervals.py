"""95 % confidence intervals for shares and for the change of a share, which hold for small counts too."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

Z = 1.959963984540054  # two-sided 95 %


@dataclass(frozen=True)
class Estimate:
    """A value in percent, its confidence interval, and how many examples it comes from."""

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
    p, z2 = right / count, Z * Z
    middle, half = p + z2 / (2 * count), Z * math.sqrt(p * (1 - p) / count + z2 / (4 * count * count))
    low = (middle - half) / (1 + z2 / count) if right else 0.0
    high = (middle + half) / (1 + z2 / count) if right < count else 1.0
    return Estimate(100 * p, 100 * low, 100 * high, count)


@lru_cache(maxsize=4096)  # the same few counts come again for every task and round
def exact(right: int, count: int) -> Estimate:
    """A share with the interval of Clopper and Pearson, which is never too narrow.

    >>> estimate = exact(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (44.4, 80.0, 97.5)
    """
    from scipy.special import betaincinv  # not scipy.stats, which takes a second to import

    low = float(betaincinv(right, count - right + 1, 0.025)) if right else 0.0
    high = float(betaincinv(right + 1, count - right, 0.975)) if right < count else 1.0
    return Estimate(100 * right / count, 100 * low, 100 * high, count)


def change(lost: int, gained: int, count: int) -> Estimate:
    """By how much a share has fallen, when `lost` of the same examples were right before and are wrong now, and
    `gained` the other way round; with the paired interval of Bonett and Price (2012), made for small samples.

    >>> estimate = change(3, 1, 20)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (-12.4, 10.0, 30.6)
    """
    a, b, n = (lost + 1) / (count + 2), (gained + 1) / (count + 2), count + 2
    half = Z * math.sqrt((a + b - (a - b) ** 2) / n)
    low, high = max(-1.0, a - b - half), min(1.0, a - b + half)
    return Estimate(100 * (lost - gained) / count, 100 * low, 100 * high, count)


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over tasks, each with the same weight. Its interval combines theirs, after Zou and Donner (2008).

    For shares give the `exact` ones: intervals that are each a little too narrow combine to one far too narrow.

    >>> estimate = mean([exact(8, 10), exact(10, 10)])
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (66.4, 90.0, 98.7)
    """
    value = sum(e.value for e in estimates) / len(estimates)
    below = math.sqrt(sum((e.value - e.low) ** 2 for e in estimates)) / len(estimates)
    above = math.sqrt(sum((e.high - e.value) ** 2 for e in estimates)) / len(estimates)
    return Estimate(value, value - below, value + above, sum(e.count for e in estimates))
