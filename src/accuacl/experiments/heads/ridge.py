"""The head: ridge regression onto +1 for an example's class and -1 for the others, every class with the same weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.experiments.heads.calibration import STEP, STEPS, best_step, search

TYPICAL = 1.0  # the ridge that is tried first, in units of the mean squared length of a centred example


@dataclass(frozen=True)
class Head:
    """A linear head. ridge: as chosen; sharpness: the factor that turns the regression into logits.

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


def fit_ridge(x: Tensor, labels: Tensor, classes: int, real: Tensor | None = None, generalised: bool = False) -> Head:
    """The head for examples x (n x d) with labels below `classes`. It does not depend on the order of examples.

    W and b minimise sum_i w_i |W x_i + b - y_i|^2 + r |W|^2 with y = +1 for the class of an example and -1 for the
    others, and w_i = n / (K n_c), so that each of the K classes that have examples weighs the same. r is found in
    steps from a typical value to the lowest leave-one-out log loss, each r with the sharpness of the softmax that is
    best for it. A class without an example gets the output -1 everywhere.

    real: which rows are examples; the others only have the same sums as examples that are gone. Then r and the
    sharpness are chosen on the real examples, or, if `generalised`, r by the generalised cross-validation, which needs
    no more than sums and regularises far less.

    >>> x = torch.tensor([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> fit_ridge(x, torch.tensor([0, 0, 1, 1]), 2).logits(x).argmax(1)
    tensor([0, 0, 1, 1])
    """
    problem, own = _problem(x, labels, classes)
    ridge, beta, left_out = _best(problem, own, None if real is None or bool(real.all()) else real, generalised)
    return _head(problem, x, labels, classes, ridge, beta, left_out)


def fit_like(x: Tensor, labels: Tensor, classes: int, ridge: float, sharpness: float) -> Head:
    """The head with the sharpness, and with the ridge that `fit_ridge` tries and that is nearest to the one given."""
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
    tried: dict[int, tuple[float, Tensor]] = {}

    def loss_at(step: int) -> float:
        ridge = unit * TYPICAL * STEP**step
        left_out = problem.left_out(ridge)
        if real is not None:
            left_out[~real] = torch.nan
        known = ~left_out.isnan().any(1)
        beta = sharpness(left_out[known], own[known], problem.weights[known])
        tried[step] = beta, left_out
        if real is not None and generalised:
            return problem.generalised(ridge)
        return loss(left_out[known], own[known], problem.weights[known], beta)

    step, _ = best_step(loss_at)
    return unit * TYPICAL * STEP**step, *tried[step]


BLOCK = 256  # rows of a matrix that are multiplied with all later ones at a time


