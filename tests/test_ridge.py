"""Ridge on frozen features: held to its definition, to fits without each example, and to what its users may do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.heads import fit_ridge as fit
from accuacl.experiments.heads.ridge import STEP, LeaveOneOut, loss, sharpness
from effort import examples


def problem(seed, n=30, d=5, classes=3, spread=1.0):
    """Classes around points of their own, of which every one has an example."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), rng.integers(classes, size=n - classes)])
    x = 2 * rng.normal(size=(classes, d))[labels] + spread * rng.normal(size=(n, d)) + 3
    return torch.from_numpy(x), torch.from_numpy(labels)


def objective(x, labels, weights, ridge, weight, bias):
    """What ridge regression minimises, as it is defined."""
    classes = len(bias)
    total = ridge * weight.square().sum()
    for i in range(len(x)):
        y = torch.tensor([1.0 if k == labels[i] else -1.0 for k in range(classes)], dtype=torch.float64)
        total = total + weights[i] * (weight @ x[i] + bias - y).square().sum()
    return total


def by_definition(x, labels, weights, ridge, classes):
    """Dense normal equations with a column of ones that is not penalised."""
    x1 = torch.cat([x, torch.ones(len(x), 1, dtype=torch.float64)], 1)
    y = 2 * torch.nn.functional.one_hot(labels, classes).double() - 1
    penalty = ridge * torch.eye(x1.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 0
    both = torch.linalg.pinv(x1.T @ (weights[:, None] * x1) + penalty) @ (x1.T @ (weights[:, None] * y))
    return both[:-1].T, both[-1]


@pytest.mark.parametrize(("n", "d"), [(30, 5), (12, 40)], ids=["primal", "dual"])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e3])
def test_the_solution_has_no_gradient_left(n, d, ridge):
    x, labels = problem(0, n, d)
    counts = torch.bincount(labels).double()
    weights = n / (3 * counts[labels])
    weight, bias = LeaveOneOut(x, labels).solution(ridge)
    weight, bias = weight.requires_grad_(), bias.requires_grad_()
    objective(x, labels, weights, ridge, weight, bias).backward()
    assert weight.grad.abs().max() < 1e-8 * n
    assert bias.grad.abs().max() < 1e-8 * n


@pytest.mark.parametrize(("n", "d"), [(20, 5), (9, 20), (8, 8)], ids=["primal", "dual", "square"])
@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e3])
def test_left_out_is_what_a_fit_without_the_example_says(n, d, ridge):
    x, labels = problem(1, n, d)
    loo = LeaveOneOut(x, labels)
    found = loo.left_out(ridge)
    for i in range(n):
        rest = torch.arange(n) != i
        if not (labels[rest] == labels[i]).any():
            assert found[i].isnan().all()
            continue
        weight, bias = by_definition(x[rest], labels[rest], loo.weights[rest], ridge, 3)
        torch.testing.assert_close(found[i], weight @ x[i] + bias, rtol=1e-6, atol=1e-6)


def test_primal_and_dual_are_the_same():
    x, labels = problem(2, 15, 10)
    wide = torch.cat([x, torch.zeros(15, 20, dtype=torch.float64)], 1)  # columns of zeros change nothing but the form
    one, other = LeaveOneOut(x, labels), LeaveOneOut(wide, labels)
    assert (one.dual, other.dual) == (False, True)
    for ridge in (1e-3, 0.5, 100.0):
        torch.testing.assert_close(one.left_out(ridge), other.left_out(ridge), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(one.solution(ridge)[0], other.solution(ridge)[0][:, :10], rtol=1e-8, atol=1e-8)


def test_the_ridge_is_better_than_its_neighbours():
    x, labels = problem(3, 60, 8, spread=3.0)
    head, loo = fit(x, labels, 3), LeaveOneOut(x, labels)

    def value(ridge):
        outputs = loo.left_out(ridge)
        return loss(outputs, labels, loo.weights, sharpness(outputs, labels, loo.weights))

    assert value(head.ridge) < min(value(head.ridge * STEP), value(head.ridge / STEP))
    torch.testing.assert_close(head.loo, head.sharpness * loo.left_out(head.ridge))


def test_the_sharpness_is_that_of_the_smallest_loss():
    rng = np.random.default_rng(4)
    labels = torch.from_numpy(rng.integers(4, size=200))
    outputs = torch.from_numpy(rng.normal(size=(200, 4)))
    outputs[torch.arange(200), labels] += 0.7
    weights = torch.from_numpy(rng.random(200) + 0.1)
    beta = sharpness(outputs, labels, weights)
    tried = np.linspace(0.2, 5, 481)
    assert abs(beta - tried[np.argmin([loss(outputs, labels, weights, float(b)) for b in tried])]) <= 0.01
    soft, p = 1 / 202, torch.softmax(beta * outputs, 1)
    wanted = (1 - soft) * torch.nn.functional.one_hot(labels, 4) + soft / 4
    entropy = -(wanted * p.log()).sum(1)
    assert loss(outputs, labels, weights, beta) == pytest.approx(float((weights * entropy).sum() / weights.sum()))


def test_outputs_that_are_always_right_are_not_certain():
    outputs = torch.eye(10, dtype=torch.float64)
    labels, weights = torch.arange(10), torch.ones(10, dtype=torch.float64)
    confidence = torch.softmax(sharpness(outputs, labels, weights) * outputs, 1).max(1).values
    assert 0.8 < float(confidence.min()) < 0.99
    assert sharpness(-outputs, labels, weights) < 1e-3  # always wrong: confident of nothing


def test_confidence_is_calibrated():
    """Confidence minus accuracy: of the test examples, of the left-out ones; and left-out minus true accuracy."""
    gaps, raw_gaps = [], []
    for seed in range(8):
        x, labels = problem(seed, 1500, 6, classes=4, spread=4.0)
        head = fit(x[:500], labels[:500], 4)
        confidence, guess = torch.softmax(head.logits(x[500:]), 1).max(1)
        right = 100 * float((guess == labels[500:]).double().mean())
        said = head.left_out(labels[:500])
        estimate, believed = said["left_out_accuracy"], said["left_out_confidence"]
        gaps.append([100 * float(confidence.mean()) - right, believed - estimate, estimate - right])
        raw_gaps.append(right - 100 * float(torch.softmax(head.logits(x[500:]) / head.sharpness, 1).max(1)[0].mean()))
    assert np.abs(np.mean(gaps, axis=0)).max() < 2.5
    assert np.mean(raw_gaps) > 10


@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 15), st.integers(1, 4), st.floats(-6, 6))
@examples(40, 1000)
def test_order_and_scale_do_not_matter(seed, n, d, classes, power):
    x, labels = problem(seed, max(n, classes), d, classes)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(x)))
    one, other = fit(x, labels, classes), fit(10.0**power * x[order], labels[order], classes)
    assert one.weight.isfinite().all()
    torch.testing.assert_close(one.logits(x), other.logits(10.0**power * x), rtol=1e-4, atol=1e-4)


