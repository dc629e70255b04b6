"""Herding: examples whose mean is close to the mean of their class."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from accuacl.memory.buffer import Ids
from accuacl.memory.ordered import keep_in_order

TIE = 1e-12


def herding_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: each next row brings the mean so far closest to the mean of all; ties by index.

    Reference: Rebuffi et al., "iCaRL: Incremental Classifier and Representation Learning", CVPR 2017.

    >>> herding_order(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), 3)
    array([1, 2, 0])
    """
    mean, total, picks = x.mean(axis=0), np.zeros(x.shape[1]), np.empty(count, np.int64)
    squares, left = np.square(x).sum(axis=1), np.ones(len(x), bool)
    for k in range(count):
        missing = (k + 1) * mean - total  # the row that would bring the mean exactly there
        distance = np.where(left, squares - 2 * (x * missing).sum(axis=1), np.inf)
        picks[k] = np.argmax(distance <= distance.min() + TIE * (1 + np.abs(missing).sum()))
        left[picks[k]] = False
        total += x[picks[k]]
    return picks


herding = partial(keep_in_order, herding_order)
