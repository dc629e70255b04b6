"""The kernel head: held to its definition, to fits without each row, and to what people do with labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from accuacl.base.errors import InputError
from accuacl.experiments.heads import calibration, kernel as module
from accuacl.experiments.heads.kernel import STEP, LandmarkProblem, Problem, candidates_for, fit
from accuacl.experiments.heads.kernels import Cosines, Term, kernel, unit_rows
from accuacl.experiments.heads.pool import fit_with_pool
from accuacl.experiments.heads.rows import canonical_order
from effort import examples

BOTH = (Term("linear", (0, 3)), Term("gaussian", (0, 3)), Term("arc-cosine", (3, 6), 0.5))


def rows_of(seed, n=30, d=6, classes=3, spread=1.0):
    """Classes around points of their own, of which every one has a row."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    return 2 * rng.normal(size=(classes, d))[labels] + spread * rng.normal(size=(n, d)) + 1, labels


def by_definition(name, x, z):
    """A kernel of two vectors of length 1 or 0, as it is written."""
    if name == "linear":
        return sum(a * b for a, b in zip(x, z, strict=True))
    if name == "gaussian":
        return math.exp(-sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
    if not any(x) or not any(z):
        return 0.0
    angle = math.acos(max(-1.0, min(1.0, sum(a * b for a, b in zip(x, z, strict=True)))))
    return ((math.sin(angle) + (math.pi - angle) * math.cos(angle)) / math.pi) ** 2


@pytest.mark.parametrize("name", ["linear", "gaussian", "arc-cosine"])
def test_kernels_are_what_they_are_defined_as(name):
    x = np.random.default_rng(0).normal(size=(6, 4))
    x[2], x[3] = 0, 5 * x[1]
    unit = [row / math.sqrt(sum(row**2)) if row.any() else row for row in x]
    expected = [[by_definition(name, a, b) for b in unit] for a in unit]
    np.testing.assert_allclose(kernel((Term(name, (0, 4)),), x, x), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(Cosines(unit_rows(x, (0, 4))).kernel(name), expected, rtol=1e-7, atol=1e-7)


def test_terms_are_added_over_blocks_with_their_weights():
    x, z = rows_of(0)[0], rows_of(1)[0]
    parts = [kernel((Term(t.kernel, t.columns),), x, z) for t in BOTH]
    np.testing.assert_allclose(kernel(BOTH, x, z), parts[0] + parts[1] + 0.5 * parts[2])


def test_a_sparse_block_is_multiplied_like_any_other():
    rng = np.random.default_rng(0)
    x = np.zeros((40, 3000))
    for row in x:
        row[rng.integers(3000, size=9)] = rng.random(9)
    x[3] = 0
    unit = unit_rows(x, (0, 3000))
    cosines = Cosines(unit)
    np.testing.assert_allclose(cosines.values, unit @ unit.T, atol=1e-14)
    np.testing.assert_array_equal(cosines.values, cosines.values.T)
    np.testing.assert_allclose(kernel((Term("linear", (0, 3000)),), x[:7], x), unit[:7] @ unit.T, atol=1e-14)


def test_products_in_parts_are_symmetric_to_the_bit(monkeypatch):
    unit = unit_rows(rows_of(3, 50)[0], (0, 6))
    monkeypatch.setattr("accuacl.experiments.heads.kernels.PART", 16)
    values = Cosines(unit).values
    np.testing.assert_allclose(values, unit @ unit.T, atol=1e-14)
    np.testing.assert_array_equal(values, values.T)


def solved(gram, labels, weights, ridge):
    """Dense equations of the objective: coefficients, and an intercept that is not penalised, one class at a time."""
    n, classes = len(labels), labels.max() + 1
    y = 2.0 * (labels[:, None] == np.arange(classes)) - 1
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n], matrix[:n, n] = np.diag(weights) @ gram + ridge * np.eye(n), weights
    matrix[n, :n], matrix[n, n] = weights @ gram, weights.sum()
    both = np.linalg.solve(matrix, np.vstack([weights[:, None] * y, weights @ y]))
    return both[:n], both[n]


def balanced(labels, given=None):
    given = np.ones(len(labels)) if given is None else given
    mass = np.bincount(labels, given)
    return given * given.sum() / ((mass > 0).sum() * mass[labels])


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_the_head_solves_its_equations(ridge):
    x, labels = rows_of(0)
    given = np.random.default_rng(0).random(len(x)) + 0.1
    head = fit(x, labels, candidates=[BOTH], ridge=ridge, weights=given)
    coefficients, bias = solved(kernel(BOTH, x, x), labels, balanced(labels, given), ridge)
    new = rows_of(9)[0]
    expected = kernel(BOTH, new, x) @ coefficients + bias
    np.testing.assert_allclose(head.logits(new) / head.sharpness, expected, rtol=1e-7, atol=1e-8)


def test_the_equations_are_those_of_the_objective():
    """The minimum of sum_i w_i |f(x_i) - y_i|^2 + r |f|^2 over functions of the rows, found by descent."""
    x, labels = rows_of(1, 8, classes=2)
    gram, weights, ridge = kernel(BOTH, x, x), balanced(labels), 0.7
    y = 2.0 * labels - 1

    def objective(v):
        return weights @ (gram @ v[:-1] + v[-1] - y) ** 2 + ridge * v[:-1] @ gram @ v[:-1]

    found = minimize(objective, np.zeros(len(x) + 1), options={"gtol": 1e-9, "maxiter": 5000})
    coefficients, bias = solved(gram, labels, weights, ridge)
    assert objective(np.append(coefficients[:, 1], bias[1])) == pytest.approx(found.fun, abs=1e-7)


@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e3])
def test_left_out_is_what_a_fit_without_the_row_gives(ridge):
    x, labels = rows_of(1, 14)
    labels[-1] = 3  # alone in its class
    gram, given = kernel(BOTH, x, x), np.random.default_rng(1).random(14) + 0.5
    problem = Problem(gram, labels, given)
    left_out = problem.left_out(ridge)
    for i in range(13):
        rest = np.arange(14) != i
        coefficients, bias = solved(gram[np.ix_(rest, rest)], labels[rest], problem.weights[rest], ridge)
        np.testing.assert_allclose(left_out[i], gram[i, rest] @ coefficients + bias, rtol=1e-6, atol=1e-6)
    assert np.isnan(left_out[13]).all()


