"""The template that every registered strategy passes; a new one is covered by its line in the registry."""

from __future__ import annotations

import re

import numpy as np
import pytest
import threadpoolctl
import torch
from hypothesis import given, strategies as st

from accuacl import Features, get_strategy, select, strategy_names
from accuacl.experiments.checks import check_strategy
from accuacl.strategies import REGISTRY, Query
from effort import examples
from problems import Problem, features, random_problem, with_copies

RANDOM = {"uniform", "badge", "badge+memory", "typiclust", "direct", "anchoral", "accuacl+uniform"}
SIZES = [(40, 6, 4), (1, 6, 4), (40, 1, 4), (40, 6, 1), (40, 6, 2), (2, 1, 1), (40, 30, 12)]


@pytest.fixture(params=strategy_names())
def name(request):
    return request.param


@pytest.fixture(scope="module")
def problem() -> Problem:
    rng = np.random.default_rng(3)
    return Problem(*(features(rng, n, 8, 5, 0.5, 3) for n in (150, 12, 15)), budget=20)


def ask(name, problem, budget=None, **more):
    options = {"labelled": problem.labelled, "memory": problem.memory, "past": 500} | more
    return select(
        name, pool=options.pop("pool", problem.pool), budget=problem.budget if budget is None else budget, **options
    )


def check(selection, n, budget):
    assert selection.indices.dtype == np.int64
    assert len(selection) == len(np.unique(selection.indices)) == min(budget, n)
    assert ((selection.indices >= 0) & (selection.indices < n)).all()
    assert selection.scores
    for scores in selection.scores.values():
        assert scores.shape == selection.indices.shape
        assert np.isfinite(scores).all()


def same(a, b):
    np.testing.assert_array_equal(a.indices, b.indices)
    assert a.scores.keys() == b.scores.keys()
    for key in a.scores:
        np.testing.assert_allclose(a.scores[key], b.scores[key], rtol=1e-7, atol=1e-12)


def test_it_keeps_the_contract_that_plugins_are_checked_for(name):
    assert [outcome for outcome in check_strategy(name) if outcome.fault] == []


@given(seed=st.integers(0, 10**6), budget=st.integers(0, 60))
@examples(8, 50)
@pytest.mark.parametrize("name", strategy_names())
def test_unique_and_exactly_as_many_as_asked(name, seed, budget):
    problem = random_problem(seed, largest_scale=30, most=50)
    check(ask(name, problem, budget), len(problem.pool), budget)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("budget", [0, 1, 7, 1000])
def test_small_sizes_and_budgets(name, size, budget):
    n, d, K = size
    rng = np.random.default_rng(0)
    problem = Problem(*(features(rng, m, d, K) for m in (n, 5, 5)), budget)
    check(ask(name, problem), n, budget)


@pytest.mark.parametrize("kind", ["zero embeddings", "one-hot", "copies", "tiny", "huge"])
def test_degenerate_pools(name, problem, kind):
    h, p = problem.pool.embeddings.copy(), problem.pool.probabilities.copy()
    if kind == "zero embeddings":
        h[:] = 0
    elif kind == "one-hot":
        p = np.eye(5, dtype=np.float32)[p.argmax(axis=1)]
    elif kind == "copies":
        h[:], p[:] = h[0], p[0]
    else:
        h *= np.float32(1e-18 if kind == "tiny" else 1e18)
    if name == "bait" and kind == "huge":  # ridge * I is lost beside 1e36
        with pytest.raises(ValueError, match="bait's matrices are singular"):
            ask(name, problem, pool=Features(h, p))
        return
    check(ask(name, problem, pool=Features(h, p)), 150, 20)


def test_same_for_every_chunk_size(name, problem):
    pool = with_copies(np.random.default_rng(0), problem.pool)
    budget = 5 if name == "bait" else problem.budget
    whole = ask(name, problem, budget, pool=pool)
    for chunk in (1, 2, 7, 64, 10_000):
        same(ask(name, problem, budget, pool=pool, chunk=chunk), whole)


def test_same_for_every_thread_count(name):
    rng = np.random.default_rng(1)
    problem = Problem(*(features(rng, n, 40, 12, 0.3) for n in (3000 if name != "bait" else 200, 30, 30)), budget=10)
    before = torch.get_num_threads()
    try:
        answers = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            with threadpoolctl.threadpool_limits(threads):  # NumPy's matrix products have threads of their own
                answers.append(ask(name, problem))
    finally:
        torch.set_num_threads(before)
    same(answers[0], answers[1])
    same(answers[0], answers[2])


