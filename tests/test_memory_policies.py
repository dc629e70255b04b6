"""Herding and coverage: what they keep, by their definitions, and how the order of a class outlives a smaller quota."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.experiments.memory import Memory, class_balanced
from accuacl.experiments.memory.policies import (
    coverage,
    coverage_order,
    herding,
    herding_order,
    mixed,
    typical,
    typical_order,
)
from accuacl.strategies import clusters_of
from accuacl.strategies.facility import unit
from effort import times

TIE = 1e-11
ORDERED = {"herding": herding, "coverage": coverage, "typical": typical, "mixed": mixed}
IDS = np.arange(100, 160)
LABELS = IDS % 3


def rows(seed: int, count: int | None = None) -> np.ndarray:
    """Examples at length 1, with copies and zeros among them."""
    rng = np.random.default_rng(seed)
    n, d = count or int(rng.integers(1, 30)), int(rng.integers(1, 6))
    x = rng.normal(size=(n, d)) + rng.normal(size=d)
    x[rng.random(n) < 0.1] = 0
    return unit(x[rng.integers(0, n, n)] if seed % 2 else x)


def first_of_the_smallest(values: dict[int, float]) -> int:
    return min(row for row, value in values.items() if value <= min(values.values()) + TIE)


@pytest.mark.parametrize("seed", range(times(40, 400)))
def test_herding_is_icarls(seed):
    x, kept = rows(seed), []
    while len(kept) < len(x):
        away = {row: np.linalg.norm(x.mean(0) - x[[*kept, row]].mean(0)) for row in set(range(len(x))) - set(kept)}
        kept.append(first_of_the_smallest(away))
    picks = herding_order(x, len(x))
    chosen = [np.linalg.norm(x.mean(0) - x[picks[: k + 1]].mean(0)) for k in range(len(x))]
    wanted = [np.linalg.norm(x.mean(0) - x[kept[: k + 1]].mean(0)) for k in range(len(x))]
    assert sorted(picks.tolist()) == list(range(len(x)))
    np.testing.assert_allclose(chosen, wanted, atol=1e-6)
    assert picks[: max(1, len(x) // 2)].tolist() == kept[: max(1, len(x) // 2)]


@pytest.mark.parametrize("seed", range(times(40, 400)))
def test_coverage_stands_for_the_class(seed):
    x = rows(seed)
    n = len(x)
    squares = np.square(x[:, None] - x[None]).sum(-1)
    share = min(1.0, max(1 / 20, 1 / max(1, n - 1)))
    width = float(np.median(np.quantile(squares, share, axis=1))) if n > 1 else 1.0
    width = width if width > 1e-20 else squares.mean() if squares.mean() > 1e-20 else 1.0
    kernel, kept = np.exp(-squares / width), []
    for _ in range(n):
        best = kernel[kept].max(0) if kept else np.zeros(n)
        gains = {row: np.maximum(kernel[row] - best, 0).sum() for row in set(range(n)) - set(kept)}
        top = max(gains.values())
        tied = [row for row, gain in gains.items() if gain >= top * (1 - 1e-12) and top > 1e-9]
        kept.append(min(tied) if tied else min(gains))
    picks = coverage_order(x, n)
    assert sorted(picks.tolist()) == list(range(n))
    reached = [kernel[picks[: k + 1]].max(0).sum() for k in range(n)]
    np.testing.assert_allclose(reached, [kernel[kept[: k + 1]].max(0).sum() for k in range(n)], rtol=1e-9)


@pytest.mark.parametrize("seed", range(times(10, 100)))
def test_typical_examples_of_ever_more_clusters(seed):
    x = rows(seed)
    n, picks, distinct = len(x), typical_order(x, len(x)).tolist(), np.unique(x, axis=0)
    assert sorted(picks) == list(range(n))
    far = np.sqrt(np.square(x[:, None] - x[None]).sum(-1))
    distance = np.round([np.sort(np.delete(far[i], i))[:20].mean() if n > 1 else 0.0 for i in range(n)], 9)
    assert distance[picks[0]] == distance.min()
    for count in range(n):
        assert typical_order(x, count).tolist() == picks[:count]
    for number in (2, 4, 8):
        if number <= len(distinct):
            place = np.unique(x, axis=0, return_inverse=True)[1].ravel()
            clusters = clusters_of(distinct.astype(np.float32), number, 0)[place]
            assert set(clusters[picks[:number]]) == set(clusters), "at most so many are enough for a pick in each"


def test_mixed_takes_one_that_covers_and_one_by_chance_in_turn():
    x, none = np.random.default_rng(0).normal(size=(60, 4)), Memory.empty()
    kept = mixed(none, IDS, np.zeros(60, int), x, 6, seed=3)
    ranked = kept.ids[np.argsort(kept.keys)].tolist()
    by_chance = class_balanced(none, IDS, np.zeros(60, int), 60, seed=3)
    by_chance = by_chance.ids[np.argsort(by_chance.keys)].tolist()
    covering = IDS[coverage_order(unit(x), 6)].tolist()
    both = [id_ for pair in zip(covering, by_chance[:6], strict=True) for id_ in pair]
    assert ranked == list(dict.fromkeys(both))[:6]


@pytest.mark.parametrize("keep", ORDERED.values(), ids=ORDERED)
def test_classes_have_the_quotas_of_the_class_balanced_memory(keep):
    x = np.random.default_rng(0).normal(size=(60, 4))
    labels = np.repeat([0, 1, 2], [3, 20, 37])
    for capacity in (0, 1, 2, 7, 12, 59, 100):
        kept = keep(Memory.empty(), IDS, labels, x, capacity, seed=5)
        balanced = class_balanced(Memory.empty(), IDS, labels, capacity, seed=5)
        np.testing.assert_array_equal(np.bincount(kept.labels, minlength=3), np.bincount(balanced.labels, minlength=3))
        np.testing.assert_array_equal(kept.ids, np.sort(kept.ids))
        np.testing.assert_array_equal(kept.labels, labels[kept.ids - 100])


@pytest.mark.parametrize(
    ("keep", "order"), [(herding, herding_order), (coverage, coverage_order), (typical, typical_order)]
)
def test_a_smaller_quota_cuts_the_tail_of_the_order(keep, order):
    x = np.random.default_rng(1).normal(size=(60, 4))
    first = keep(Memory.empty(), IDS[:40], np.zeros(40, int), x[:40], 20, seed=0)
    ranked = IDS[:40][order(unit(x[:40]), 20)]
    np.testing.assert_array_equal(first.ids[np.argsort(first.keys)], ranked)
    # Another class comes, seen by another model: the first keeps its order and loses its tail.
    features = np.random.default_rng(2).normal(size=(40, 4))
    second = keep(first, IDS[40:], np.ones(20, int), features, 20, seed=1)
    np.testing.assert_array_equal(np.sort(second.ids[second.labels == 0]), np.sort(ranked[:10]))
    np.testing.assert_array_equal(np.sort(second.keys[second.labels == 1]), np.arange(10))


@pytest.mark.parametrize("keep", ORDERED.values(), ids=ORDERED)
def test_a_class_that_comes_back_is_put_in_order_anew(keep):
    x = np.random.default_rng(3).normal(size=(60, 4))
    first = keep(Memory.empty(), IDS[:30], LABELS[:30], x[:30], 12, seed=0)
    again = np.concatenate([x[first.ids - 100], x[30:]])
    second = keep(first, IDS[30:], LABELS[30:], again, 12, seed=0)
    alone = keep(
        Memory.empty(), np.append(first.ids, IDS[30:]), np.append(first.labels, LABELS[30:]), again, 12, seed=0
    )
    for name, array in alone.to_arrays().items():
        np.testing.assert_array_equal(array, second.to_arrays()[name])


@pytest.mark.parametrize("keep", ORDERED.values(), ids=ORDERED)
def test_logits_stay_with_their_examples_and_ids_are_kept_once(keep):
    x, logits = np.random.default_rng(4).normal(size=(60, 4)), np.stack([IDS, -IDS], 1)
    kept = keep(Memory.empty(), IDS, LABELS, x, 20, 0, logits)
    np.testing.assert_array_equal(kept.logits[:, 0], kept.ids)
    twice = keep(kept, IDS, LABELS, np.concatenate([x[kept.ids - 100], x]), 20, 0, logits)
    np.testing.assert_array_equal(twice.ids, kept.ids)
    np.testing.assert_array_equal(twice.logits, kept.logits)
