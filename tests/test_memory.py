"""Replay buffers: uniform, balanced, the same whatever the order, and defined at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from accuacl.base.errors import InputError
from accuacl.experiments.memory import Memory, append_scored, class_balanced, replace_scored, reservoir
from accuacl.experiments.memory.policies import quotas

IDS = np.arange(60)
LABELS = IDS % 3
POLICIES = {"reservoir": reservoir, "class-balanced": class_balanced}


def same(a, b):
    assert a.to_arrays().keys() == b.to_arrays().keys()
    for name, array in a.to_arrays().items():
        np.testing.assert_array_equal(array, b.to_arrays()[name])


def test_the_reservoir_is_uniform():
    n, capacity, trials = 60, 13, 3000
    counts = np.zeros(n)
    for seed in range(trials):
        memory = reservoir(Memory.empty(), IDS[:40], LABELS[:40], capacity, seed)
        memory = reservoir(memory, IDS[40:], LABELS[40:], capacity, seed + 10**6)  # each task may have its own seed
        assert len(memory) == capacity
        counts[memory.ids] += 1
    p = capacity / n
    statistic = ((counts - trials * p) ** 2).sum() / (trials * p * (1 - p)) * (n - 1) / n
    assert chi2.cdf(statistic, n - 1) < 0.999
    assert chi2.cdf(statistic, n - 1) > 0.001


@pytest.mark.parametrize("keep", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("capacity", [2, 13, 40])
@pytest.mark.parametrize("labels", [IDS % 3, IDS * IDS // 500, np.sort(IDS % 7)])
def test_the_order_of_offers_does_not_matter(keep, capacity, labels):
    """One at a time, in parts or all at once, under one seed: hashes and odd places go by it.

    GSS's memories (append_scored, replace_scored) are not meant to: who enters is asked of those inside at that time.
    """
    logits = np.stack([IDS, -IDS], 1)
    whole = keep(Memory.empty(), IDS, labels, capacity, 7, logits)
    assert len(whole) == capacity
    for seed in range(20):
        order, memory = np.random.default_rng(seed).permutation(60), Memory.empty()
        for part in np.array_split(order, 1 + 3 * seed):
            memory = keep(memory, IDS[part], labels[part], capacity, 7, logits[part])
        same(memory, whole)


@pytest.mark.parametrize("keep", POLICIES.values(), ids=POLICIES)
def test_an_id_is_kept_once(keep):
    memory = Memory.empty()
    for epoch in range(4):
        memory = keep(memory, IDS, LABELS, 50, epoch)
        assert len(np.unique(memory.ids)) == len(memory) == 50
        np.testing.assert_array_equal(memory.labels, memory.ids % 3)


def test_the_queried_first_are_not_the_kept():
    from accuacl.base.randomness import hash_ids

    picked = np.argsort(hash_ids(0, np.arange(10_000)))[:1000]  # in ten rounds of 100
    kept = reservoir(Memory.empty(), picked, picked * 0, 200, seed=0).ids
    assert 5 < np.isin(kept, picked[:100]).sum() < 40  # 20 expected


def test_quotas_are_equal_and_short_classes_give_their_room_away():
    labels = np.repeat([0, 1, 2, 3], [3, 50, 50, 50])
    memory = class_balanced(Memory.empty(), np.arange(153), labels, 40, seed=1)
    counts = np.bincount(memory.labels)
    assert counts[0] == 3
    assert sorted(counts[1:]) == [12, 12, 13]
    memory = class_balanced(memory, np.arange(200, 230), np.full(30, 9), 40, seed=2)
    counts = np.bincount(memory.labels, minlength=10)
    assert counts[0] == 3
    assert sorted(counts[[1, 2, 3, 9]]) == [9, 9, 9, 10]


def test_fewer_examples_than_room_are_all_kept():
    for keep in POLICIES.values():
        np.testing.assert_array_equal(keep(Memory.empty(), IDS[::-1], LABELS[::-1], 100, 0).ids, IDS)


def test_a_memory_smaller_than_the_number_of_classes():
    which = set()
    for seed in range(20):
        memory = class_balanced(Memory.empty(), np.arange(100), np.arange(100) % 10, 4, seed)
        assert len(memory) == len(np.unique(memory.labels)) == 4
        same(memory, class_balanced(Memory.empty(), np.arange(100), np.arange(100) % 10, 4, seed))
        later = class_balanced(memory, np.arange(100, 200), 10 + np.arange(100) % 10, 4, seed)
        assert len(later) == len(np.unique(later.labels)) == 4
        which.add(tuple(memory.labels))
    assert len(which) > 10


@pytest.mark.parametrize("seed", range(20))
def test_quotas_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    counts, order = rng.integers(0, 9, 6), rng.permutation(6)
    capacity = int(rng.integers(0, 50))
    room = np.zeros(6, int)
    while room.sum() < min(capacity, counts.sum()):  # one place at a time to whoever has least
        room[min(np.flatnonzero(room < counts), key=lambda c: (room[c], order[c]))] += 1
    np.testing.assert_array_equal(quotas(counts, capacity, order), room)


@pytest.mark.parametrize("keep", POLICIES.values(), ids=POLICIES)
def test_nothing_is_kept_without_room(keep):
    assert len(keep(Memory.empty(), IDS, LABELS, 0, 0)) == 0
    assert len(keep(Memory.empty(), IDS[:0], LABELS[:0], 5, 0)) == 0


def test_logits_stay_with_their_rows_and_older_ones_may_be_narrower():
    old = class_balanced(Memory.empty(), IDS[:30], LABELS[:30], 10, 0, logits=np.stack([IDS[:30]] * 2, 1))
    both = class_balanced(old, IDS[30:], LABELS[30:] + 3, 10, 0, logits=np.stack([IDS[30:]] * 4, 1))
    assert both.logits is not None
    assert both.logits.dtype == np.float32
    past = both.ids < 30
    assert 0 < past.sum() < 10
    np.testing.assert_array_equal(both.logits[:, 0], both.ids)
    assert np.isnan(both.logits[past, 2:]).all()
    assert np.isfinite(both.logits[~past]).all()


def test_to_arrays_and_back():
    full = Memory(IDS, LABELS, IDS.astype(np.uint64), IDS / 7, np.ones((60, 2), np.float32))
    for memory in (full, Memory.empty(), reservoir(Memory.empty(), IDS, LABELS, 5, 0)):
        same(Memory.from_arrays(memory.to_arrays()), memory)
    with pytest.raises(InputError, match="one row of everything per id"):
        Memory.from_arrays({"ids": IDS, "labels": LABELS[:2]})


def test_scored_examples_fill_the_room_and_no_more():
    memory = append_scored(Memory.empty(), IDS[:4], LABELS[:4], np.full(4, 0.1), 6)
    memory = append_scored(memory, IDS[2:9], LABELS[2:9], IDS[2:9] / 10, 6)
    np.testing.assert_array_equal(memory.ids, [0, 1, 2, 3, 4, 5])
    np.testing.assert_allclose(memory.scores, [0.1, 0.1, 0.1, 0.1, 0.4, 0.5])


def test_scored_slots_are_drawn_by_weight_and_taken_by_odds():
    memory = Memory(np.arange(3), np.zeros(3, np.int64), scores=np.array([0.5, 0.5, -1.0]))
    weights, new = np.array([3.0, 1.0, 0.0]), (np.array([9]), np.array([1]), np.array([-0.5]))
    gone = np.zeros(4)
    for seed in range(4000):
        after = replace_scored(memory, *new, weights, seed)
        gone[np.flatnonzero(after.ids == 9) if 9 in after.ids else 3] += 1
    # odds 1.5 : 0.5 that the drawn one goes, drawn 3 : 1
    np.testing.assert_allclose(gone / 4000, [9 / 16, 3 / 16, 0, 1 / 4], atol=0.03)
    np.testing.assert_array_equal(memory.ids, [0, 1, 2])
    many = replace_scored(memory, IDS[10:20], LABELS[10:20], np.full(10, -1.0), weights, 0)
    assert len(np.unique(many.ids)) == 3
    assert 2 in many.ids  # its own odds are 0