def test_same_for_every_kind_of_array(name, problem, tmp_path):
    expected = ask(name, problem)

    kinds = {
        "torch": torch.from_numpy,
        "float64": lambda x: x.astype(np.float64),
        "torch float64": lambda x: torch.from_numpy(x).double(),
        "Fortran order": np.asfortranarray,
        "big-endian": lambda x: x.astype(">f4"),
        "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    }
    for convert in kinds.values():
        sets = {
            key: Features(convert(some.embeddings), convert(some.probabilities))
            for key, some in (("pool", problem.pool), ("labelled", problem.labelled), ("memory", problem.memory))
        }
        same(ask(name, problem, **sets), expected)
    for i, array in enumerate((problem.pool.embeddings, problem.pool.probabilities)):
        np.save(tmp_path / f"{i}.npy", array)
    pool = Features(*(np.load(tmp_path / f"{i}.npy", mmap_mode="r") for i in range(2)))
    assert isinstance(pool.embeddings.base, np.memmap)
    same(ask(name, problem, pool=pool), expected)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_is_taken_at_its_value(name, problem, kind):
    """What float16 or bfloat16 hold is selected from exactly as the same numbers in float32 are."""
    if name != "bait":  # enough rows for the float32 sweeps to have something to get wrong
        problem = Problem(features(np.random.default_rng(5), 1500, 8, 5), problem.labelled, problem.memory, 100)
    pool = Features(*(torch.from_numpy(x).to(kind) for x in (problem.pool.embeddings, problem.pool.probabilities)))
    wide = pool.rows(slice(None))  # as float32 its rows need not sum to 1 closely enough to be let in
    wide.embeddings, wide.probabilities = pool.embeddings.astype(np.float32), pool.probabilities.astype(np.float32)
    same(ask(name, problem, pool=pool), ask(name, problem, pool=wide))


@pytest.mark.parametrize("seed", range(5))
def test_reordering_the_pool_reorders_the_picks(name, problem, seed):
    if name in RANDOM:
        pytest.skip("draws at random")
    order = np.random.default_rng(seed).permutation(len(problem.pool))
    shuffled = ask(name, problem, pool=problem.pool.rows(order))
    np.testing.assert_array_equal(order[shuffled.indices], ask(name, problem).indices)


def test_ties_go_to_the_smaller_index(name, problem):
    if name in RANDOM:
        pytest.skip("draws at random")
    h = np.repeat(problem.pool.embeddings[:1], 9, axis=0)
    p = np.repeat(problem.pool.probabilities[:1], 9, axis=0)
    picks = ask(name, problem, 4, pool=Features(h, p)).indices
    np.testing.assert_array_equal(picks, [0, 2, 1, 3] if name == "accuacl+coverage" else [0, 1, 2, 3])  # two, in turn


def test_seeded_where_it_is_random(name, problem):
    first = ask(name, problem, seed=1)
    same(first, ask(name, problem, seed=1))
    others = [ask(name, problem, seed=seed).indices for seed in range(2, 7)]
    if name in RANDOM:
        assert any(not np.array_equal(first.indices, other) for other in others)
    else:
        assert all(np.array_equal(first.indices, other) for other in others)


def test_progress_rises_to_the_end(name, problem):
    zero = Features(np.zeros((50, 8)), problem.pool.probabilities[:50])
    for pool, more in ((problem.pool, {}), (problem.pool, {"labelled": None, "memory": None}), (zero, {})):
        told = []
        ask(name, problem, pool=pool, progress=lambda p, told=told: told.append((p.done, p.total)), **more)
        done = [d for d, _ in told]
        assert done == sorted(done)
        assert told[-1][0] == told[-1][1]


def test_get_is_select_with_options_first(name, problem):
    query = Query(problem.pool, 20, problem.labelled, problem.memory, 500)
    same(get_strategy(name)(query), ask(name, problem))


def test_docstring_has_idea_reference_cost_and_example(name):
    text = REGISTRY[name].__doc__
    assert re.search(r"Cost: |cost: ", text)
    assert "Reference" in text or name == "uniform"
    assert ">>> " in text


def test_uniform_is_uniform():
    """Chi-square over 100 indices, 20,000 draws, and no favour for any position in the order of picks."""
    pool = Features(np.ones((100, 1)), np.ones((100, 1)))
    picks = np.array([select("uniform", pool=pool, budget=10, seed=seed).indices for seed in range(2000)])
    for drawn in (picks, picks[:, :1], picks[:, -1:]):
        counts = np.bincount(drawn.ravel(), minlength=100)
        expected = drawn.size / 100
        assert ((counts - expected) ** 2 / expected).sum() < 149.4  # the 99.9 % point of chi-square with 99 degrees


def test_uniform_of_a_shard_are_the_whole_ones_that_are_in_it():
    pool = Features(np.ones((1000, 1)), np.ones((1000, 1)))
    few, many = (select("uniform", pool=pool, budget=b, seed=5).indices for b in (10, 300))
    np.testing.assert_array_equal(few, many[:10])
