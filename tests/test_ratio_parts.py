"""fisher-ratio of a pool that is read in parts: the picks of memory, in few reads."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl import Features, select
from accuacl.strategies import fisher_ratio
from accuacl.strategies.fisher_ratio import PartsRatio, Ratio, from_parts
from accuacl.strategies.parts import Part, PartsQuery
from effort import times
from problems import features, random_problem, with_copies


def read_in(pool: Features, ids, size: int, labelled=None, reads=None):
    """How to read rows, which have these ids, so many at a time."""

    def read():
        if reads is not None:
            reads.append(1)
        for first, block in pool.blocks(size):
            rows = slice(first, first + len(block))
            known = labelled[rows] if labelled is not None else np.zeros(len(block), bool)
            ids_at, keys = (lambda some, rows=rows: ids[rows][some]), (lambda rows=rows: ids[rows].astype(np.uint64))
            yield Part(first, block, known, ids_at, keys)

    return read


def both(pool, budget, size, order=None, labelled=None, memory=None, reads=None, **options):
    """The picks in memory, and from parts of the same rows in another order; ids are rows in memory."""
    order = np.arange(len(pool)) if order is None else order
    read = read_in(pool.rows(order), order, size, reads=reads)
    past = 300 if memory is not None else None
    query = PartsQuery(read, len(pool), pool.d, pool.K, budget, labelled, memory, past)
    expected = select("fisher-ratio", pool=pool, budget=budget, labelled=labelled, memory=memory, past=past, **options)
    return expected, from_parts(query, **options)


def same(expected, got):
    np.testing.assert_array_equal(got[0], expected.indices)
    np.testing.assert_allclose(
        got[1]["gain"], expected.scores["gain"], rtol=1e-6, atol=1e-12 * expected.scores["gain"].max(initial=0)
    )


@pytest.mark.parametrize("seed", range(times(60, 300)))
def test_the_picks_of_memory(seed, monkeypatch):
    problem, rng = random_problem(seed, largest_scale=30, most=150), np.random.default_rng(seed)
    n = len(problem.pool)
    if seed % 3 == 0:  # zero rows, which gain nothing
        h = problem.pool.embeddings.copy()
        h[rng.random(n) < 0.3] = 0
        problem.pool.embeddings[:] = h
    monkeypatch.setattr(fisher_ratio, "MOST", int(rng.integers(1, 9)))
    monkeypatch.setattr("accuacl.strategies.fisher_ratio.MOST", 7)
    options = {"ridge": float(10 ** rng.uniform(-2, 1)), "uncertainty": bool(seed % 2)}
    if seed % 4:
        options |= {"labelled": problem.labelled, "memory": problem.memory}
    budget = int(rng.choice([problem.budget, n, 0]))
    same(*both(problem.pool, budget, int(rng.integers(1, n + 1)), rng.permutation(n), **options))


@pytest.mark.parametrize("seed", range(5))
def test_guesses_that_fail_cost_reads_alone(seed, monkeypatch):
    rng, reads, right = np.random.default_rng(seed), [], []
    pool = with_copies(rng, features(rng, 300, 8, 4))
    monkeypatch.setattr(fisher_ratio, "near_rows", lambda n, d: 3)  # far too few to guess among
    guess, accept = Ratio.guess, PartsRatio._accept
    monkeypatch.setattr(Ratio, "guess", lambda self, outside: guess(self, -np.inf))  # and with no regard to the others
    monkeypatch.setattr(
        PartsRatio, "_accept", lambda self, steps: (accept(self, steps), right.append(not len(self.pending)))
    )
    same(*both(pool, 40, 50, rng.permutation(300), reads=reads))
    assert 2 < len(reads) <= 42  # every read but two gives a pick
    assert not all(right)


def test_few_reads_where_guesses_hold(monkeypatch):
    monkeypatch.setattr(fisher_ratio, "near_rows", lambda n, d: n)
    reads = []
    same(*both(features(np.random.default_rng(0), 800, 96, 4), 128, 300, reads=reads))
    assert len(reads) == 4  # to add up, to look at all, and one for each 64 picks


def test_everything_is_computed_anew_where_digits_are_lost(monkeypatch):
    rng, fresh = np.random.default_rng(0), []
    pool = with_copies(rng, features(rng, 60, 5, 3))
    look = PartsRatio._look
    monkeypatch.setattr(PartsRatio, "_look", lambda *given: (fresh.append(given[-1]), look(*given))[1])
    same(*both(pool, 60, 60, ridge=1e-6))
    assert sum(fresh) > 1


def test_rows_that_are_labelled_already_are_known_and_never_picked():
    rng = np.random.default_rng(1)
    pool = features(rng, 120, 6, 3)
    known = rng.random(120) < 0.3
    expected = select(
        "fisher-ratio", pool=pool.rows(np.flatnonzero(~known)), budget=200, labelled=pool.rows(np.flatnonzero(known))
    )
    read = read_in(pool, np.arange(120), 13, known)
    ids, scores = from_parts(PartsQuery(read, 120, 6, 3, 200))
    np.testing.assert_array_equal(ids, np.flatnonzero(~known)[expected.indices])
    np.testing.assert_allclose(scores["gain"], expected.scores["gain"], rtol=1e-6)


def test_a_certain_model_and_a_pool_of_zeros():
    rng = np.random.default_rng(2)
    h, p = rng.normal(size=(50, 4)), np.eye(3)[rng.integers(0, 3, 50)]
    same(*both(Features(h, p), 20, 7))
    same(*both(Features(np.zeros((50, 4)), p), 20, 7, rng.permutation(50)))
    same(*both(Features(h, p), 20, 7, memory=Features(h[:5], p[:5]), lam=1.0))
