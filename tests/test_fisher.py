"""The Fisher arithmetic against its definitions: autograd, the dense form, extended precision, simulation."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

import reference
from accuacl import Features, fisher
from accuacl.fisher import FisherSum, Target
from effort import examples
from problems import features, random_problem

seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("seed", range(20))
def test_theorem_4_2_against_autograd(seed):
    """f = sum_y p(y) (d log p(y) / d w)^2 for the weights of a network's last layer."""
    torch.manual_seed(seed)
    inputs, d, K = 5, int(torch.randint(1, 7, ())), int(torch.randint(1, 6, ()))
    body = torch.nn.Sequential(torch.nn.Linear(inputs, 8), torch.nn.Tanh(), torch.nn.Linear(8, d)).double()
    head = torch.nn.Linear(d, K).double()
    x = torch.randn(9, inputs, dtype=torch.float64)
    h = body(x).detach()
    with torch.no_grad():
        p = torch.softmax(head(h), 1)
    expected = torch.zeros(9, K, d, dtype=torch.float64)
    for i in range(9):
        for y in range(K):
            (gradient,) = torch.autograd.grad(torch.log_softmax(head(body(x[i])), 0)[y], head.weight)
            expected[i] += p[i, y] * gradient**2
    some = Features(h, p)
    np.testing.assert_allclose(reference.fisher_embeddings(some), expected, atol=1e-12)
    np.testing.assert_allclose(FisherSum.of(some).mean, expected.mean(0), atol=1e-12)
    every = Target.of(FisherSum.of(some).mean, keep=d)
    entries = np.empty((9, K, d))
    np.put_along_axis(entries, every.kept[None].repeat(9, 0), fisher._entries(some, every).reshape(9, K, -1), axis=2)
    np.testing.assert_allclose(entries, expected, atol=1e-6)
    np.testing.assert_allclose(fisher.magnitude(some), expected.flatten(1).norm(dim=1), rtol=1e-9)


