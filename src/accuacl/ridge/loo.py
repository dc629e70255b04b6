"""Ridge regression with leave-one-out predictions in closed form, in the primal or the dual."""

from __future__ import annotations

import torch
from torch import Tensor

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
