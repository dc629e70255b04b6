"""Wrong input: one sentence saying what was given and what to do, before anything is computed."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl import Features, select
from problems import features

RNG = np.random.default_rng(0)
POOL, OTHER = features(RNG, 20, 4, 3), features(RNG, 5, 4, 3)
WIDE, MORE = features(RNG, 5, 6, 3), features(RNG, 5, 4, 2)


@pytest.mark.parametrize(
    ("strategy", "arguments", "says"),
    [
        ("accuacl", {"budget": -1}, "budget is -1; give a whole number"),
        ("accuacl", {"budget": 2.5}, r"budget is 2.5; give a whole number"),
        ("accuacl", {"budget": True}, "budget is True"),
        ("accuacl", {"seed": -3}, "seed is -3"),
        ("accuacl", {"past": -1}, "past is -1"),
        ("accuacl", {"chunk": "x"}, "chunk is 'x'"),
        ("accuacl", {"pool": np.ones((3, 3))}, r"pool is a ndarray; give Features"),
        ("accuacl", {"memory": np.ones((3, 3))}, r"memory is a ndarray; give Features"),
        ("accuacl", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-magnitude", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-distribution", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl-full", {"memory": OTHER}, "memory was given without past or lam"),
        ("accuacl", {"memory": WIDE, "past": 5}, "the pool has d=4 and K=3 but memory has d=6 and K=3"),
        ("kcenter", {"labelled": MORE}, "the pool has d=4 and K=3 but labelled has d=4 and K=2"),
        ("accuacl", {"lam": 1.5}, "lam is 1.5"),
        ("accuacl", {"lam": float("nan")}, "lam is nan"),
        ("accuacl", {"lam": "much"}, "lam is 'much'"),
        ("accuacl", {"keep": 0}, "keep is 0"),
        ("accuacl", {"keep": 2.0}, "keep is 2.0"),
        ("accuacl", {"variant": "new"}, "variant is 'new'; give 'released' or 'paper'"),
        ("accuacl", {"oversample": 0.5}, "oversample is 0.5"),
        ("accuacl", {"total_classes": 2}, "total_classes is 2; give at least the 3 classes seen"),
        ("accuacl", {"lamda": 1}, "accuacl has no option 'lamda'; its options are variant, keep"),
        ("entropy", {"keep": 1}, "entropy has no option 'keep'; it has none"),
        ("accuacle", {}, "there is no strategy 'accuacle'; the strategies are uniform, entropy"),
        ("bait", {"lam": 0}, "lam is 0; give a number above 0"),
        ("bait", {"oversample": None}, "oversample is None"),
    ],
)
def test_refused(strategy, arguments, says):
    with pytest.raises(ValueError, match=says) as raised:
        select(strategy, **({"pool": POOL, "budget": 3} | arguments))
    assert "\n" not in str(raised.value)


def test_bait_refuses_before_allocating_and_says_how_many_bytes():
    n, d, K = 50, 2_000, 100
    pool = Features(np.ones((n, d), np.float32), np.full((n, K), 1 / K, np.float32))
    need = 40 * (d * K) ** 2 + 16 * n * K**2  # 1.6 TB: an attempt would not go unnoticed
    with pytest.raises(ValueError, match=f"bait needs {need:,} bytes"):
        select("bait", pool=pool, budget=5)
    with pytest.raises(ValueError, match="may use 1,000"):
        select("bait", pool=POOL, budget=5, memory_limit=1000)


def test_memory_weight_can_come_from_lam_or_past():
    by_past = select("accuacl", pool=POOL, budget=3, memory=OTHER, labelled=OTHER, past=75)
    by_lam = select("accuacl", pool=POOL, budget=3, memory=OTHER, lam=0.75)  # 75 / (75 + 20 + 5)
    np.testing.assert_array_equal(by_past.indices, by_lam.indices)
    np.testing.assert_array_equal(by_past.scores["distribution"], by_lam.scores["distribution"])


@pytest.mark.parametrize(
    ("variant", "total", "keep"), [("released", 12, 20), ("released", None, 5), ("paper", 10, 10), ("paper", 12, 5)]
)
def test_default_keep(variant, total, keep):
    pool = features(np.random.default_rng(4), 60, 30, 3)
    default = select("accuacl", pool=pool, budget=9, variant=variant, total_classes=total)
    given = select("accuacl", pool=pool, budget=9, variant=variant, keep=keep)
    np.testing.assert_array_equal(default.scores["distribution"], given.scores["distribution"])
    other = select("accuacl", pool=pool, budget=9, variant=variant, keep=keep + 1)
    assert not np.array_equal(default.scores["distribution"], other.scores["distribution"])
