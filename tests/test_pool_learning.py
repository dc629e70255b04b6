"""Learning from the pool: held to its definition, and judged by true labels alone."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.base.errors import InputError
from accuacl.experiments.heads import pool as module
from accuacl.experiments.heads.calibration import best_sharpness, softmax
from accuacl.experiments.heads.kernel import fit
from accuacl.experiments.heads.kernels import Smoothing, Term, kernel
from accuacl.experiments.heads.pool import JUDGED_BY, SHARE, WEIGHT, fit_with_pool, sample_ids
from accuacl.experiments.heads.rows import canonical_order

TERMS = (Term("linear", (0, 8)), Term("gaussian", (0, 8)))


def clusters(seed, n, classes=4, d=8, spread=0.6, shares=None):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.choice(classes, size=n - classes, p=shares)])
    centres = np.random.default_rng(1000).normal(size=(classes, d))
    return centres[labels] + spread * rng.normal(size=(n, d)), labels


def brute_force(x, labels, pools, ridge, left_out=None):
    """Self-training as it is defined, by dense equations with an intercept that is not penalised.

    left_out: this row of all that are learned from is not there in the second fit; the others' weights stay.
    """
    classes = labels.max() + 1

    def solve(rows, own, given, without=None):
        mass = np.bincount(own, given, minlength=classes)
        weights = given * given.sum() / ((mass > 0).sum() * mass[own])
        if without is not None:
            rows, own, weights = (np.delete(part, without, axis=0) for part in (rows, own, weights))
        gram, n = kernel(TERMS, rows, rows), len(rows)
        matrix = np.zeros((n + 1, n + 1))
        matrix[:n, :n], matrix[:n, n] = np.diag(weights) @ gram + ridge * np.eye(n), weights
        matrix[n, :n], matrix[n, n] = weights @ gram, weights.sum()
        y = 2.0 * (own[:, None] == np.arange(classes)) - 1
        both = np.linalg.solve(matrix, np.vstack([weights[:, None] * y, weights @ y]))
        return lambda z: kernel(TERMS, z, rows) @ both[:n] + both[n]

    first = solve(x, labels, np.ones(len(x)))
    rows, own = [x], [labels]
    for pool in pools:
        outputs = first(pool)
        ranked = np.sort(outputs, axis=1)
        margins = ranked[:, -1] - ranked[:, -2]
        kept = np.sort(np.argsort(-margins)[: round(SHARE * len(pool))])
        rows.append(pool[kept])
        own.append(outputs.argmax(axis=1)[kept])
    given = np.concatenate([np.ones(len(x)), np.full(sum(map(len, rows[1:])), WEIGHT)])
    return solve(np.concatenate(rows), np.concatenate(own), given, left_out)


def test_self_training_is_what_it_is_defined_as():
    x, labels = clusters(5, 12, spread=0.8)
    pools = [clusters(1, 50)[0], clusters(2, 30)[0]]
    head = fit_with_pool(x, labels, pools, candidates=[TERMS])
    assert head.learned["pseudo_labels"] == round(SHARE * 50) + round(SHARE * 30)
    new = clusters(3, 40)[0]
    expected = brute_force(x, labels, pools, head.ridge)(new)
    np.testing.assert_allclose(head.logits(new) / head.sharpness, expected, rtol=1e-4, atol=1e-5)


def test_with_fewer_support_rows_it_is_the_best_head_of_these_rows(monkeypatch):
    """Every third pseudo-label gives a support row; all are fitted. The objective is that of the exact head."""
    monkeypatch.setattr(module, "SUPPORT", 100)
    x, labels = clusters(5, 16, spread=0.7)
    pools = [clusters(1, 200)[0], clusters(2, 150)[0]]
    head = fit_with_pool(x, labels, pools, candidates=[TERMS])
    n, kept = len(x), round(SHARE * 200) + round(SHARE * 150)
    assert head.learned["pseudo_labels"] == kept
    assert len(head.support) == n + -(-kept // 3)
    order = canonical_order(x, labels, np.ones(n))
    plain, sample = fit(x, labels, candidates=[TERMS]), np.concatenate(pools)
    which, guesses = module._pseudo_labels(plain.logits(sample), [200, 150])
    rows, own = np.concatenate([x[order], sample[which]]), np.append(labels[order], guesses)
    np.testing.assert_array_equal(head.support, np.concatenate([x[order], sample[which][::3]]))
    given = np.append(np.ones(n), np.full(kept, WEIGHT))
    weights = given * given.sum() / (4 * np.bincount(own, given)[own])
    columns = np.column_stack([kernel(TERMS, rows, head.support), np.ones(len(rows))])
    matrix = columns.T @ (weights[:, None] * columns)
    matrix[:-1, :-1] += head.ridge * kernel(TERMS, head.support, head.support)
    targets = 2.0 * (own[:, None] == np.arange(4)) - 1
    best = np.linalg.lstsq(matrix, columns.T @ (weights[:, None] * targets), rcond=1e-12)[0]
    new = clusters(3, 400)[0]
    outputs = head.logits(new) / head.sharpness
    np.testing.assert_allclose(outputs, kernel(TERMS, new, head.support) @ best[:-1] + best[-1], atol=1e-3)
    exact = brute_force(x, labels, pools, head.ridge)(new)
    assert (outputs.argmax(axis=1) == exact.argmax(axis=1)).mean() > 0.98
    assert np.abs(outputs - exact).mean() < 0.1  # of outputs around -1 and 1


def test_the_taught_head_is_as_confident_in_the_pool_as_before():
    """The head before, with its sharpness from left-out labels; the taught head in rows that have not taught it."""
    x, labels = clusters(5, 16, spread=0.9)
    pool = clusters(1, 60)[0]
    head, plain = fit_with_pool(x, labels, [pool], candidates=[TERMS]), fit(x, labels, candidates=[TERMS])
    order = canonical_order(x, labels, np.ones(16))
    without = module._left_out_by_folds(plain, x[order], labels[order], [pool[::JUDGED_BY]])[0]
    known = ~np.isnan(without).any(axis=1)
    own = labels[order][known]
    before = plain.logits(pool) / plain.sharpness
    kept, _ = module._pseudo_labels(before, [60])
    judged = np.arange(0, 60, JUDGED_BY)
    now = [
        brute_force(x, labels, [pool], head.ridge, 16 + kept.tolist().index(row) if row in kept else None)(pool[[row]])
        for row in judged
    ]
    then = softmax(best_sharpness(without[known], own, 1 / np.bincount(own)[own]) * before[judged])
    found = softmax(head.sharpness * np.concatenate(now))
    assert found.max(axis=1).mean() == pytest.approx(then.max(axis=1).mean(), abs=1e-5)


def test_the_pool_leaves_confidence_as_right_as_it_was():
    """Few labels of many classes, where left-out labels of a taught head say far too little."""
    errors = []
    for seed in range(4):
        x, labels = clusters(seed, 36, classes=12, spread=0.45)
        pool, (test, answers) = (
            clusters(100 + seed, 600, 12, spread=0.45)[0],
            clusters(200 + seed, 600, 12, spread=0.45),
        )
        head = fit_with_pool(x, labels, [pool])
        assert head.learned["pseudo_labels"]
        p = head.probabilities(test)
        errors.append(abs(float(p.max(axis=1).mean() - (p.argmax(axis=1) == answers).mean())))
    assert np.mean(errors) < 0.06, errors


def test_the_pool_teaches_where_classes_are_clusters():
    gains = []
    for seed in range(8):
        x, labels = clusters(seed, 8)
        pool, _ = clusters(100 + seed, 400)
        test, answers = clusters(200 + seed, 400)
        heads = [fit_with_pool(x, labels, [pool], mode=mode) for mode in ("off", "self")]
        gains.append([100 * float((head.logits(test).argmax(1) == answers).mean()) for head in heads])
    without, taught = np.mean(gains, axis=0)
    assert taught > without + 1


def test_pseudo_labels_that_lose_true_ones_are_not_used(monkeypatch):
    x, labels = clusters(0, 40)
    pool = clusters(1, 200)[0]
    plain = fit(x, labels)

    def wrong(outputs, _):
        kept = np.arange(len(outputs))
        return kept, (outputs.argmax(axis=1) + 1) % 4

    monkeypatch.setattr(module, "_pseudo_labels", wrong)
    monkeypatch.setattr(module, "WEIGHT", 20.0)
    head = fit_with_pool(x, labels, [pool])
    assert head.learned["pseudo_labels"] == 0
    assert head.learned["lost"] > head.learned["gained"]
    np.testing.assert_array_equal(head.logits(pool), plain.logits(pool))


def test_labels_are_left_out_of_the_heads_that_judge_them():
    """Each fold's rows get what a head that was fitted, and taught by the pool, without their labels gives them."""
    x, labels = clusters(0, 40)
    pools = [clusters(1, 80)[0], clusters(2, 60)[0]]
    head = fit(x, labels, candidates=[TERMS])
    without, taught = module._left_out_by_folds(head, x, labels, pools)
    fold = np.array([(np.count_nonzero(labels[:row] == labels[row]) + labels[row]) % 5 for row in range(40)])
    for f in range(5):
        left, tested = fold != f, fold == f
        expected = brute_force(x[left], labels[left], pools, head.ridge)(x[tested])
        np.testing.assert_allclose(taught[tested], expected, rtol=1e-7, atol=1e-8)
        plain = fit(x[left], labels[left], candidates=[TERMS], ridge=head.ridge)
        np.testing.assert_allclose(without[tested], plain.logits(x[tested]) / plain.sharpness, rtol=1e-7, atol=1e-8)


