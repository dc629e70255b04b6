"""Facility location: rows that represent all the others, chosen greedily, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accuacl.base.progress import Tick, portion
from accuacl.greedy.coverage import LIMIT, Coverage
from accuacl.greedy.kernel import Indices, Kernel, Vector, distinct


def facility_location(
    x: Vector,
    squared_width: float,
    count: int,
    *,
    weights: Vector | None = None,
    start: Vector | None = None,
    first: Sequence[int] = (),
    rows: int = 0,
    limit: int = LIMIT,
    tick: Tick | None = None,
) -> tuple[Indices, Vector]:
    """The `count` rows that cover x best, by the kernel k(x, y) = exp(-|x - y|^2 / squared_width); and their gains.

    Greedy: each pick is the row that adds most to the sum over x of weight_x * the largest kernel of x with a pick or
    with a row of `start`; its gain is what it adds. Gains that agree to twelve digits are ties, which go to the smaller
    index; when nothing more can be gained, the other rows follow in the order of indices. The rows in `first` are
    picked before all others. `rows` are processed at a time (0: chosen for you), which does not change the picks.
    `tick` is called for 2 * count in all. `x` is overwritten.

    Exact and lazy: one n x n product in blocks, of which up to `limit` bytes are kept, and few more.

    >>> x = np.array([[0.0], [0.1], [5.0], [5.1], [5.2]])
    >>> picks, gains = facility_location(x, 1.0, 3)
    >>> picks, gains.round(2)
    (array([3, 0, 1]), array([2.98, 1.99, 0.01]))
    """
    tick, total = tick or (lambda more: None), min(count, len(x))
    picks, gains = list(first)[:total], []
    if total:
        keep, group = distinct(x)
        kernel = Kernel(x[keep] if len(keep) < len(x) else x, squared_width)
        state = Coverage(kernel, np.bincount(group, weights, len(keep)).astype(np.float64), rows, limit)
        if start is not None:
            state.add(kernel.scaled(start))
        gains = state.add(kernel.x[group[picks]]).tolist()
        state.first_bounds(portion(tick, total, len(keep)))
        tick(len(picks))
    while len(picks) < total:
        row, gain = state.pick()
        if gain <= 0:
            picks += np.setdiff1d(np.arange(len(x)), picks)[: total - len(picks)].tolist()
            tick(total - len(gains))
            gains += [0.0] * (total - len(gains))
            break
        picks.append(int(keep[row]))
        gains.append(gain)
        tick(1)
    return np.array(picks, np.int64), np.array(gains)
