"""Strategies where pool and memory hold the same classes: what their formulas say then."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from accuacl import Features, fisher, select, strategy_names
from effort import times

RNG = np.random.default_rng(0)
LOOKS_AT_MEMORY = {
    "kcenter+memory", "badge+memory", "coverage+memory", "fisher-ratio", "accuacl", "accuacl-magnitude",
    "accuacl-distribution", "accuacl-full", "accuacl+uniform", "accuacl+coverage",
}  # fmt: skip


def clusters(centres, each=12):
    """Examples around centres on the axes; the model is fairly sure of each one's class, which is its centre."""
    of = np.repeat(centres, each)
    h = 3 * np.eye(4)[of] + 0.2 * RNG.normal(size=(len(of), 4))
    p = np.full((len(of), 4), 0.1) + 0.6 * np.eye(4)[of]
    return Features(h, p), of


@pytest.mark.parametrize("name", strategy_names())
def test_a_memory_of_the_pools_own_classes_is_as_good_as_any(name):
    """Every strategy picks as it must, with a memory of the very same examples too."""
    pool, _ = clusters([0, 1, 2])
    for memory in (clusters([0, 1])[0], pool):
        picked = select(name, pool=pool, budget=9, labelled=pool.rows(slice(0, 3)), memory=memory, past=100, seed=1)
        assert len(set(picked.indices.tolist())) == 9
        assert all(np.isfinite(values).all() for values in picked.scores.values())


@pytest.mark.parametrize("name", sorted(set(strategy_names()) - LOOKS_AT_MEMORY))
def test_the_others_do_not_look_at_the_memory(name):
    pool, _ = clusters([0, 1, 2])
    with_, without = (
        select(name, pool=pool, budget=6, memory=memory, past=100 if memory else 0, seed=1).indices
        for memory in (clusters([0, 3])[0], None)
    )
    np.testing.assert_array_equal(with_, without)


@pytest.mark.parametrize("name", ["kcenter+memory", "coverage+memory"])
def test_what_the_memory_holds_of_a_class_that_comes_back_is_not_asked_for_first(name):
    pool, of = clusters([0, 1, 2])
    first = select(name, pool=pool, budget=1, memory=clusters([0, 1])[0], past=100).indices
    assert of[first] == 2


def test_badge_with_memory_keeps_away_from_the_classes_it_holds():
    pool, of = clusters([0, 1, 2])
    memory = clusters([0, 1])[0]
    drawn = [
        int(of[select("badge+memory", pool=pool, budget=1, memory=memory, past=9, seed=s).indices[0]])
        for s in range(40)
    ]
    assert np.bincount(drawn, minlength=3)[2] > 30


def test_coverage_alone_starts_from_this_tasks_labels_and_covers_a_returning_class_again():
    pool, of = clusters([0, 1, 2])
    memory, labelled = clusters([0, 1])[0], pool.rows(slice(0, 3))
    plain = select("coverage", pool=pool, budget=2, labelled=labelled, memory=memory, past=100).indices
    assert set(of[plain]) == {1, 2}
    assert of[select("coverage+memory", pool=pool, budget=1, labelled=labelled, memory=memory, past=100).indices] == 2


def test_lambda_makes_the_mean_over_past_and_pool_whatever_their_classes():
    """Theorem 4.1 needs no disjoint classes: the target is the mean embedding of past and pool together."""
    past, pool = clusters([0, 1, 2], each=20)[0], clusters([1, 2, 3], each=12)[0]

    def mean(*parts):
        a = np.concatenate([part.probabilities * (1 - part.probabilities) for part in parts]).astype(float)
        g = np.concatenate([np.square(part.embeddings) for part in parts]).astype(float)
        return a.T @ g / len(a)

    lam = fisher.past_weight(len(past), len(pool))
    np.testing.assert_allclose(lam * mean(past) + (1 - lam) * mean(pool), mean(past, pool), rtol=1e-12)


def test_a_class_balanced_memory_of_a_long_tail_weighs_its_classes_alike():
    """What does not hold: the memory's mean is the past's only if it is a fair sample of the past."""
    past = Features(np.repeat(np.eye(4)[:2], [90, 10], axis=0), np.full((100, 2), 0.5))
    fair, balanced = (past.rows(np.r_[0:n, 90 : 90 + m]) for n, m in ((9, 1), (5, 5)))
    np.testing.assert_allclose(np.square(fair.embeddings).mean(0), np.square(past.embeddings).mean(0))
    assert np.square(balanced.embeddings).mean(0)[1] == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(times(10, 100)))
def test_formulas_are_their_definitions_where_pool_and_memory_share_examples_and_classes(seed):
    """A memory of the pool's own examples, of others from the same clusters, and of a class that the pool lacks."""
    rng = np.random.default_rng(seed)
    pool = _drawn(rng, int(rng.integers(8, 40)), [0, 1, 2])
    same = pool.rows(rng.choice(len(pool), 5, replace=False))
    near, other = _drawn(rng, 6, [1, 2]), _drawn(rng, 4, [3])
    parts = (same, near, other)
    memory = Features(
        np.concatenate([part.embeddings for part in parts]), np.concatenate([part.probabilities for part in parts])
    )
    labelled, budget, past = pool.rows(slice(0, 3)), 6, 50
    lam = past / (past + len(pool) + len(labelled))
    given = {"pool": pool, "budget": budget, "labelled": labelled, "memory": memory, "past": past}
    L = np.longdouble
    for variant in ("released", "paper"):
        expected = reference.accuacl(pool, budget, memory, lam, 3, variant, dtype=L)
        np.testing.assert_array_equal(select("accuacl", keep=3, variant=variant, **given).indices, expected)
    np.testing.assert_array_equal(
        select("kcenter+memory", **given).indices, reference.kcenter(pool, budget, [labelled, memory], L)
    )
    draws = np.random.default_rng(seed).random(budget)
    np.testing.assert_array_equal(
        select("badge+memory", seed=seed, **given).indices, reference.badge(pool, draws, memory, dtype=L)
    )
    covered, _ = reference.coverage(pool, budget, labelled, None, L, memory=memory)
    np.testing.assert_array_equal(select("coverage+memory", **given).indices, covered)
    ratio, _ = reference.fisher_ratio(pool, budget, labelled, memory, lam, 1.0, dtype=L)
    np.testing.assert_array_equal(select("fisher-ratio", ridge=1.0, **given).indices, ratio)


def _drawn(rng, count, centres):
    """Examples around centres on the axes; the model has its doubts about each."""
    of = rng.choice(centres, count)
    h = 2 * np.eye(4)[of] + 0.5 * rng.normal(size=(count, 4))
    p = rng.dirichlet(np.full(4, 0.5), count) + np.eye(4)[of]
    return Features(h.astype(np.float32), (p / p.sum(axis=1, keepdims=True)).astype(np.float32))