def test_order_and_other_chunks_change_nothing(monkeypatch):
    x, labels = clusters(0, 30)
    pools = [clusters(1, 90)[0], clusters(2, 60)[0]]
    one = fit_with_pool(x, labels, pools)
    order = np.random.default_rng(0).permutation(30)
    other = fit_with_pool(x[order], labels[order], pools)
    np.testing.assert_array_equal(one.logits(x), other.logits(x))
    np.testing.assert_array_equal(one.loo[order], other.loo)
    monkeypatch.setattr("accuacl.experiments.heads.kernel.PREDICTED", 7)
    chunked = fit_with_pool(x, labels, pools)
    np.testing.assert_allclose(one.logits(x), chunked.logits(x), rtol=1e-9, atol=1e-9)


def test_a_sample_depends_on_ids_and_seed_alone():
    ids = np.arange(5000)
    sample = sample_ids(ids, 1, seed=3)
    assert len(sample) == 1200
    shuffled = np.random.default_rng(0).permutation(ids)
    np.testing.assert_array_equal(sample, sample_ids(shuffled, 1, seed=3))
    assert set(sample_ids(ids[100:], 1, seed=3)) >= set(sample[sample >= 100])  # items that are labelled leave it
    assert not np.array_equal(sample, sample_ids(ids, 1, seed=4))
    assert len(sample_ids(ids, 6, seed=3)) == 600
    assert len(sample_ids(ids[:7], 6, seed=3)) == 7


