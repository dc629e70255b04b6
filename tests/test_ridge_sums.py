"""The sums that ridge keeps of examples: after additions, corrections, merges and deletions those of what is left."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments.heads import (
    examples_of,
    fit_ridge as fit,
    from_tensors,
    merged,
    sums_of,
    to_tensors,
    together,
    without,
)
from accuacl.experiments.heads.ridge import STEP, LeaveOneOut, loss, sharpness
from effort import examples


def rows(seed, n=24, d=6, classes=3):
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    return torch.from_numpy(rng.normal(size=(classes, d))[labels] + rng.normal(size=(n, d))), torch.from_numpy(labels)


def check_same(sums, x, labels):
    """The sums are those of the examples, by the definition of each."""
    assert list(sums) == sorted(set(labels.tolist()))
    for label, value in sums.items():
        mine = x[labels == label]
        assert value.count == len(mine)
        torch.testing.assert_close(value.mean, mine.mean(0), rtol=1e-7, atol=1e-9)
        centred = mine - mine.mean(0)
        torch.testing.assert_close(value.scatter.T @ value.scatter, centred.T @ centred, rtol=1e-6, atol=1e-8)
        assert len(value.scatter) <= min(len(mine) - 1, x.shape[1])


ACTS = st.lists(st.tuples(st.sampled_from(["add", "remove", "correct", "merge"]), st.integers(0, 10**6)), max_size=25)


@given(st.integers(0, 10**6), st.integers(1, 12), ACTS)
@examples(40, 2000)
def test_after_any_sequence_they_are_those_of_what_is_left(seed, d, acts):
    x, labels = rows(seed, 40, d, classes=4)
    there, unused = list(range(5)), list(range(5, 40))
    sums = sums_of(x[there], labels[there])
    labels = labels.clone()
    for act, number in acts:
        if act == "add" and unused:
            row = unused.pop()
            there.append(row)
            sums = together(sums, sums_of(x[[row]], labels[[row]]))
        elif act == "merge":
            one, other = number % 4, (number // 4) % 4
            labels[torch.tensor(there)] = torch.where(labels[there] == one, other, labels[there])
            sums = merged(sums, {one: other})
        elif len(there) > 1:
            row = there[number % len(there)]
            sums = without(sums, x[row], int(labels[row]))
            if act == "remove":
                there.remove(row)
            else:
                labels[row] = (labels[row] + 1) % 4
                sums = together(sums, sums_of(x[[row]], labels[[row]]))
    check_same(sums, x[there], labels[there])
    check_same(from_tensors(to_tensors(sums)), x[there], labels[there])
    check_same(sums_of(*examples_of(sums)), x[there], labels[there])


@pytest.mark.parametrize(("n", "d"), [(24, 6), (12, 30)], ids=["primal", "dual"])
def test_they_are_enough_for_the_regression(n, d):
    x, labels = rows(1, n, d)
    virtual = examples_of(sums_of(x, labels))
    assert (virtual[0] - x[labels.argsort(stable=True)]).abs().max() > 0.1  # they are not the examples
    one, other = LeaveOneOut(x, labels), LeaveOneOut(*virtual)
    for ridge in (0.01, 1.0, 100.0):
        torch.testing.assert_close(one.solution(ridge), other.solution(ridge), rtol=1e-7, atol=1e-8)
        assert one.generalised(ridge) == pytest.approx(other.generalised(ridge), rel=1e-8)


def test_generalised_cross_validation_by_its_definition():
    x, labels = rows(2)
    loo, ridge = LeaveOneOut(x, labels), 2.0
    x1, w = torch.cat([x, torch.ones(24, 1)], 1), loo.weights.sqrt()[:, None]
    penalty = torch.diag(torch.tensor([ridge] * 6 + [0.0], dtype=torch.float64))
    hat = (w * x1) @ torch.linalg.solve((w * x1).T @ (w * x1) + penalty, (w * x1).T)
    residual = w * loo.targets - hat @ (w * loo.targets)
    expected = residual.square().sum() / (1 - hat.trace() / 24) ** 2
    assert loo.generalised(ridge) == pytest.approx(float(expected))


def test_a_fit_with_past_examples_gone_is_the_same_for_all_that_have_their_sums():
    past, new = rows(3), rows(4)
    real = torch.cat([torch.zeros(24), torch.ones(24)]).bool()
    virtual = examples_of(sums_of(*past))
    heads = [fit(torch.cat([old[0], new[0]]), torch.cat([old[1], new[1]]), 3, real) for old in (past, virtual)]
    torch.testing.assert_close(heads[0].weight, heads[1].weight)
    torch.testing.assert_close(heads[0].loo[real], heads[1].loo[real])
    assert heads[0].sharpness == pytest.approx(heads[1].sharpness)
    assert heads[1].loo[~real].isnan().all()


def test_the_ridge_is_chosen_by_the_examples_that_are_there():
    """The mean log loss of each of them, left out, is smaller than at the ridges beside; sums alone choose another."""
    x, y = rows(0, 40, 60)
    y[torch.arange(40) % 6 == 0] = 1  # some wrong labels
    real = torch.arange(40) >= 20
    head, by_sums = fit(x, y, 3, real), fit(x, y, 3, real, generalised=True)
    assert head.ridge != by_sums.ridge
    whole = LeaveOneOut(x, y)

    def value(ridge):
        left_out = whole.left_out(ridge)[real]
        return loss(left_out, y[real], whole.weights[real], sharpness(left_out, y[real], whole.weights[real]))

    assert value(head.ridge) == min(value(head.ridge * factor) for factor in (1, STEP, 1 / STEP))
    nobody = fit(x, y, 3, torch.zeros(40, dtype=torch.bool))
    assert nobody.ridge == pytest.approx(whole.mean_length)  # the typical one, where nothing is there to choose by


def test_what_was_never_there_cannot_be_taken_out():
    x, labels = rows(5, 8, 20)
    sums = sums_of(x, labels)
    for other in (x[0] + 1, 100 * x[0], torch.zeros(20)):
        with pytest.raises(InputError, match="not part of the sums"):
            without(sums, other, int(labels[0]))
    with pytest.raises(InputError, match="no example of class 9"):
        without(sums, x[0], 9)
    one = sums_of(x[:1], labels[:1])
    assert without(one, x[0], int(labels[0])) == {}
    with pytest.raises(InputError, match="not part"):
        without(one, x[1], int(labels[0]))


def test_copies_of_one_example():
    x = torch.ones(4, 3, dtype=torch.float64)
    sums = sums_of(x, torch.zeros(4, dtype=torch.int64))
    check_same(sums, x, torch.zeros(4))
    check_same(without(sums, x[0], 0), x[:3], torch.zeros(3))
    check_same(together(sums, sums), torch.cat([x, x]), torch.zeros(8))
