"""How many labels the default of projects needs for what others reach with all: lines between means, and intervals."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from paired import crossing
from project_study import share


def curve(*accuracies: float, spread: float = 0.0) -> dict[int, dict[int, float]]:
    """Accuracies at 100, 200, ... labels, which differ by seed."""
    return {100 * (i + 1): {seed: a + spread * seed for seed in range(10)} for i, a in enumerate(accuracies)}


def goal(accuracy: float, spread: float = 0.0) -> dict[int, float]:
    return {seed: accuracy + spread * seed for seed in range(10)}


@pytest.mark.parametrize(
    ("wanted", "labels"), [(60, 100), (50, 100), (65, 150), (70, 200), (69, 190), (80, 400), (75, 300), (81, np.inf)]
)
def test_where_the_lines_reach_it(wanted, labels):
    assert crossing(curve(60, 70, 75, 80), goal(wanted), list(range(10))) == labels


def test_without_spread_the_interval_is_the_number():
    assert share(curve(60, 70, 75, 80), goal(65), 400) == "150 (38 %; 150 to 150)"
    assert share(curve(60, 70, 75, 80), goal(60), 400) == "at most 100 (25 %; 100 to 100)"
    assert share(curve(60, 70, 75, 80), goal(81), 400) == "not reached"


def test_seeds_that_differ_alike_do_not_widen_the_interval_and_others_do():
    assert share(curve(60, 70, 75, 80, spread=0.5), goal(65, spread=0.5), 400) == "150 (38 %; 150 to 150)"
    low, high = share(curve(60, 70, 75, 80), goal(63, spread=0.5), 400).rstrip(")").split("; ")[1].split(" to ")
    assert 130 < float(low) < 150 < float(high) < 165  # the goal's mean is 65.25 and its standard error 0.45
    assert share(curve(60, 70, 75, 80), goal(77, spread=0.6), 400).endswith("to more than all)")
