"""The fast strategies pick what their dense definitions pick, on hundreds of random problems."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from accuacl import Features, fisher, select
from accuacl.strategies.fisher_ratio import Ratio
from effort import times
from problems import Problem, features, random_problem, with_copies

L = np.longdouble


def nasty(kind: str) -> Problem:
    """Problems that broke other implementations."""
    rng = np.random.default_rng(7)
    pool = features(rng, 120, 9, 5)
    h, p = pool.embeddings.copy(), pool.probabilities.copy()
    if kind == "all equal":
        h[:], p[:] = h[0], p[0]
    elif kind == "zero":
        h[:] = 0
    elif kind == "some zero":
        h[::3] = 0
    elif kind == "one-hot":
        p[:] = np.eye(5, dtype=np.float32)[rng.integers(0, 5, 120)]
    elif kind == "near one-hot":
        p[:] = 1e-7
        p[np.arange(120), rng.integers(0, 5, 120)] = 1 - 4e-7
    elif kind == "overconfident":
        p[:] = 1e-25
        p[np.arange(120), rng.integers(0, 5, 120)] = 1
        p[:, 0] += rng.uniform(0, 1e-24, 120).astype(np.float32) * (p[:, 0] < 1)
    elif kind == "far from the origin":
        h += 1e4
    elif kind == "huge":
        h *= 1e15
    elif kind == "one giant":
        h[17] *= 1e6
    elif kind == "grid":
        h[:] = rng.integers(0, 2, h.shape)
    others = features(rng, 12, 9, 5, scale=1e15 if kind == "huge" else 1)
    return Problem(Features(h, p), others, with_copies(rng, others), budget=20)


NASTY = [
    "all equal",
    "zero",
    "some zero",
    "one-hot",
    "near one-hot",
    "overconfident",
    "far from the origin",
    "huge",
    "one giant",
    "grid",
]
PROBLEMS = [*range(times(50, 200)), *NASTY]


def problem_of(which, **limits) -> Problem:
    return nasty(which) if isinstance(which, str) else random_problem(which, **limits)


@pytest.mark.parametrize("variant", ["released", "paper"])
@pytest.mark.parametrize("which", PROBLEMS)
def test_accuacl(which, variant):
    problem = problem_of(which)
    rng = np.random.default_rng(0 if isinstance(which, str) else which)
    lam, keep, chunk = float(rng.choice([0, 0.6, 1])), int(rng.integers(1, 6)), int(rng.integers(0, 9))
    options = {"lam": lam, "keep": keep, "variant": variant, "memory": problem.memory, "chunk": chunk}
    picked = select("accuacl", pool=problem.pool, budget=problem.budget, **options).indices
    expected = reference.accuacl(problem.pool, problem.budget, problem.memory, lam, keep, variant, dtype=L)
    if np.array_equal(picked, expected):
        return
    # Only examples whose divergences are equal but for rounding may have been exchanged.
    everyone = select("accuacl-distribution", pool=problem.pool, budget=len(problem.pool), **options)
    divergence = np.empty(len(problem.pool))
    divergence[everyone.indices] = everyone.scores["distribution"]
    exchanged = divergence[np.setxor1d(picked, expected)]
    assert len(exchanged)
    assert np.ptp(exchanged) <= 1e-11 * exchanged.max() + 1e-15


@pytest.mark.parametrize("variant", ["released", "paper"])
@pytest.mark.parametrize("only", ["", "distribution", "magnitude"])
def test_accuacl_and_its_ablations_rarely_need_that_exemption(variant, only):
    same = 0
    for seed in range(100):
        problem = random_problem(seed, largest_scale=30)
        options = {"memory": problem.memory, "lam": 0.6, "keep": 3, "variant": variant}
        picked = select("-".join(["accuacl", only]).rstrip("-"), pool=problem.pool, budget=problem.budget, **options)
        expected = reference.accuacl(problem.pool, problem.budget, problem.memory, 0.6, 3, variant, dtype=L, only=only)
        same += np.array_equal(picked.indices, expected)
    assert same >= 93


@pytest.mark.parametrize("which", PROBLEMS)
def test_accuacl_scores_are_those_of_the_picks(which):
    problem = problem_of(which)
    options = {"pool": problem.pool, "budget": problem.budget, "memory": problem.memory, "past": 100}
    both = select("accuacl", **options)
    assert (np.diff(both.scores["magnitude"]) <= 1e-9 * both.scores["magnitude"].max()).all()
    lam = fisher.past_weight(100, len(problem.pool))
    mean = fisher.mix(fisher.FisherSum.of(problem.pool), fisher.FisherSum.of(problem.memory), lam)
    target = fisher.Target.of(mean, 5)
    for name in ("accuacl", "accuacl-magnitude", "accuacl-distribution"):
        got = select(name, **options)
        rows = problem.pool.rows(got.indices)
        np.testing.assert_array_equal(got.scores["magnitude"], fisher.magnitude(rows, target))
        np.testing.assert_array_equal(got.scores["distribution"], fisher.distribution(rows, target))


@pytest.mark.parametrize("which", PROBLEMS)
def test_kcenter(which):
    problem = problem_of(which, most=150)
    chunk = 0 if isinstance(which, str) else which % 9
    pool, budget = problem.pool, problem.budget
    none = problem.labelled.rows(slice(0, 0))
    for labelled in (problem.labelled, none):
        got = select("kcenter", pool=pool, budget=budget, labelled=labelled, chunk=chunk)
        expected = reference.kcenter(pool, budget, [labelled], L)
        np.testing.assert_array_equal(got.indices, expected)
    got = select("kcenter+memory", pool=pool, budget=budget, labelled=problem.labelled, memory=problem.memory)
    expected = reference.kcenter(pool, budget, [problem.labelled, problem.memory], L)
    np.testing.assert_array_equal(got.indices, expected)
    centres = np.concatenate([s.embeddings for s in (problem.labelled, problem.memory)]).astype(L)
    for i, row in enumerate(got.indices):
        seen = np.concatenate([centres, pool.embeddings[got.indices[:i]].astype(L)])
        if len(seen):
            distance = np.sqrt(np.square(seen - pool.embeddings[row].astype(L)).sum(axis=1).min())
            assert got.scores["distance"][i] == pytest.approx(float(distance), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("start", [2e38, 1e25, 1e3, 1e-38])
@pytest.mark.parametrize("pool", [1.0, 1e-30, 1e20])
def test_kcenter_with_labelled_examples_of_another_size(pool, start):
    rng = np.random.default_rng(1)
    some, labelled = features(rng, 80, 5, 2, scale=pool), features(rng, 4, 5, 2, scale=start / 4)
    got = select("kcenter", pool=some, budget=20, labelled=labelled).indices
    np.testing.assert_array_equal(got, reference.kcenter(some, 20, [labelled], L))


@pytest.mark.parametrize("logits", [60, 200])
def test_badge_of_an_overconfident_model(logits):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(300, 10)) * logits
        e = np.exp(z - z.max(axis=1, keepdims=True)).astype(np.float32)
        pool = Features(rng.normal(size=(300, 8)).astype(np.float32), e / e.sum(axis=1, keepdims=True))
        draws = np.random.default_rng(0).random(300)
        np.testing.assert_array_equal(
            select("badge", pool=pool, budget=300).indices, reference.badge(pool, draws, dtype=L)
        )


@pytest.mark.parametrize("which", PROBLEMS)
def test_badge_with_the_same_draws(which):
    problem = problem_of(which)
    pool, count = problem.pool, min(problem.budget, len(problem.pool))
    for seed in (0, 1):
        draws = np.random.default_rng(seed).random(count)
        got = select("badge", pool=pool, budget=problem.budget, seed=seed, chunk=5).indices
        np.testing.assert_array_equal(got, reference.badge(pool, draws, dtype=L))
        got = select("badge+memory", pool=pool, budget=problem.budget, seed=seed, memory=problem.memory).indices
        np.testing.assert_array_equal(got, reference.badge(pool, draws, problem.memory, dtype=L))


@pytest.mark.parametrize(
    "which",
    [*range(times(25, 200)), *(kind for kind in NASTY if kind not in ("huge", "one giant", "far from the origin"))],
)
def test_bait(which):
    problem = problem_of(which, largest_scale=30, most=times(40, 60))
    chunk = 0 if isinstance(which, str) else which % 5
    pool, budget = problem.pool.rows(slice(0, times(40, 120))), min(problem.budget, times(6, 10))
    for labelled in (problem.labelled, None):
        got = select("bait", pool=pool, budget=budget, labelled=labelled, chunk=chunk)
        np.testing.assert_array_equal(got.indices, reference.bait(pool, budget, labelled, dtype=L))


@pytest.mark.parametrize("seed", range(20))
def test_bait_gain_is_by_how_much_the_trace_falls(seed):
    rng = np.random.default_rng(seed)
    pool = features(rng, 30, 3, 3)
    got = select("bait", pool=pool, budget=1, oversample=1)
    h, p = pool.embeddings.astype(float), pool.probabilities.astype(float)
    V = (np.sqrt(p)[:, :, None, None] * (np.eye(3) - p[:, None, :])[..., None] * h[:, None, None, :]).reshape(30, 3, 9)
    F = np.einsum("nkj,nkl->jl", V, V) / 30
    M = 0.01 * np.eye(9)
    traces = [np.trace(np.linalg.inv(M + v.T @ v) @ F) for v in V]
    assert got.indices[0] == np.argmin(traces)
    assert got.scores["gain"][0] == pytest.approx(np.trace(F) / 0.01 - min(traces), rel=1e-6)


@pytest.mark.parametrize("which", PROBLEMS)
def test_uncertainty(which):
    problem = problem_of(which)
    p = problem.pool.probabilities.astype(L)
    ordered = np.sort(p, axis=1)
    for name, score, values in (
        ("entropy", "entropy", -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)),
        ("least-confidence", "confidence", ordered[:, -1]),
        ("margin", "margin", ordered[:, -1] - (ordered[:, -2] if p.shape[1] > 1 else 0)),
    ):
        got = select(name, pool=problem.pool, budget=problem.budget, chunk=3)
        expected = reference.uncertainty(problem.pool, problem.budget, name, L)
        np.testing.assert_array_equal(got.indices, expected)
        np.testing.assert_allclose(got.scores[score], values[got.indices].astype(float), atol=1e-12)


@pytest.mark.parametrize("which", PROBLEMS)
def test_coverage(which):
    problem = problem_of(which, most=120)
    pool, n = problem.pool, len(problem.pool)
    chunk = 0 if isinstance(which, str) else which % 9
    margin = np.sort(pool.probabilities.astype(float), axis=1)[:, ::-1]
    uncertain = 1 - (margin[:, 0] - (margin[:, 1] if pool.K > 1 else 0))
    for name, weights in (("coverage", None), ("uncertain-coverage", uncertain if uncertain.any() else None)):
        for labelled in (problem.labelled, None):
            for budget in {problem.budget, n} if n < 20 else {problem.budget}:
                got = select(name, pool=pool, budget=budget, labelled=labelled, chunk=chunk)
                picks, gains = reference.coverage(pool, budget, labelled, weights, L)
                np.testing.assert_array_equal(got.indices, picks)
                np.testing.assert_allclose(got.scores["gain"], gains.astype(float), rtol=1e-6, atol=1e-9)
    for memory in (problem.memory, pool.rows(slice(0, max(1, n // 2))), None):  # other classes, the same examples, none
        got = select("coverage+memory", pool=pool, budget=budget, labelled=problem.labelled, memory=memory, chunk=chunk)
        picks, gains = reference.coverage(pool, budget, problem.labelled, None, L, memory=memory)
        np.testing.assert_array_equal(got.indices, picks)
        np.testing.assert_allclose(got.scores["gain"], gains.astype(float), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("which", PROBLEMS)
def test_fisher_ratio(which):
    problem = problem_of(which, most=120)
    pool, n = problem.pool, len(problem.pool)
    rng = np.random.default_rng(0 if isinstance(which, str) else which)
    chunk, ridge, lam = int(rng.integers(0, 9)), float(10 ** rng.uniform(-2, 1)), float(rng.choice([0, 0.6, 1]))
    for labelled, memory in ((problem.labelled, problem.memory), (None, problem.memory), (None, None)):
        for uncertainty in ("weighed", "ignored"):
            given = {"labelled": labelled, "memory": memory, "lam": lam, "ridge": ridge, "uncertainty": uncertainty}
            for budget in {problem.budget, n} if n < 20 else {problem.budget}:
                got = select("fisher-ratio", pool=pool, budget=budget, chunk=chunk, **given)
                picks, gains = reference.fisher_ratio(pool, budget, **given, dtype=L)
                np.testing.assert_array_equal(got.indices, picks)
                np.testing.assert_allclose(got.scores["gain"], gains.astype(float), rtol=1e-6, atol=1e-12 * gains[0])


@pytest.mark.parametrize("seed", range(times(10, 40)))
def test_fisher_ratio_with_more_columns_than_rows(seed):
    rng = np.random.default_rng(seed)
    pool = with_copies(rng, features(rng, int(rng.integers(2, 40)), 45, 4, 0.3))
    known = features(rng, 6, 45, 4), features(rng, int(rng.integers(0, 9)), 45, 4)
    given = dict(zip(("labelled", "memory"), known, strict=True)) | {"lam": 0.7, "ridge": 0.5}
    got = select("fisher-ratio", pool=pool, budget=30, **given)
    picks, gains = reference.fisher_ratio(pool, 30, **given, dtype=L)
    np.testing.assert_array_equal(got.indices, picks)
    np.testing.assert_allclose(got.scores["gain"], gains.astype(float), rtol=1e-9)


@pytest.mark.parametrize("columns", [12, 260])  # fewer than rows, and more
def test_fisher_ratio_over_many_blocks_of_picks(columns):
    rng = np.random.default_rng(columns)
    pool, memory = features(rng, 220, columns, 5, 0.3), features(rng, 30, columns, 5)
    got = select("fisher-ratio", pool=pool, budget=150, memory=memory, past=220, ridge=0.1)
    picks, gains = reference.fisher_ratio(pool, 150, None, memory, 0.5, 0.1)
    np.testing.assert_array_equal(got.indices, picks)
    np.testing.assert_allclose(got.scores["gain"], gains, rtol=1e-8)
    assert got.scores["gain"].sum() == pytest.approx(_trace(pool, memory, []) - _trace(pool, memory, got.indices))


def _trace(pool, memory, picks):
    """tr(M^-1 T) with lam = 0.5 and a ridge of 0.1."""
    x, past = (h / np.linalg.norm(h, axis=1)[:, None] for h in (pool.embeddings.astype(float), memory.embeddings))
    u, v = (1 - np.diff(np.sort(some.probabilities.astype(float))[:, -2:])[:, 0] for some in (pool, memory))
    M = 0.1 * np.eye(x.shape[1]) + past.T @ past + x[picks].T @ x[picks]
    T = (x.T * u) @ x / len(x) / 2 + (past.T * v) @ past / len(past) / 2
    return np.trace(np.linalg.solve(M, T))


def test_fisher_ratio_is_computed_anew_where_digits_are_lost(monkeypatch):
    rng = np.random.default_rng(0)
    pool = with_copies(rng, features(rng, 60, 5, 3))
    computed = []
    compute = Ratio.compute
    monkeypatch.setattr(Ratio, "compute", lambda *given: (computed.append(1), compute(*given))[1])
    got = select("fisher-ratio", pool=pool, budget=60, ridge=1e-6)
    np.testing.assert_array_equal(got.indices, reference.fisher_ratio(pool, 60, ridge=1e-6, dtype=L)[0])
    assert len(computed) > 1
