"""The sharpness at which a softmax is calibrated: one number, by the log loss of left-out examples."""

from __future__ import annotations

import torch
from torch import Tensor

TYPICAL = 4.0  # for outputs around -1 and 1, if there is nothing to learn it from
SHARPEST = 1e4


def loss(outputs: Tensor, labels: Tensor, weights: Tensor, beta: float) -> float:
    """The mean log loss of softmax(beta * outputs), its targets a little softened as in Platt's scaling."""
    if len(outputs) == 0:
        return 0.0
    return float(_terms(outputs, labels, weights, beta)[0])


def sharpness(outputs: Tensor, labels: Tensor, weights: Tensor) -> float:
    """The beta (one over the temperature) with the smallest log loss; by Newton's method, kept inside a bracket.

    The loss is convex in beta. Targets are softened by one in n + 2 (Platt, 1999), so that outputs that are all
    right do not lead to certainty.
    """
    if len(outputs) == 0 or outputs.shape[1] == 1:
        return TYPICAL
    low, high, beta = 0.0, SHARPEST, TYPICAL
    for _ in range(60):
        _, slope, curve = _terms(outputs, labels, weights, beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        step = float(slope / curve) if curve > 0 else torch.inf
        following = beta - step
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - beta) <= 1e-9 * beta:
            break
        beta = following
    return beta


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
