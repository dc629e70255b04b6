"""Coverage: examples that represent all of their class."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from accuacl.greedy import facility_location, squared_width
from accuacl.memory.buffer import Ids
from accuacl.memory.ordered import keep_in_order

PARTS = 20  # the kernel is as wide as the radius within which an example has 1/PARTS of its class


def coverage_order(x: NDArray[np.float64], count: int) -> Ids:
    """An order of rows of length 1: each next row best represents those not yet represented; ties by index.

    Facility location within the class, as the query strategy `coverage` does within the pool; s^2 is the median over
    the n rows of the squared distance to their n/20-th nearest neighbour, or to the nearest if n < 20.

    >>> coverage_order(np.array([[1.0, 0.0], [0.96, 0.28], [0.8, 0.6], [0.0, 1.0]]), 2)
    array([1, 3])
    """
    share = min(1.0, max(1 / PARTS, 1 / max(1, len(x) - 1)))
    return facility_location(x.copy(), squared_width(x, share), count)[0]


coverage = partial(keep_in_order, coverage_order)
