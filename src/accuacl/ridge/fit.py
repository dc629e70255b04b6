"""The head: ridge regression onto +1 for an example's class and -1 for the others, every class with the same weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.ridge.loo import LeaveOneOut
from accuacl.ridge.temperature import loss, sharpness

STEP = 10**0.5  # factor from one ridge that is tried to the next
STEPS = 8  # so many steps at most, up or down
TYPICAL = 1.0  # the ridge that is tried first, in units of the mean squared length of a centred example


@dataclass(frozen=True)
class Head:
    """A linear head. ridge: as chosen; sharpness: what the regression was multiplied with to make logits of it.

    loo: the logits that each example would get if it were left out; NaN for the only example of its class.
    """

    weight: Tensor  # classes x d
    bias: Tensor
    ridge: float
    sharpness: float
    loo: Tensor

    def logits(self, x: Tensor) -> Tensor:
        return x.double() @ self.weight.T + self.bias

    def left_out(self, labels: Tensor) -> dict[str, float]:
        """How many of the left-out examples are right, and how many the head expects to be, in percent."""
        known = ~self.loo.isnan().any(1)
        if not known.any():
            return {}
        confidence, guess = torch.softmax(self.loo[known], 1).max(1)
        right = (guess == labels[known]).double()
        return {"left_out_accuracy": 100 * float(right.mean()), "left_out_confidence": 100 * float(confidence.mean())}


def fit(x: Tensor, labels: Tensor, classes: int, real: Tensor | None = None, generalised: bool = False) -> Head:
    """The head for examples x (n x d) with labels below `classes`. It does not depend on the order of examples.

    W and b minimise sum_i w_i |W x_i + b - y_i|^2 + r |W|^2 with y = +1 for the class of an example and -1 for the
    others, and w_i = n / (K n_c), so that each of the K classes that have examples weighs the same. r is found in
    steps from a typical value to the lowest leave-one-out log loss, each r with the sharpness of the softmax that is
    best for it. A class without an example gets the output -1 everywhere.

    real: which rows are examples; the others only have the same sums as examples that are gone. Then r and the
    sharpness are chosen on the real examples, or, if `generalised`, r by the generalised cross-validation, which needs
    no more than sums and regularises far less.

    >>> x = torch.tensor([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> fit(x, torch.tensor([0, 0, 1, 1]), 2).logits(x).argmax(1)
    tensor([0, 0, 1, 1])
    """
    problem, own = _problem(x, labels, classes)
    ridge, beta, left_out = _best(problem, own, None if real is None or bool(real.all()) else real, generalised)
    return _head(problem, x, labels, classes, ridge, beta, left_out)


def fit_like(x: Tensor, labels: Tensor, classes: int, ridge: float, sharpness: float) -> Head:
    """The head with the sharpness, and with the ridge that `fit` tries and that is nearest to the one given."""
    problem, _ = _problem(x, labels, classes)
    unit = problem.mean_length or 1.0
    step = round(math.log(ridge / (unit * TYPICAL)) / math.log(STEP))
    nearest = unit * TYPICAL * STEP ** max(-STEPS, min(STEPS, step))
    return _head(problem, x, labels, classes, nearest, sharpness, torch.full_like(problem.targets, torch.nan))


def _problem(x: Tensor, labels: Tensor, classes: int) -> tuple[LeaveOneOut, Tensor]:
    """The regression, and the labels as numbers of the classes that have examples."""
    if len(x) == 0 or len(x) != len(labels):
        raise InputError(f"{len(x)} examples came with {len(labels)} labels; give one label each, and at least one.")
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        raise InputError(f"labels run from {int(labels.min())} to {int(labels.max())}; give labels below {classes}.")
    own = torch.unique(labels, return_inverse=True)[1]
    return LeaveOneOut(x[:, _used(x)].double(), own), own


def _used(x: Tensor) -> Tensor:
    """Columns of words that no example has need no work: their weights are 0."""
    return (x != 0).any(0)


def _head(
    problem: LeaveOneOut, x: Tensor, labels: Tensor, classes: int, ridge: float, beta: float, left_out: Tensor
) -> Head:
    seen, used = torch.unique(labels), _used(x)
    weight, bias = x.new_zeros(classes, x.shape[1]).double(), torch.full((classes,), -1.0, dtype=torch.float64)
    weight[seen[:, None], used.nonzero()[:, 0]], bias[seen] = problem.solution(ridge)
    loo = torch.full((len(x), classes), -1.0, dtype=torch.float64)
    loo[:, seen] = left_out
    return Head(beta * weight, beta * bias, ridge, beta, beta * loo)


def _best(problem: LeaveOneOut, own: Tensor, real: Tensor | None, generalised: bool) -> tuple[float, float, Tensor]:
    """The ridge with a smaller loss than its neighbours, its sharpness, and what the left-out examples get there."""
    unit = problem.mean_length or 1.0
    tried: dict[int, tuple[float, float, Tensor]] = {}

    def at(step: int) -> float:
        if step not in tried:
            ridge = unit * TYPICAL * STEP**step
            left_out = problem.left_out(ridge)
            if real is not None:
                left_out[~real] = torch.nan
            known = ~left_out.isnan().any(1)
            beta = sharpness(left_out[known], own[known], problem.weights[known])
            if real is None or not generalised:
                value = loss(left_out[known], own[known], problem.weights[known], beta)
            else:
                value = problem.generalised(ridge)
            tried[step] = (value, beta, left_out)
        return tried[step][0]

    step = 0
    for way in (1, -1):
        while abs(step + way) <= STEPS and at(step + way) < at(step):
            step += way
    return unit * TYPICAL * STEP**step, tried[step][1], tried[step][2]
