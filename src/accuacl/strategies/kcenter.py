"""k-center greedy, also known as core-set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array
from accuacl.strategies.farthest import Exact, Rough, squares_from
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.smallest import round_off

ROWS = 1024


def kcenter(query: Query) -> Selection:
    """Picks, again and again, the example farthest from all those labelled or picked so far.

    The picks spread over the space.

    With nothing labelled yet the first pick is the example farthest from the mean. Score: `distance` to the nearest
    centre at the time of the pick.

    Reference: Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set Approach", ICLR 2018.

    Cost: O(n d (labelled + budget)) in matrix products; a row's distances are updated only when they can matter.
    Memory: about 80 n bytes and some rows, never n x n.

    >>> from accuacl import Features, select
    >>> pool = Features([[0.0], [1.0], [9.0], [10.0]], [[1.0]] * 4)
    >>> picked = select("kcenter", pool=pool, budget=3, labelled=Features([[2.0]], [[1.0]]))
    >>> picked.indices, picked.scores["distance"]
    (array([3, 0, 1]), array([8., 2., 1.]))
    """
    return _greedy(query, [query.labelled.embeddings] if query.labelled is not None else [])


def kcenter_memory(query: Query) -> Selection:
    """k-center greedy that also keeps its distance from the replay memory, whose examples have labels already.

    The memory's examples are centres from the start, as the labelled ones are. Score: `distance`.

    Reference and cost: as kcenter, with the memory among the labelled.

    >>> from accuacl import Features, select
    >>> pool = Features([[0.0], [1.0], [9.0], [10.0]], [[1.0]] * 4)
    >>> select("kcenter+memory", pool=pool, budget=2, memory=Features([[8.0]], [[1.0]])).indices
    array([0, 3])
    """
    return _greedy(query, [f.embeddings for f in (query.labelled, query.memory) if f is not None])


def _greedy(query: Query, start: list[Array]) -> Selection:
    pool, tick = query.pool.embeddings, query.ticker(query.count)
    start = [array for array in start if len(array)]
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"distance": np.empty(0)})
    mean = sum((pool[i : i + ROWS].sum(axis=0, dtype=np.float64) for i in range(0, len(pool), ROWS)), np.zeros(1))
    mean = mean / len(pool)
    rough, exact = Rough(pool, mean, start, query.chunk), Exact(pool, start)
    picks: list[int] = []
    while len(picks) < query.count:
        if picks or start:
            best, distance = _farthest(rough, exact)
            if distance == 0:  # every example left is a copy of a centre
                left = np.setdiff1d(np.arange(len(pool)), picks)[: query.count - len(picks)]
                picks += left.tolist()
                tick(len(left))
                break
        else:
            best = int(np.argmax(round_off(squares_from(pool, mean))))
        picks.append(best)
        exact.picks.append(best)
        rough.pick(best)
        tick(1)
    indices = np.array(picks, np.int64)
    return Selection(indices, {"distance": _reach(pool, start, indices, mean)})


def _farthest(rough: Rough, exact: Exact) -> tuple[int, float | None]:
    """The farthest row, ties to the smaller index, and its squared distance if it had to be computed."""
    contenders = rough.contenders()
    if len(contenders) == 1:
        return int(contenders[0]), None
    distances = exact(contenders)
    best = int(np.argmax(round_off(distances)))
    return int(contenders[best]), float(distances[best])


def _reach(pool: Array, start: list[Array], picks: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of each pick from the nearest centre at its time; from the mean where there was none."""
    x = pool[picks].astype(np.float64) - mean
    best = np.full(len(x), np.inf)
    for i in range(0, len(x), ROWS):
        part = best[i : i + ROWS]
        for array in start:
            for j in range(0, len(array), ROWS):
                np.minimum(part, _nearest(x[i : i + ROWS], array[j : j + ROWS] - mean), out=part)
        for j in range(0, i + 1, ROWS):
            np.minimum(part, _nearest(x[i : i + ROWS], x[j : j + ROWS], earlier=i == j), out=part)
    if not start:
        best[0] = np.square(x[0]).sum()
    return np.sqrt(best)


def _nearest(x: NDArray[np.float64], centres: NDArray[np.float64], earlier: bool = False) -> NDArray[np.float64]:
    """Squared distance of each x from its nearest centre (`earlier`: of those before it); no cancellation."""
    near = np.square(centres).sum(axis=1) - 2 * (x @ centres.T)
    if earlier:
        near[np.triu_indices(len(x))] = np.inf
    which = near.argmin(axis=1)
    return np.where(np.isfinite(near.min(axis=1)), np.square(x - centres[which]).sum(axis=1), np.inf)