@pytest.mark.parametrize("mode", ["off", "self", "smooth"])
def test_the_smallest_problems(mode):
    x, labels = clusters(0, 8)
    for rows, own, pools in (
        (x, labels, []),
        (x, labels, [x[:0]]),
        (x[:1], labels[:1], [x]),
        (x[:2], np.array([1, 1]), [x]),
        (x[:2], np.array([0, 2]), [x[:1]]),
        (np.zeros((4, 8)), np.array([0, 1, 0, 1]), [x]),
    ):
        head = fit_with_pool(rows, own, pools, 4, mode=mode)
        assert np.isfinite(head.logits(x)).all()


def test_many_labels_need_no_pool(monkeypatch):
    monkeypatch.setattr(module, "UP_TO", 20)
    x, labels = clusters(0, 21)
    assert not fit_with_pool(x, labels, [clusters(1, 50)[0]]).learned


def test_smoothing_is_what_it_is_defined_as():
    reference, x = clusters(0, 40)[0], clusters(1, 5)[0]
    smoothed = Smoothing(reference, ((0, 8),))(x)
    for row, found in zip(x, smoothed, strict=True):
        unit = row / np.linalg.norm(row)
        others = reference / np.linalg.norm(reference, axis=1, keepdims=True)
        near = others[np.argsort(-(others @ unit))[:10]].mean(axis=0)
        np.testing.assert_allclose(found, unit + near / np.linalg.norm(near), rtol=1e-12)
    head = fit_with_pool(*clusters(2, 20), [reference], mode="smooth")
    assert (head.logits(clusters(2, 20)[0]).argmax(1) == clusters(2, 20)[1]).mean() > 0.9


def test_a_way_that_is_not_known_is_named():
    with pytest.raises(InputError, match="off, self, smooth"):
        fit_with_pool(*clusters(0, 8), [], mode="other")
