"""From outputs to probabilities: the sharpness (one over the temperature) that suits outputs of left-out examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TYPICAL_SHARPNESS = 4.0  # for outputs around -1 and 1, if there is nothing to learn it from
SHARPEST = 1e4
DEVIATION = 1e-4  # of logits, at least: far below, all probabilities are the same in float32, and no class is likeliest
STEP = 10**0.5  # factor from one ridge that is tried to the next
STEPS = 8  # at most so many steps up or down


def softmax(logits: Floats) -> Floats:
    """Probabilities, row by row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), np.float64)


def log_loss(outputs: Floats, labels: Ints, weights: Floats, beta: float) -> float:
    """The mean log loss of softmax(beta * outputs), its targets a little softened as in Platt's scaling."""
    return _terms(outputs, labels, weights, beta)[0] if len(outputs) else 0.0


def best_sharpness(outputs: Floats, labels: Ints, weights: Floats) -> float:
    """The beta with the smallest log loss."""
    return search(outputs, lambda beta: _terms(outputs, labels, weights, beta))


def search(outputs: Any, terms: Callable[[float], tuple[Any, Any, Any]]) -> float:
    """The beta with the smallest loss, from `smoothest` to SHARPEST.

    terms: the loss and its first and second derivative, of arrays or tensors.

    By Newton's method, kept inside a bracket: the loss is convex in beta. Targets are softened by one in n + 2 (Platt,
    1999), so that outputs that are all right do not lead to certainty.
    """
    if len(outputs) == 0 or outputs.shape[1] == 1:
        return TYPICAL_SHARPNESS
    low, high = smoothest(outputs), SHARPEST
    beta = max(low, TYPICAL_SHARPNESS)
    for _ in range(60):
        _, slope, curve = terms(beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        following = beta - float(slope / curve) if curve > 0 else np.inf
        if not low < following < high:
            following = (low + high) / 2
        if abs(following - beta) <= 1e-9 * beta:
            break
        beta = following
    return beta


def smoothest(outputs: Any) -> float:
    """The smallest beta with which probabilities in float32 still say which output is the largest."""
    return DEVIATION / max(float(outputs.std()), DEVIATION / SHARPEST) if outputs.shape[0] else 0.0


def best_step(loss: Callable[[int], float]) -> tuple[int, float]:
    """The step up or down from 0 whose neighbours have no smaller loss, and its loss.

    >>> best_step(lambda step: (step + 3) ** 2), best_step(lambda step: -step)
    ((-3, 0), (8, -8))
    """
    step, value = 0, loss(0)
    for way in (1, -1):
        while abs(step + way) <= STEPS and (following := loss(step + way)) < value:
            step, value = step + way, following
        if step:  # the loss is larger where it came from
            break
    return step, value


def sharpness_for(outputs: Floats, confidence: float) -> float:
    """The beta with which the mean confidence, the largest of softmax(beta * outputs), is this; by bisection.

    >>> round(sharpness_for(np.array([[1.0, 0.0], [0.0, 1.0]]), 0.9), 4) == round(float(np.log(9)), 4)
    True
    """
    low, high = smoothest(outputs), SHARPEST  # the mean confidence rises with beta
    while high - low > 1e-12 * high:
        beta = (low + high) / 2
        low, high = (beta, high) if softmax(beta * outputs).max(axis=1).mean() < confidence else (low, beta)
    return float(high)


def _terms(outputs: Floats, labels: Ints, weights: Floats, beta: float) -> tuple[float, float, float]:
    """The loss and its first and second derivative by beta."""
    soft = 1 / (len(outputs) + 2)
    right = outputs[np.arange(len(outputs)), labels]
    wanted = (1 - soft) * right + soft * outputs.mean(axis=1)
    p = beta * outputs
    largest = p.max(axis=1, keepdims=True)
    p -= largest
    np.exp(p, out=p)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    first = np.einsum("ij,ij->i", p, outputs)
    second = np.einsum("ij,ij,ij->i", p, outputs, outputs) - first**2
    share = weights / weights.sum()
    value = (largest + np.log(total))[:, 0] - beta * wanted
    return float(share @ value), float(share @ (first - wanted)), float(share @ second)
