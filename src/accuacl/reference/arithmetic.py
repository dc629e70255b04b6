"""What the definitions share, in any float type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array, Features

Indices = NDArray[np.int64]


def first_largest(values: Array, tie: float = 1e-12) -> int:
    """The index of the first value that ties with the largest."""
    return int(np.argmax(values >= values.max() - tie * abs(values.max())))


def unit(features: Features, dtype: Any) -> Array:
    h, _ = arrays(features, dtype)
    length = np.sqrt(np.square(h).sum(axis=1, keepdims=True))
    return np.asarray(h / np.where(length > 0, length, 1))


def squares(a: Array, b: Array) -> Array:
    """All squared distances; in float32 as usually written, |a|^2 + |b|^2 - 2 a.b."""
    if a.dtype == np.float32:
        squares = np.square(a).sum(axis=1)[:, None] - 2 * (a @ b.T) + np.square(b).sum(axis=1)
        return np.asarray(np.maximum(squares, 0, out=squares))
    return np.asarray(np.square(a[:, None] - b[None]).sum(axis=2))


def arrays(features: Features, dtype: Any) -> tuple[Array, Array]:
    return features.embeddings.astype(dtype), features.probabilities.astype(dtype)


def softmax(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def inverse(matrix: Array) -> Array:
    """The inverse over the last two axes; by Gauss-Jordan for types that LAPACK does not know."""
    if matrix.dtype != np.longdouble:
        return np.linalg.inv(matrix)
    left = matrix.copy().reshape(-1, *matrix.shape[-2:])
    n, size, _ = left.shape
    right = np.broadcast_to(np.eye(size, dtype=left.dtype), left.shape).copy()
    each = np.arange(n)
    for k in range(size):
        pivot = k + np.abs(left[:, k:, k]).argmax(axis=1)
        for side in (left, right):
            side[each, k], side[each, pivot] = side[each, pivot].copy(), side[each, k].copy()
        for side in (right, left):  # left last: its column k holds the factors
            side[:, k] /= left[:, k, k].copy()[:, None]
        factors = left[:, :, k].copy()
        factors[:, k] = 0
        for side in (left, right):
            side -= factors[:, :, None] * side[:, k][:, None, :]
    return right.reshape(matrix.shape)