class LeaveOneOut:
    """A class-balanced problem of n examples and K classes, centred by the weighted mean: the intercept is free.

    If there are fewer examples than columns, all matrices are n x n (the dual form).
    """

    def __init__(self, x: Tensor, own: Tensor) -> None:
        """own: the classes of the examples; each of 0 .. K-1 occurs."""
        n, counts = len(x), torch.bincount(own)
        self.weights = (n / (len(counts) * counts.double()))[own]
        self.alone = counts[own] == 1  # leaving such an example out would leave nothing of its class
        self.mean = self.weights @ x / n
        root = self.weights.sqrt()[:, None]
        self.rows = root * (x - self.mean)
        self.targets = 2 * torch.nn.functional.one_hot(own, len(counts)).double() - 1
        self.middle = torch.full((len(counts),), 2 / len(counts) - 1, dtype=torch.float64)  # the targets' mean
        self.wanted = root * (self.targets - self.middle)
        self.mean_length = float(self.rows.square().sum()) / n
        self.dual = n < x.shape[1]
        self.gram = _gram(self.rows if self.dual else self.rows.T)
        self.solved: dict[float, Tensor] = {}  # by ridge, in the dual: the inverse times what is wanted

    def solution(self, ridge: float) -> tuple[Tensor, Tensor]:
        """(weights, K x d; intercepts)."""
        if self.dual:
            if ridge not in self.solved:
                self._smoothed(ridge)
            weight = self.solved[ridge].T @ self.rows
        else:
            factor = torch.linalg.cholesky(_plus(self.gram, ridge))
            weight = torch.cholesky_solve(self.rows.T @ self.wanted, factor).T
        return weight, self.middle - weight @ self.mean

    def left_out(self, ridge: float) -> Tensor:
        """What a fit without it would predict for each example (n x K), with the same weights; NaN if it is alone.

        An example's residual grows by 1 / (1 - hat) where `hat` is what it contributes to its own fitted value.
        """
        residual, rest = self._smoothed(ridge)
        left_out = self.targets - residual / (self.weights.sqrt() * rest)[:, None]
        left_out[self.alone] = torch.nan
        return left_out if len(left_out) > 1 else torch.full_like(left_out, torch.nan)

    def generalised(self, ridge: float) -> float:
        """Generalised cross-validation (Golub, Heath and Wahba, 1979): leave-one-out with the mean of all `hat`.

        It depends only on the sums of each class, not on single examples.
        """
        residual, rest = self._smoothed(ridge)
        return float(residual.square().sum() / rest.mean().square())

    def _smoothed(self, ridge: float) -> tuple[Tensor, Tensor]:
        """(residuals times the roots of weights, n x K; 1 - hat). The free intercept has the share w / n of `hat`."""
        own_share = self.weights / len(self.rows)
        if self.dual:
            # The rows' weighted sum is 0, so the gram has the unit vector u of roots of weights / n in its null space,
            # where its inverse is 1 / ridge: adding a multiple of u u^T keeps small ridges from cancelling.
            u, shift = own_share.sqrt(), ridge + self.mean_length
            inverse = _inverse(_plus(self.gram, ridge).addr_(u, u, alpha=shift))
            self.solved[ridge] = inverse @ self.wanted  # which has no part along u, so the multiple changes nothing
            return ridge * self.solved[ridge], ridge * (inverse.diagonal() - own_share / (ridge + shift))
        factor = torch.linalg.cholesky(_plus(self.gram, ridge))
        half = torch.linalg.solve_triangular(factor, self.rows.T, upper=False)
        return self.wanted - half.T @ (half @ self.wanted), 1 - half.square().sum(0) - own_share


def _gram(rows: Tensor) -> Tensor:
    """rows @ rows.T, of which only blocks on and below the diagonal are computed."""
    gram = rows.new_empty(len(rows), len(rows))
    for i in range(0, len(rows), BLOCK):
        block = rows[i:] @ rows[i : i + BLOCK].T
        gram[i:, i : i + BLOCK], gram[i : i + BLOCK, i:] = block, block.T
    return gram


def _inverse(matrix: Tensor) -> Tensor:
    return torch.cholesky_inverse(torch.linalg.cholesky(matrix))


def _plus(matrix: Tensor, ridge: float) -> Tensor:
    matrix = matrix.clone()
    matrix.diagonal().add_(ridge)
    return matrix


def loss(outputs: Tensor, labels: Tensor, weights: Tensor, beta: float) -> float:
    """The mean log loss of softmax(beta * outputs), its targets a little softened as in Platt's scaling."""
    if len(outputs) == 0:
        return 0.0
    return float(_terms(outputs, labels, weights, beta)[0])


def sharpness(outputs: Tensor, labels: Tensor, weights: Tensor) -> float:
    """The beta (one over the temperature) with the smallest log loss."""
    return search(outputs, lambda beta: _terms(outputs, labels, weights, beta))


def _terms(outputs: Tensor, labels: Tensor, weights: Tensor, beta: float) -> tuple[Tensor, Tensor, Tensor]:
    """The loss and its first and second derivative by beta."""
    soft = 1 / (len(outputs) + 2)
    right = outputs.gather(1, labels[:, None])[:, 0]
    wanted = (1 - soft) * right + soft * outputs.mean(1)
    p = torch.softmax(beta * outputs, 1)
    first = (p * outputs).sum(1)
    second = (p * outputs.square()).sum(1) - first.square()
    share = weights / weights.sum()
    value = torch.logsumexp(beta * outputs, 1) - beta * wanted
    return share @ value, share @ (first - wanted), share @ second
