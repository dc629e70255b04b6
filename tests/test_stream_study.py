"""The tables of the study of streams: who is compared with whom, over what, and how sure one can be."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from streams import grouped, section


def rows(strategy, values, **more):
    """A run for each value, which is that of the seed; None: it has not been run."""
    usual = {"benchmark": "digits-features", "learner": "er", "strategy": strategy, "imbalance": 1.0}
    return [usual | {"seed": i, "A": v} | more for i, v in enumerate(values) if v is not None]


def lines(*runs):
    ((regime, streams),) = grouped([row for some in runs for row in some], "A").items()
    assert regime == "er on digits"
    return section(regime, streams, "uniform").split("\n")


def test_each_mean_and_difference_says_what_it_is_over_if_that_is_not_everything():
    table = lines(
        rows("uniform", [10, 20, 30, 40, 50]),
        rows("uniform", [10, 20, 30, 40, 50, 60, 70], imbalance=0.1),
        rows("badge", [12, 22, None, None, None]),
        rows("badge", [11, 21, 31, 41, 49], imbalance=0.1),
        rows("uniform", [14, 24, 34, 44, 54, 64, 74], imbalance=0.1, sampling="balanced"),
    )
    assert table[2] == "| stream | uniform | badge | uniform/balanced |"
    assert table[4] == "| tidy (5 seeds) | **30.0** | 17.0 (2) | - |"
    assert table[5] == "| long-tailed 0.1 (7 seeds) | 40.0 | 30.6 (5) | **44.0*** |"
    # seven pairs of badge, but five seeds: 1.5, 1.5, 1, 1 and -1; seven seeds of the variant: 2 / 2^7
    assert table[6] == "| minus uniform, all streams |  | +0.8 (4 of 5 seeds) | +4.0 (p 0.016) (1 of 2 streams) |"


def test_streams_that_share_a_seed_do_not_make_a_difference_surer():
    both = (("uniform", 1), ("bait", 2))
    table = lines(*(rows(name, [value] * 5, blur=blur) for blur in (0, 0.1, 0.2) for name, value in both))
    assert table[-3] == "| minus uniform, all streams |  | +1.0 (5 of 5 seeds) |"  # fifteen runs, and five seeds
    assert not any("*" in line.replace("**", "") for line in table[1:])


def test_the_best_is_compared_with_each_other_one():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=10)
    *_, empty, sentence = lines(
        rows("uniform", 50 + noise),
        rows("badge", 53 + noise),
        rows("coverage", 53.1 + noise + np.tile([1, -1], 5)),
        rows("margin", 99 + noise[:2], imbalance=0.1),  # on another stream alone: it cannot be the best over all
        rows("uniform", 50 + noise, imbalance=0.1),
        rows("badge", 53 + noise, imbalance=0.1),
        rows("coverage", 53.1 + noise + np.tile([1, -1], 5), imbalance=0.1),
    )
    assert empty == ""
    assert sentence.startswith("`coverage` has the highest mean over all streams; minus each other: badge +0.1 (p 0.")
    assert sentence.endswith(", uniform +3.1 (p 0.004).")
    assert len(lines(rows("uniform", [1, 2]))) == 6  # nobody to compare with