@given(seeds, st.integers(0, 60), st.integers(0, 60))
@examples(16, 100)
def test_theorem_4_1_the_mean_of_a_union_is_the_weighted_mean_of_means(seed, past, new):
    rng = np.random.default_rng(seed)
    both = features(rng, past + new, 5, 3)
    old, young = FisherSum.of(both.rows(slice(0, past))), FisherSum.of(both.rows(slice(past, None)))
    lam = fisher.past_weight(past, new)
    dense = reference.fisher_embeddings(both).mean(axis=0) if past + new else np.zeros((3, 5))
    np.testing.assert_allclose(fisher.mix(young, old, lam), dense, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose((old + young).mean, dense, rtol=1e-12, atol=1e-15)


@given(seeds, st.integers(1, 8), st.floats(0.1, 10))
@examples(16, 100)
def test_theorem_4_3_with_the_constant_that_meets_its_constraint(seed, size, norm):
    """Among s of a given norm, sum t / s is least at s = norm t^(1/3) / sqrt(sum t^(2/3))."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.01, 10, size)
    best = norm * t ** (1 / 3) / np.sqrt((t ** (2 / 3)).sum())
    assert np.linalg.norm(best) == pytest.approx(norm)
    for scale in (1e-3, 1e-1, 1):
        other = np.abs(best * (1 + scale * rng.normal(size=(200, size)))) + 1e-12
        other *= norm / np.linalg.norm(other, axis=1, keepdims=True)
        assert ((t / other).sum(axis=1) >= (t / best).sum() * (1 - 1e-12)).all()
    papers = 2 ** (1 / 3) * norm / (t ** (2 / 3)).sum() * t ** (1 / 3)
    if size > 1:
        assert np.linalg.norm(papers) != pytest.approx(norm, rel=1e-6)


def test_theorem_b_1_by_simulation_the_memory_estimate_varies_more():
    """Var[memory + new] - Var[all] = past / all^2 * (past - m) / m * sigma^2, positive; the paper has it reversed."""
    rng = np.random.default_rng(0)
    past, new, m, trials = 60, 40, 12, 40_000
    old, young = rng.gamma(2, 1, (trials, past)), rng.gamma(3, 1, (trials, new))
    lam = past / (past + new)
    everything = lam * old.mean(axis=1) + (1 - lam) * young.mean(axis=1)
    estimate = lam * old[:, :m].mean(axis=1) + (1 - lam) * young.mean(axis=1)
    sigma2 = 2.0
    expected = past / (past + new) ** 2 * (past - m) / m * sigma2
    assert estimate.var() - everything.var() == pytest.approx(expected, rel=0.05)


def test_past_weight():
    assert fisher.past_weight(0, 10) == 0
    assert fisher.past_weight(30, 10) == 0.75
    assert fisher.past_weight(0, 0) == 0


@pytest.mark.parametrize("seed", range(40))
def test_sums_do_not_depend_on_the_parts(seed):
    """In float64 to the last digits, and after the target's rounding not at all."""
    rng = np.random.default_rng(seed)
    some = features(rng, 300, 6, 4, scale=10.0 ** rng.uniform(-3, 3))
    whole = FisherSum.of(some)
    parts = FisherSum(np.zeros((4, 6)), 0)
    order = rng.permutation(300)
    for rows in np.array_split(order, int(rng.integers(1, 40))):
        parts = parts + FisherSum.of(some.rows(rows), rows=int(rng.integers(1, 50)))
    assert parts.count == 300
    np.testing.assert_allclose(parts.total, whole.total, rtol=1e-13)
    a, b = Target.of(whole.mean, 3), Target.of(parts.mean, 3)
    np.testing.assert_array_equal(a.kept, b.kept)
    np.testing.assert_array_equal(a.log_softmax, b.log_softmax)
    assert a.scale == b.scale


def test_target_keeps_the_largest_of_each_class_and_ties_go_to_the_smaller_column():
    target = Target.of(np.array([[1.0, 3, 3, 2], [0, 0, 0, 5]]), keep=2)
    np.testing.assert_array_equal(target.kept, [[1, 2], [3, 0]])
    assert target.scale == (3 + 3 + 5 + 0) / 4
    np.testing.assert_allclose(np.exp(target.log_softmax).sum(), 1)


def targets(problem, keep=3):
    total = FisherSum.of(problem.pool)
    for scaled in (True, False):
        yield Target.of(total.mean, keep, scaled)


@pytest.mark.parametrize("seed", range(60))
def test_scores_against_the_dense_definition_in_extended_precision(seed):
    problem = random_problem(seed, largest_scale=1e4)
    f = reference.fisher_embeddings(problem.pool, np.longdouble)
    for target in targets(problem):
        u = np.take_along_axis(f, target.kept[None], axis=2).reshape(len(f), -1)
        size = np.sqrt(np.square(u).sum(axis=1))
        np.testing.assert_allclose(fisher.magnitude(problem.pool, target), size.astype(float), rtol=1e-12)
        if target.scale == 0:
            assert (fisher.distribution(problem.pool, target) == 0).all()
            continue
        t = target.log_softmax.astype(np.longdouble)
        u = u / np.longdouble(target.scale)
        exact = reference.jensen_shannon(u, t)
        wrong = np.abs(fisher.distribution(problem.pool, target) - exact)
        # an entry u is known to 1e-16 u, and the divergence moves as much as u does
        assert (wrong <= 1e-15 * (1 + u.max(axis=1)) + 1e-9 * exact).all()


@pytest.mark.parametrize("scale", [1e-1, 1e-2, 1e-3, 1e-4])
def test_tiny_divergences_keep_their_digits(scale):
    """In the paper's variant q and t all but agree; 60-digit arithmetic says what is right."""
    rng = np.random.default_rng(0)
    some = features(rng, 6, 4, 3, scale=scale)
    target = Target.of(FisherSum.of(some).mean, 2, scaled=False)
    got = fisher.distribution(some, target)
    with mpmath.workdps(60):
        t = [mpmath.exp(mpmath.mpf(float(x))) for x in target.log_softmax]
        t = [x / sum(t) for x in t]
        for i, row in enumerate(fisher._entries(some, target)):
            e = [mpmath.exp(mpmath.mpf(float(x))) for x in row]
            q = [x / sum(e) for x in e]
            exact = sum(
                a * mpmath.log(2 * a / (a + b)) + b * mpmath.log(2 * b / (a + b)) for a, b in zip(q, t, strict=True)
            )
            assert got[i] == pytest.approx(float(exact / 2), rel=1e-6)


@given(seeds, st.sampled_from([1e-12, 1e-4, 1.0, 30.0, 1e4, 1e18, 1e30]), st.sampled_from([0.003, 0.1, 1, 100]))
@examples(50, 300)
def test_the_rough_scores_stay_within_the_bounds_they_give(seed, scale, sharpness):
    rng = np.random.default_rng(seed)
    some = features(rng, int(rng.integers(1, 60)), int(rng.integers(1, 40)), int(rng.integers(1, 12)), sharpness, scale)
    if rng.random() < 0.3 and scale < 1e4:  # types of other precision
        some = Features(some.embeddings.astype(np.float16), some.probabilities.astype(np.float16))
    elif rng.random() < 0.3:
        p = some.probabilities.astype(np.float64)
        some = Features(some.embeddings.astype(np.float64), p / p.sum(axis=1, keepdims=True))
    memory = features(rng, 10, some.d, some.K, 1.0, scale)
    lam = rng.choice([0.0, 0.5, 1.0])
    mean = fisher.mix(FisherSum.of(some), FisherSum.of(memory), lam)
    for scaled in (True, False):
        target = Target.of(mean, int(rng.integers(1, 8)), scaled)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(fisher, "ROUGH_ENTRIES", int(rng.integers(1, 20)) * target.kept.size)  # rows in a block
            found = (
                fisher.rough_distribution(some, target),
                fisher.rough_magnitude(some, target),
                fisher.rough_magnitude(some),
            )
        exactly = fisher.distribution(some, target), fisher.magnitude(some, target), fisher.magnitude(some)
        for (value, bound), exact in zip(found, exactly, strict=True):
            known = np.isfinite(value) & np.isfinite(bound)
            assert (np.abs(value - exact)[known] <= bound[known] / 2).all()  # with room to spare


def test_the_rough_scores_are_tight_enough_to_be_of_use():
    rng = np.random.default_rng(0)
    some = features(rng, 2000, 64, 20, 0.5)
    target = Target.of(FisherSum.of(some).mean, 5)
    _, bound = fisher.rough_distribution(some, target)
    assert np.median(bound) < 1e-4


def test_all_zero_embeddings_and_certain_probabilities_have_divergence_zero():
    for h, p in ((np.zeros((4, 3)), np.full((4, 2), 0.5)), (np.ones((4, 3)), np.eye(2)[[0, 1, 0, 1]])):
        some = Features(h, p)
        target = Target.of(FisherSum.of(some).mean, 2)
        assert target.scale == 0
        assert (fisher.distribution(some, target) == 0).all()
        assert (fisher.rough_distribution(some, target)[0] == 0).all()
