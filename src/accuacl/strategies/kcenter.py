"""k-center greedy, also known as core-set, with and without the replay memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array
from accuacl.strategies.api import Query, Selection, embeddings_only
from accuacl.strategies.ranking import round_off

ROWS = 1024  # rows of the mean and of the picks' distances computed at a time
FARTHEST_ROWS = 2048  # rows of the pool compared with centres at a time
ACTIVE = 1500  # how many rows at most have distances that are kept up to date
PAIRS = 1 << 16  # numbers in one block of exact differences, small enough for the cache


@embeddings_only
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


@embeddings_only
def kcenter_memory(query: Query) -> Selection:
    """k-center greedy that also keeps its distance from the replay memory, whose examples are already labelled.

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


class Rough:
    """Squared distances to the nearest centre in float32, with a bound on their error, most of them out of date.

    Distances only fall as centres are added, so an old one is an upper bound. Only the `active` rows, the farthest
    when last looked at, are updated at every pick; the others when one of them might be the farthest.
    Rows are centred on the mean and brought into float32's range first, so that no digits are lost to an offset.
    """

    def __init__(self, pool: Array, mean: NDArray[np.float64], start: list[Array], chunk: int) -> None:
        self.pool, self.rows = pool, chunk or FARTHEST_ROWS
        self.shift = mean.astype(np.float64 if pool.dtype.itemsize == 8 else np.float32)
        self.mean = self.shift.astype(np.float64)
        n, d = pool.shape
        squares = squares_from(pool, self.mean)
        top = max(squares.max(), *(squares_from(array, self.mean).max() for array in start), 0.0)
        self.scale = 1.0 if 1e-20 < top < 1e20 or top == 0 else float(2.0 ** -np.round(np.log2(top) / 2))
        self.squares = (squares * self.scale**2).astype(np.float32)
        self.unit = (d + 16) * float(np.finfo(np.float32).eps) / 2
        self.distance = np.full(n, np.inf, np.float32)
        self.chosen = np.zeros(n, bool)
        self.pending: list[NDArray[np.float32]] = []
        self.buffer = np.ones((min(self.rows, n), d + 1), np.float32)
        self.size = min(chunk or max(256, min(ACTIVE, n // 8)), n)
        for array in start:
            for i in range(0, len(array), self.rows):
                self._apply(self._centre(array[i : i + self.rows]))
        self._refresh()

    def pick(self, row: int) -> None:
        """Make a row of the pool a centre; only the active rows are updated now."""
        centre = self._centre(self.pool[row : row + 1])
        self.pending.append(centre)
        self.chosen[row] = True
        if len(self.pending) >= self.rows:
            self._flush()
            return
        near = self.active_rows @ centre[0] + self.active_squares
        np.minimum(self.active_distance, near, out=self.active_distance)
        self.active_distance[self.active == row] = -np.inf

    def contenders(self) -> NDArray[np.int64]:
        """The rows that may be the farthest, by index; the farthest is certainly among them."""
        farthest = self._among_active()
        if farthest is None:
            self._flush()
            farthest = self._among_active()
        if farthest is None:  # more rows are tied than are active; all are up to date now
            farthest = _may_be_largest(
                np.where(self.chosen, -np.inf, self.distance), self._error(self.squares, self.distance)
            )
        return farthest

    def _among_active(self) -> NDArray[np.int64] | None:
        """The contenders if all of them are active."""
        error = self._error(self.active_squares, self.active_distance)
        least = np.max(self.active_distance - error)
        if not least > self.outside or not np.isfinite(least):
            return None
        return self.active[_may_be_largest(self.active_distance, error)]

    def _error(self, squares: Array, distance: Array) -> Array:
        """A bound on the error of |x|^2 + |c|^2 - 2 x.c for any centre c, by |c|^2 <= 2 |x|^2 + 2 distance."""
        with np.errstate(invalid="ignore"):
            error = self.unit * (3.0 * squares + 2.0 * np.maximum(distance, 0)) + 1e-30
        return np.where(np.isfinite(error), error, 0)

    def _flush(self) -> None:
        if self.pending:
            self._apply(np.concatenate(self.pending))
            self.pending = []
        self._refresh()

    def _apply(self, centres: NDArray[np.float32]) -> None:
        for i in range(0, len(self.pool), self.rows):
            near = (self._load(self.pool[i : i + self.rows]) @ centres.T).min(axis=1)
            near += self.squares[i : i + self.rows]
            np.minimum(self.distance[i : i + self.rows], near, out=self.distance[i : i + self.rows])

    def _refresh(self) -> None:
        """Choose the active rows again: the farthest by the distances known."""
        far = np.where(self.chosen, -np.inf, self.distance)
        cut = len(far) - self.size
        order = np.argpartition(far, cut) if cut > 0 else np.arange(len(far))
        outside, self.active = order[:cut], np.sort(order[cut:])
        reach = far[outside] + self._error(self.squares[outside], far[outside])
        self.outside = float(reach.max(initial=-np.inf))
        self.active_rows = self._load(self.pool[self.active]).copy()
        self.active_squares = self.squares[self.active]
        self.active_distance = far[self.active]

    def _load(self, rows: Array) -> NDArray[np.float32]:
        """Rows centred and scaled in float32, with a last column of ones."""
        out = self.buffer[: len(rows)]
        if len(rows) > len(out):
            out = np.ones((len(rows), len(self.mean) + 1), np.float32)
        if self.scale == 1:
            np.subtract(rows, self.shift, out=out[:, :-1], casting="same_kind")
        else:
            out[:, :-1] = (rows - self.mean) * self.scale
        return out

    def _centre(self, rows: Array) -> NDArray[np.float32]:
        """Centres such that row @ centre + |row|^2 is the squared distance: -2 c, and |c|^2 in the last column."""
        out = self._load(rows) * np.float32(-2)
        out[:, -1] = squares_from(rows, self.mean) * self.scale**2
        return out


def _may_be_largest(value: Array, error: Array) -> NDArray[np.int64]:
    return np.flatnonzero(value + error >= np.max(value - error))


class Exact:
    """Squared distances to the nearest centre in float64 by the definition, for the few rows that need them."""

    def __init__(self, pool: Array, start: list[Array]) -> None:
        self.pool, self.start = pool, start
        self.picks: list[int] = []
        self.best = np.full(len(pool), np.inf)
        self.seen = np.full(len(pool), -1)  # how many picks a row has been compared with; -1: not even with the start

    def __call__(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        for seen in np.unique(self.seen[rows]).tolist():
            chunk = rows[(self.seen[rows] == seen) & (self.best[rows] > 0)]
            for centres in (self.start if seen < 0 else []) + [self.pool[self.picks[max(seen, 0) :]]]:
                self._compare(chunk, centres)
        self.seen[rows] = len(self.picks)
        return self.best[rows]

    def _compare(self, rows: NDArray[np.int64], centres: Array) -> None:
        if len(rows) < len(centres):
            for row in rows.tolist():
                self.best[row] = min(self.best[row], squares_from(centres, self.pool[row].astype(np.float64)).min())
            return
        for i in range(0, len(rows), FARTHEST_ROWS):
            chunk = rows[i : i + FARTHEST_ROWS]
            points = self.pool[chunk]
            for centre in centres:
                self.best[chunk] = np.minimum(self.best[chunk], squares_from(points, centre.astype(np.float64)))


def squares_from(rows: Array, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distance of each row from the point; it does not depend on the other rows."""
    out = np.empty(len(rows))
    size = max(1, PAIRS // max(1, rows.shape[1]))
    for i in range(0, len(rows), size):
        difference = rows[i : i + size] - point
        out[i : i + size] = np.square(difference, out=difference).sum(axis=1)
    return out
