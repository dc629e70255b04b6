"""AccuACL for a part of the picks: whose they are, in which order."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from accuacl import select
from accuacl.strategies.ranking import in_turn
from problems import random_problem

SEEDS = range(20)


def asked(problem, seed, **more):
    return {"pool": problem.pool, "memory": problem.memory, "past": 300, "seed": seed} | more


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0, 0.3, 0.5, 1])
def test_half_accuacl_half_uniform(seed, share):
    problem = random_problem(seed, largest_scale=30)
    n, budget = len(problem.pool), min(problem.budget, len(problem.pool))
    first = int(share * budget + 0.5)
    got = select("accuacl+uniform", **asked(problem, seed, budget=budget, share=share))
    mine = got.scores["accuacl"] == 1
    expected = select("accuacl", **asked(problem, seed, budget=first))
    np.testing.assert_array_equal(got.indices[mine], expected.indices)
    for name, scores in expected.scores.items():
        np.testing.assert_array_equal(got.scores[name][mine], scores)
    drawn = select("uniform", **asked(problem, seed, budget=n))
    rest = ~np.isin(drawn.indices, expected.indices)
    np.testing.assert_array_equal(got.indices[~mine], drawn.indices[rest][: budget - first])
    np.testing.assert_array_equal(got.scores["draw"][~mine], drawn.scores["draw"][rest][: budget - first])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("share", [0, 0.3, 0.5, 1])
def test_half_accuacl_half_coverage(seed, share):
    problem = random_problem(seed, largest_scale=30, most=80)
    budget = min(problem.budget, len(problem.pool))
    first = int(share * budget + 0.5)
    got = select("accuacl+coverage", **asked(problem, seed, budget=budget, share=share, labelled=problem.labelled))
    mine = got.scores["accuacl"] == 1
    expected = select("accuacl", **asked(problem, seed, budget=first, labelled=problem.labelled)).indices
    picks, gains = reference.coverage(
        problem.pool, budget, problem.labelled, dtype=np.longdouble, first=tuple(expected.tolist())
    )
    np.testing.assert_array_equal(got.indices[mine], expected)
    np.testing.assert_array_equal(got.indices[~mine], picks[first:])
    np.testing.assert_allclose(got.scores["gain"][mine], gains[:first].astype(float), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(got.scores["gain"][~mine], gains[first:].astype(float), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 5), (5, 0), (10, 10), (3, 17), (17, 3), (1, 1)])
def test_every_beginning_is_mixed(first, second):
    order = in_turn(first, second)
    assert sorted(order.tolist()) == list(range(first + second))
    for count in range(first + second + 1):
        of_first = (order[:count] < first).sum()
        assert abs(of_first - count * first / max(1, first + second)) <= 1
    assert (np.diff(order[order < first]) > 0).all()
    assert (np.diff(order[order >= first]) > 0).all()


@pytest.mark.parametrize("name", ["accuacl+uniform", "accuacl+coverage"])
@pytest.mark.parametrize("share", [-0.1, 1.5, "half", None])
def test_a_share_is_between_0_and_1(name, share):
    with pytest.raises(ValueError, match=r"share is .*; give a number from 0 to 1"):
        select(name, **asked(random_problem(0), 0, budget=3, share=share))