def test_with_all_rows_as_landmarks_nothing_is_lost():
    x, labels = rows_of(2, 40, spread=3.0)
    given = np.random.default_rng(2).random(40) + 0.5
    exact = Problem(kernel(BOTH, x, x), labels, given)
    near = LandmarkProblem(x, BOTH, np.arange(40), labels, given)
    for ridge in (0.1, 3.0):
        np.testing.assert_allclose(near.left_out(ridge), exact.left_out(ridge), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(
            kernel(BOTH, x, x) @ near.solution(ridge)[1] + near.solution(ridge)[2],
            kernel(BOTH, x, x) @ exact.solution(ridge)[1] + exact.solution(ridge)[2],
            atol=1e-4,
        )


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
def test_with_fewer_landmarks_left_out_is_what_a_fit_without_the_row_gives(ridge):
    """Refits keep the landmarks, which say what functions there are, and the others' weights."""
    x, labels = rows_of(4, 20)
    labels[-1] = 3  # alone in its class
    problem = LandmarkProblem(x, BOTH, np.arange(0, 20, 3), labels, np.random.default_rng(1).random(20) + 0.5)
    features, size = problem.features, problem.features.shape[1]
    left_out = problem.left_out(ridge)
    for i in range(19):
        rest = np.arange(20) != i
        rows = np.column_stack([features[rest], np.ones(19)])
        weighted = problem.weights[rest, None] * rows
        matrix = weighted.T @ rows + np.diag([*[ridge] * size, 0.0])
        slopes = np.linalg.solve(matrix, weighted.T @ problem.targets[rest])
        np.testing.assert_allclose(left_out[i], np.append(features[i], 1) @ slopes, rtol=1e-6, atol=1e-6)
    assert np.isnan(left_out[19]).all()
    np.testing.assert_array_equal(problem.left_out(ridge, np.array([2, 7])), left_out[[2, 7]])


def test_more_rows_than_can_be_solved_are_approximated(monkeypatch):
    x, labels = rows_of(5, 400, spread=2.0)
    exact = fit(x[:300], labels[:300])
    for name, value in (("CHOSEN_ON", 100), ("EXACT", 200), ("LANDMARKS", 80)):
        monkeypatch.setattr(module, name, value)
    near = fit(x[:300], labels[:300])
    assert len(near.support) == 80
    assert not np.isnan(near.loo).any()
    assert set(np.bincount(labels[:300][[np.flatnonzero((x[:300] == row).all(1))[0] for row in near.support]])) >= {26}
    right = [float((head.logits(x[300:]).argmax(1) == labels[300:]).mean()) for head in (exact, near)]
    assert right[1] > right[0] - 0.05
    agree = exact.logits(x[300:]).argmax(1) == near.logits(x[300:]).argmax(1)
    assert agree.mean() > 0.9


@pytest.mark.parametrize("exact", [5000, 60])
def test_a_ridge_that_suits_a_part_alone_is_compared_with_the_typical_one(monkeypatch, exact):
    """Twelve rows are separated by chance, so that the lowest ridge of all seems best for them."""
    for name, value in (("CHOSEN_ON", 12), ("PER_CLASS", 1), ("EXACT", exact), ("LANDMARKS", 40)):
        monkeypatch.setattr(module, name, value)
    x, labels = rows_of(13, 80, spread=1.2)
    candidates = [(Term("linear", (0, 6)), Term("gaussian", (0, 6)))]
    head = fit(x, labels, candidates=candidates)
    assert 0.05 < head.ridge < 0.2
    lowest = fit(x, labels, candidates=candidates, ridge=1.1e-5)
    seen = [each.loo[np.arange(80), labels] - np.logaddexp.reduce(each.loo, axis=1) for each in (head, lowest)]
    assert np.mean(seen[0]) > np.mean(seen[1])


def test_with_many_classes_the_ridge_is_chosen_on_more_rows():
    """Of 700 classes with three rows each, 600 rows would be alone in their classes, and say nothing."""
    rng = np.random.default_rng(0)
    centres, labels = rng.normal(size=(700, 48)), np.repeat(np.arange(700), 3)
    x = centres[labels] + 1.6 * rng.normal(size=(2100, 48))
    gaussian = (Term("gaussian", (0, 48)),)
    head = fit(x, labels, candidates=[gaussian])
    order = canonical_order(x, labels, np.ones(2100))
    problem = Problem(kernel(gaussian, x[order], x[order]), labels[order], np.ones(2100))
    assert head.ridge != problem.ridge_at(0)
    assert problem.loss(head.ridge) < min(problem.loss(head.ridge * step) for step in (STEP, 1 / STEP))


def test_kernel_and_ridge_have_the_smallest_left_out_loss():
    x, labels = rows_of(3, 60, spread=3.0)
    candidates = candidates_for([(0, 3), (3, 6)])
    head = fit(x, labels, candidates=candidates)
    order = canonical_order(x, labels, np.ones(60))

    def loss(terms, ridge):
        problem = Problem(kernel(terms, x[order], x[order]), labels[order], np.ones(60))
        return problem.loss(ridge)

    best = loss(head.terms, head.ridge)
    assert best < min(loss(head.terms, head.ridge * STEP), loss(head.terms, head.ridge / STEP))
    for terms in candidates:
        assert fit(x, labels, candidates=[terms]).terms == terms
        assert best <= loss(terms, fit(x, labels, candidates=[terms]).ridge) + 1e-12


Change = st.tuples(st.sampled_from(["add", "correct", "remove", "merge"]), st.integers(0, 11), st.integers(0, 3))


@given(st.integers(0, 1000), st.lists(Change, min_size=1, max_size=12), st.booleans())
@examples(40, 1000)
def test_any_sequence_of_changes_gives_what_a_fit_from_the_beginning_gives(seed, changes, with_ids):
    """Labels are added, corrected and removed, and classes merged, in any order: to the bit what a fit anew gives."""
    x = rows_of(seed, 12, classes=4)[0]
    taught = {0: 0, 1: 1}
    for what, item, label in changes:
        if what in ("add", "correct"):
            taught[item] = label
        elif what == "remove" and len(taught) > 1:
            taught.pop(item, None)
        elif what == "merge":
            taught = {each: 0 if value == label else value for each, value in taught.items()}
    as_it_came, sorted_items = list(taught), sorted(taught)
    heads = [
        fit(x[items], np.array([taught[i] for i in items]), 4, ids=np.array(items) if with_ids else None)
        for items in (as_it_came, sorted_items)
    ]
    np.testing.assert_array_equal(heads[0].logits(x), heads[1].logits(x))
    place = [as_it_came.index(item) for item in sorted_items]
    np.testing.assert_array_equal(heads[0].loo[place], heads[1].loo)
    labels = np.array([taught[i] for i in sorted_items])
    seen, own = np.unique(labels, return_inverse=True)
    coefficients, bias = solved(
        kernel(heads[0].terms, x[sorted_items], x[sorted_items]), own, balanced(own), heads[0].ridge
    )
    brute = kernel(heads[0].terms, x, x[sorted_items]) @ coefficients + bias
    outputs = heads[0].logits(x)[:, seen] / heads[0].sharpness
    np.testing.assert_allclose(outputs, brute, rtol=1e-7, atol=1e-7)  # dense equations of the lowest ridge lose digits


def test_rows_that_are_there_twice_count_twice():
    x, labels = rows_of(4, 20)
    twice = fit(np.vstack([x, x]), np.append(labels, labels), candidates=[BOTH], ridge=2.0)
    weighted = Problem(kernel(BOTH, x, x), labels, np.full(20, 2.0)).solution(2.0)
    expected = kernel(BOTH, x, x) @ weighted[1] + weighted[2]
    np.testing.assert_allclose(twice.logits(x) / twice.sharpness, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("x", "labels"),
    [
        ([[1.0, 2.0]], [1]),
        ([[1.0, 2.0], [2.0, 1.0]], [1, 1]),
        ([[1.0, 2.0], [2.0, 1.0]], [0, 2]),
        ([[0.0, 0.0]] * 4, [0, 1, 0, 1]),
        ([[5.0, 5.0]] * 4, [0, 1, 2, 2]),
        ([[1e200, 0.0], [-1e200, 1e200], [1e200, 1.0]], [0, 1, 0]),
        ([[1e-200, 0.0], [-1e-200, 0.0], [1e-200, 0.0]], [0, 1, 0]),
    ],
    ids=["one row", "one class", "each alone", "zeros", "all the same", "huge", "tiny"],
)
def test_the_smallest_problems(x, labels):
    x, labels = np.array(x), np.array(labels)
    head = fit(x, labels, 3)
    p = head.probabilities(x)
    assert np.isfinite(p).all()
    for c in set(range(3)) - set(labels.tolist()):
        assert (head.coefficients[:, c] == 0).all()
        assert head.bias[c] == -head.sharpness
    if len(np.unique(x, axis=0)) > 1 or len(set(labels.tolist())) == 1:
        assert (p.argmax(axis=1) == labels).all()
    else:
        seen = np.unique(labels)
        np.testing.assert_allclose(p[0, seen], p[0, seen].mean())
    assert head.left_out(labels).keys() <= {"left_out_accuracy", "left_out_confidence"}


def test_no_rows_to_predict_give_no_rows():
    x, labels = rows_of(0)
    assert fit(x, labels).probabilities(x[:0]).shape == (0, 3)


def test_confidence_is_calibrated():
    """Confidence minus accuracy: of test rows, of left-out ones; and left-out minus true accuracy."""
    gaps = []
    for seed in range(6):
        x, labels = rows_of(seed, 900, 8, classes=4, spread=4.0)
        head = fit(x[:300], labels[:300])
        p = head.probabilities(x[300:])
        right = 100 * float((p.argmax(1) == labels[300:]).mean())
        left_out = head.left_out(labels[:300])
        estimate, believed = left_out["left_out_accuracy"], left_out["left_out_confidence"]
        gaps.append([100 * float(p.max(1).mean()) - right, believed - estimate, estimate - right])
    assert np.abs(np.mean(gaps, axis=0)).max() < 3


def test_the_sharpness_is_that_of_the_smallest_loss():
    rng = np.random.default_rng(4)
    labels, outputs, weights = rng.integers(4, size=200), rng.normal(size=(200, 4)), rng.random(200) + 0.1
    outputs[np.arange(200), labels] += 0.7
    beta = calibration.best_sharpness(outputs, labels, weights)
    tried = np.linspace(0.2, 5, 481)
    losses = [calibration.log_loss(outputs, labels, weights, float(b)) for b in tried]
    assert abs(beta - tried[np.argmin(losses)]) <= 0.01
    soft, p = 1 / 202, calibration.softmax(beta * outputs)
    wanted = (1 - soft) * np.eye(4)[labels] + soft / 4
    entropy = -(wanted * np.log(p)).sum(axis=1)
    assert calibration.log_loss(outputs, labels, weights, beta) == pytest.approx(weights @ entropy / weights.sum())


def test_where_left_out_rows_say_that_the_head_knows_nothing_it_still_names_the_likeliest_class():
    """Two rows of each class, far from each other: what is left out looks like every other class."""
    rng = np.random.default_rng(0)
    labels, new = np.arange(20) % 10, rng.normal(size=(300, 256))
    x = rng.normal(size=(20, 256))
    for head in (fit(x, labels), fit_with_pool(x, labels, [new[:100]])):
        logits = head.logits(new)
        p = torch.from_numpy(logits.astype(np.float32)).softmax(1).numpy()  # as models predict
        assert (p.argmax(axis=1) == logits.argmax(axis=1)).mean() > 0.98
        assert np.ptp(p.argmax(axis=1)) == 9
        assert p.max() < 0.102


def test_rows_with_the_same_id_are_in_an_order_of_their_own():
    x, labels = rows_of(6, 12)
    ids = np.arange(12) // 3
    order = np.random.default_rng(0).permutation(12)
    one, other = fit(x, labels, ids=ids), fit(x[order], labels[order], ids=ids[order])
    np.testing.assert_array_equal(one.logits(x), other.logits(x))
    np.testing.assert_array_equal(one.loo[order], other.loo)


def test_wrong_input_is_named():
    x = np.ones((2, 2))
    with pytest.raises(InputError, match="2 rows came with 1 labels; give one label per row"):
        fit(x, np.array([0]), 1)
    with pytest.raises(InputError, match="0 rows came with 0 labels"):
        fit(x[:0], np.array([], np.int64), 1)
    with pytest.raises(InputError, match="labels run from 0 to 2; give labels from 0 to 1"):
        fit(x, np.array([0, 2]), 2)
    with pytest.raises(InputError, match="not finite"):
        fit(np.array([[np.inf, 1.0], [0.0, 1.0]]), np.array([0, 1]))
    with pytest.raises(InputError, match="weights of rows must be finite and above 0"):
        fit(x, np.array([0, 1]), weights=np.array([0.0, 1.0]))
    with pytest.raises(InputError, match=r"the ridge is -1\.0; give a number above 0"):
        fit(x, np.array([0, 1]), ridge=-1.0)
    with pytest.raises(InputError, match="kernel"):
        Term("cubic", (0, 1))
    with pytest.raises(InputError, match="not a range"):
        Term("linear", (2, 2))
    with pytest.raises(InputError, match="a number above 0"):
        Term("linear", (0, 2), -1.0)
    with pytest.raises(InputError, match="rows have 2 columns and the kernel needs 3"):
        fit(x, np.array([0, 1]), candidates=[(Term("linear", (0, 3)),)])
    with pytest.raises(InputError, match="2 rows came with ids of the shape \\(1,\\); give one per row"):
        fit(x, np.array([0, 1]), ids=np.array([3]))
    with pytest.raises(InputError, match="a sum of kernels is empty; name at least one of linear, gaussian"):
        fit(x, np.array([0, 1]), candidates=[()])
    for wide in (1, 3):
        with pytest.raises(InputError, match=f"the rows have {wide} columns and the head was fitted to 2"):
            fit(x, np.array([0, 1])).logits(np.ones((4, wide)))
        with pytest.raises(InputError, match=f"the rows of a pool have {wide} columns and the head was fitted to 2"):
            fit_with_pool(x, np.array([0, 1]), [np.ones((4, wide))])
    with pytest.raises(InputError, match=r"the rows have the shape \(2,\); give a table, n x d"):
        fit(x, np.array([0, 1])).logits(x[0])
    with pytest.raises(InputError, match=r"the rows of a pool have the shape \(2,\)"):
        fit_with_pool(x, np.array([0, 1]), x)
    with pytest.raises(InputError, match="the rows are not numbers but of the type <U1; give an array of numbers"):
        fit(np.array([["a", "b"], ["c", "d"]]), np.array([0, 1]))


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["cat", "dog"], "the labels are not numbers, such as 'cat'; .*; KernelRidgeHead takes names"),
        (np.array(["cat", None], object), "the labels are not numbers, such as 'cat'"),
        ([0.0, 0.5], r"the labels have 0\.5; give one whole number from 0 for each row"),
        ([0.0, math.nan], "the labels have nan; give one whole number"),
        ([0.0, math.inf], "the labels have inf; give one whole number"),
        ([[0, 1], [1, 0]], r"the labels have the shape \(2, 2\); give one whole number"),
        (1, r"the labels have the shape \(\); give one whole number"),
    ],
)
def test_labels_that_are_no_whole_numbers_are_named(labels, says):
    x = np.eye(2)
    with pytest.raises(InputError, match=says):
        fit(x, labels)
    with pytest.raises(InputError, match=says):
        fit_with_pool(x, labels, [x])


@pytest.mark.parametrize("labels", [[0.0, 1.0], [False, True], np.array([0, 1], np.uint8)])
def test_whole_numbers_of_any_type_are_labels(labels):
    np.testing.assert_array_equal(
        fit(np.eye(2), labels).logits(np.eye(2)), fit(np.eye(2), np.arange(2)).logits(np.eye(2))
    )


def test_landmarks_do_not_change_a_kernel_that_was_prepared(monkeypatch):
    monkeypatch.setattr(module, "CHOSEN_ON", 10)
    x, labels = rows_of(0)
    module.prepare_gram(x, BOTH)
    before = module.gram_of(x, BOTH).copy()
    LandmarkProblem(x, BOTH, np.arange(len(x)), labels, np.ones(len(x)))
    np.testing.assert_array_equal(module.gram_of(x, BOTH), before)