def test_each_class_weighs_the_same():
    x, labels = problem(6, 40, 4)
    more = labels == 0
    x2, labels2 = torch.cat([x, x[more], x[more]]), torch.cat([labels, labels[more], labels[more]])
    one, other = (LeaveOneOut(*of).solution(r) for of, r in (((x, labels), 40.0), ((x2, labels2), float(len(x2)))))
    torch.testing.assert_close(one, other)  # the ridge is per example


@pytest.mark.parametrize(
    ("x", "labels"),
    [
        ([[1.0, 2.0]], [1]),
        ([[1.0, 2.0], [3.0, 4.0]], [1, 1]),
        ([[1.0, 2.0], [3.0, 4.0]], [0, 2]),
        ([[0.0, 0.0]] * 4, [0, 1, 0, 1]),
        ([[5.0, 5.0]] * 4, [0, 1, 2, 2]),
        ([[1e18, 0.0], [-1e18, 1.0], [1e18, 1.0]], [0, 1, 0]),
        ([[1e-18, 0.0], [-1e-18, 0.0], [1e-18, 0.0]], [0, 1, 0]),
    ],
    ids=["one example", "one class", "each alone", "zeros", "all the same", "huge", "tiny"],
)
def test_the_smallest_problems(x, labels):
    x, labels = torch.tensor(x), torch.tensor(labels)
    head = fit(x, labels, 3)
    p = torch.softmax(head.logits(x), 1)
    assert p.isfinite().all()
    without = sorted(set(range(3)) - set(labels.tolist()))
    assert (head.weight[without] == 0).all()
    assert (head.bias[without] == -head.sharpness).all()
    if len(torch.unique(x, dim=0)) > 1 or len(labels.unique()) == 1:
        assert (p.argmax(1) == labels).all()
    else:
        torch.testing.assert_close(p[0, labels.unique()], p[0, labels.unique()].mean().expand(len(labels.unique())))


def test_wrong_input_is_named():
    x = torch.ones(2, 2)
    with pytest.raises(InputError, match="2 examples came with 1 labels; give one label each"):
        fit(x, torch.tensor([0]), 1)
    with pytest.raises(InputError, match="0 examples came with 0 labels"):
        fit(x[:0], torch.tensor([], dtype=torch.int64), 1)
    with pytest.raises(InputError, match="labels run from 0 to 2; give labels below 2"):
        fit(x, torch.tensor([0, 2]), 2)


@pytest.mark.parametrize("d", [4, 40], ids=["primal", "dual"])
def test_columns_that_are_zero_everywhere_change_nothing(d):
    x, labels = problem(7, 24, d)
    wide = torch.zeros(24, 3 * d, dtype=torch.float64)
    wide[:, 1::3] = x
    one, other = fit(x, labels, 3), fit(wide, labels, 3)
    assert torch.equal(one.weight, other.weight[:, 1::3])
    assert torch.equal(one.bias, other.bias)
    assert torch.equal(one.loo, other.loo)
    assert other.weight.count_nonzero() == one.weight.count_nonzero()


def test_examples_without_any_number_but_zero_are_all_alike():
    labels = torch.tensor([0, 0, 1, 2])
    head = fit(torch.zeros(4, 6), labels, 4)
    assert not head.weight.any()
    torch.testing.assert_close(head.bias[:3] / head.sharpness, torch.full((3,), 2 / 3 - 1, dtype=torch.float64))
