"""Strategies for rare classes, held to their definitions by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from accuacl import Features, Query, select
from accuacl.experiments import LoopState, choose, make
from accuacl.experiments.data import Task
from accuacl.strategies import REGISTRY
from accuacl.strategies.rare_classes import alternating, threshold, undecided
from effort import examples
from problems import features, random_problem

SIGNS = st.lists(st.sampled_from([-1, 0, 1]), max_size=12)


@given(SIGNS)
@examples(50, 500)
def test_the_threshold_separates_best(signs):
    values = [sum(signs[:j]) - sum(signs[j:]) for j in range(len(signs) + 1)]
    best = [j for j, value in enumerate(values) if value == max(values)]
    assert threshold(np.array(signs, np.int64)) == best[len(best) // 2]


@given(SIGNS)
@examples(50, 500)
def test_what_is_undecided_lies_between_the_leading_and_the_trailing_labels(signs):
    first, last = undecided(np.array(signs, np.int64))
    first_other = signs.index(-1) if -1 in signs else len(signs)
    leading = [i for i, sign in enumerate(signs) if sign == 1 and i < first_other]
    trailing = [i for i, sign in enumerate(signs) if sign == -1 and 1 not in signs[i:]]
    assert first == (leading[-1] + 1 if leading else 0)
    assert last == (trailing[0] if trailing else len(signs))
    assert first <= last


def test_outward_goes_on_with_the_side_that_is_left():
    assert alternating(np.array([3, 1, 0, 2]), 0, 4).tolist() == [3, 1, 0, 2]
    assert alternating(np.array([3, 1, 0, 2]), 3, 4).tolist() == [0, 2, 1, 3]
    assert alternating(np.array([3, 1, 0, 2]), 4, 2).tolist() == [0, 1]


def by_definition(pool, labelled, classes, budget, searched=()):
    """DIRECT after what the search has found, one class and one row after the other."""
    p = np.concatenate([pool.probabilities, labelled.probabilities]).astype(np.float64)
    n, counts = len(pool), np.bincount(classes, minlength=p.shape[1])
    walks = {}
    for k in np.flatnonzero(counts) if len(classes) else range(p.shape[1]):
        order = sorted(range(len(p)), key=lambda i: (-(p[i, k] - p[i].max()), -p[i, k], i))
        signs = [0 if i < n else 1 if classes[i - n] == k else -1 for i in order]
        values = [sum(signs[:j]) - sum(signs[j:]) for j in range(len(signs) + 1)]
        best = [j for j, value in enumerate(values) if value == max(values)]
        place = best[len(best) // 2]
        sides = [[i for i in reversed(order[:place]) if i < n], [i for i in order[place:] if i < n]]
        walk = []
        while sides[0] or sides[1]:
            walk += [side.pop(0) for side in sides if side]
        walks[k] = walk
    picks = list(searched)
    while len(picks) < min(budget, n):
        for k in sorted(walks, key=lambda k: (counts[k], k)):
            left = [i for i in walks[k] if i not in picks]
            if left and len(picks) < budget:
                picks.append(left[0])
    return picks


@given(seed=st.integers(0, 10**6), budget=st.integers(0, 30), alone=st.booleans())
@examples(15, 200)
def test_direct_is_its_definition(seed, budget, alone):
    problem = random_problem(seed, most=25)
    rng = np.random.default_rng(seed)
    labelled = problem.labelled if problem.labelled is not None else problem.pool.rows(slice(0, 0))
    classes = rng.integers(1 if alone else problem.pool.K, size=len(labelled))
    picked = select("direct", pool=problem.pool, budget=budget, labelled=labelled, classes=classes, search=0)
    assert picked.indices.tolist() == by_definition(problem.pool, labelled, classes, budget)


def undecided_rows(pool, labelled, classes, k):
    """The rows of the pool between the leading labels of k and the trailing labels of others."""
    p = np.concatenate([pool.probabilities, labelled.probabilities]).astype(np.float64)
    n = len(pool)
    order = sorted(range(len(p)), key=lambda i: (-(p[i, k] - p[i].max()), -p[i, k], i))
    known = [(place, classes[i - n] == k) for place, i in enumerate(order) if i >= n]
    first, last = -1, len(order)
    for place, own in known:  # from the front, as long as the labels are of k
        if not own:
            break
        first = place
    for place, own in reversed(known):  # from the back, as long as they are of others
        if own:
            break
        last = place
    return [i for i in order[first + 1 : last] if i < n]


@given(seed=st.integers(0, 10**6), budget=st.integers(0, 30))
@examples(15, 200)
def test_direct_searches_for_rare_classes_where_they_are_undecided_and_walks_outward_then(seed, budget):
    problem = random_problem(seed, most=25)
    rng = np.random.default_rng(seed)
    labelled = problem.labelled if problem.labelled is not None else problem.pool.rows(slice(0, 0))
    classes = rng.integers(problem.pool.K, size=len(labelled))
    picked = select("direct", pool=problem.pool, budget=budget, labelled=labelled, classes=classes, seed=seed)
    counts = np.bincount(classes, minlength=problem.pool.K)
    wanted = [k for k in range(problem.pool.K) if counts[k]] if len(classes) else list(range(problem.pool.K))
    rare = [k for k in wanted if counts[k] < len(classes) / len(wanted)] or wanted
    between = {k: undecided_rows(problem.pool, labelled, classes, k) for k in rare}
    count = min(budget, len(problem.pool))
    searched = min(round(0.5 * count), len(set().union(*between.values())))
    found, for_class = picked.indices[:searched].tolist(), picked.scores["class"][:searched].astype(int).tolist()
    assert all(row in between[k] for row, k in zip(found, for_class, strict=True))
    shares = {k: for_class.count(k) for k in rare}
    for k in rare:  # a class has fewer than another only where all of its rows are taken
        assert shares[k] >= max(shares.values()) - 1 or set(between[k]) <= set(found)
    assert picked.indices.tolist() == by_definition(problem.pool, labelled, classes, count, found)


def test_what_direct_searches_narrows_as_labels_arrive():
    p = np.linspace(0.001, 0.999, 999)
    pool = Features(np.ones((999, 1)), np.stack([p, 1 - p], axis=1))
    truth = np.where(p > 0.9, 0, 1)
    rows, widths = np.array([2, 998]), []
    for _ in range(3):
        left = np.setdiff1d(np.arange(999), rows)
        known, classes = pool.rows(rows), truth[rows]
        picked = select("direct", pool=pool.rows(left), budget=4, labelled=known, classes=classes, search=1)
        low, high = p[rows[classes == 1]].max(), p[rows[classes == 0]].min()
        inside = p[left[picked.indices]]
        assert ((inside > low) & (inside < high)).all()
        widths.append(high - low)
        rows = np.append(rows, left[picked.indices])
    assert widths[0] > 2 * widths[1] > 4 * widths[2] > 0


def test_half_of_the_picks_search_where_the_rare_class_is_undecided():
    p = np.linspace(0.01, 0.99, 99)
    pool = Features(np.ones((99, 1)), np.stack([p, 1 - p], axis=1))
    known = Features(np.ones((6, 1)), [[0.955, 0.045], [0.305, 0.695], *[[0.1, 0.9]] * 4])
    picked = select("direct", pool=pool, budget=20, labelled=known, classes=[0, 1, 1, 1, 1, 1])
    rare, near = picked.indices[:10], picked.indices[10:]
    assert (picked.scores["class"][:10] == 0).all()
    assert ((p[rare] < 0.955) & (p[rare] > 0.305)).all()
    assert sorted(picked.scores["class"][10:]) == [0] * 5 + [1] * 5
    assert np.ptp(p[near]) < np.ptp(p[rare])


def test_anchoral_asks_the_inner_strategy_about_the_rows_most_like_each_class():
    rng = np.random.default_rng(0)
    pool, labelled = features(rng, 1500, 6, 3), features(rng, 9, 6, 3)
    classes = np.array([0] * 7 + [2] * 2)
    given = {"labelled": labelled, "classes": classes, "budget": 5}
    picked = select("anchoral", pool=pool, inner="entropy", anchors=99, subpool=400, **given)
    x = pool.embeddings / np.linalg.norm(pool.embeddings, axis=1, keepdims=True)
    known = labelled.embeddings / np.linalg.norm(labelled.embeddings, axis=1, keepdims=True)
    orders = [np.argsort(-(x @ known[classes == k].T).mean(axis=1), kind="stable") for k in (0, 2)]
    inside = list(dict.fromkeys(int(row) for pair in zip(*orders, strict=True) for row in pair))[:400]
    rows = np.sort(inside)
    expected = select("entropy", pool=pool.rows(rows), budget=5)
    np.testing.assert_array_equal(picked.indices, rows[expected.indices])
    few = [
        set(select("anchoral", pool=pool, inner="margin", anchors=1, seed=seed, **given).indices) for seed in range(6)
    ]
    assert len({tuple(sorted(each)) for each in few}) > 1  # other anchors, other picks


@pytest.mark.parametrize("inner", ["uniform", "coverage", "direct", "accuacl"])
def test_anchoral_is_the_inner_strategy_where_nothing_is_labelled(inner):
    pool = features(np.random.default_rng(0), 1200, 6, 3)
    for labelled in (None, pool.rows(slice(0, 0))):
        ours = select("anchoral", pool=pool, budget=4, labelled=labelled, inner=inner)
        np.testing.assert_array_equal(ours.indices, select(inner, pool=pool, budget=4, labelled=labelled).indices)


def test_what_is_wrong_with_classes_and_inner_strategies():
    pool = features(np.random.default_rng(0), 9, 6, 3)
    for classes, why in (
        ([0], "of shape"),
        ([0, 1, 3], "classes has 3, but there are the classes 0 to 2"),
        ([0.5] * 3, "whole"),
    ):
        with pytest.raises(ValueError, match=why):
            Query(pool, 2, pool.rows(slice(0, 3)), classes=classes)
    for inner, why in (("anchoral", "give another strategy"), ("margins", "margin")):
        with pytest.raises(ValueError, match=why):
            select("anchoral", pool=pool, budget=2, inner=inner)


@pytest.mark.parametrize(("seen", "expected"), [([5, 2, 9], [1, 2, 0]), ([2, 9], None)])
def test_a_run_says_which_classes_the_labels_have(seen, expected, monkeypatch):
    """In a stream the columns of probabilities are the seen classes, in whatever order these are."""
    asked = []

    def watch(query):
        asked.append(query.classes)
        return select("uniform", pool=query.pool, budget=query.budget, seed=query.seed)

    def features_of(ids):
        return Features(np.ones((len(ids), 1)), np.full((len(ids), len(seen)), 1 / len(seen)))

    monkeypatch.setitem(REGISTRY, "watch", watch)
    ids = np.arange(6)
    state = LoopState(Task(0, (0,), ids, ids), 2, ids, 1, ids[:3], ids[:3], np.array([2, 9, 5]), np.array(seen))
    choose(make({"strategy": "watch"}), state, "watch", 1, features_of)
    assert (None if asked[0] is None else asked[0].tolist()) == expected
