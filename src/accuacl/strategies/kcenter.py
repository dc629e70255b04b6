"""k-center greedy, also known as core-set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import round_off

ACTIVE = 1500  # rows whose distances are kept up to date
ROWS = 2048
PAIRS = 1 << 20  # numbers in one block of exact differences


def kcenter(query: Query) -> Selection:
    """Picks, again and again, the example farthest from all those labelled or picked so far: it covers the space.

    With nothing labelled yet the first pick is the example farthest from the mean. Score: `distance` to the nearest
    centre at the time of the pick.

    Reference: Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set Approach", ICLR 2018.

    Cost: O(n d (labelled + budget)) in matrix products, each row's distances brought up to date only when they can
    matter; memory 24 n bytes and some rows, never n x n.

    >>> from accuacl import Features, select
    >>> pool = Features([[0.0], [1.0], [9.0], [10.0]], [[1.0]] * 4)
    >>> picked = select("kcenter", pool=pool, budget=3, labelled=Features([[2.0]], [[1.0]]))
    >>> picked.indices, picked.scores["distance"]
    (array([3, 0, 1]), array([8., 2., 1.]))
    """
    return _greedy(query, [query.labelled.embeddings] if query.labelled is not None else [])


def kcenter_memory(query: Query) -> Selection:
    """k-center greedy that also keeps away from the replay memory: what the past has shown need not be shown again.

    The memory's examples are centres from the start, as the labelled ones are. Score: `distance`.

    Reference and cost: as kcenter, with the memory among the labelled.

    >>> from accuacl import Features, select
    >>> pool = Features([[0.0], [1.0], [9.0], [10.0]], [[1.0]] * 4)
    >>> select("kcenter+memory", pool=pool, budget=2, memory=Features([[8.0]], [[1.0]])).indices
    array([0, 3])
    """
    return _greedy(query, [f.embeddings for f in (query.labelled, query.memory) if f is not None])


def _greedy(query: Query, start: list[Array]) -> Selection:
    pool = query.pool.embeddings
    start = [array for array in start if len(array)]
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"distance": np.empty(0)})
    mean = _mean(pool)
    exact = _Exact(pool, start)
    rough = _Rough(pool, mean, query.chunk)
    picks: list[int] = []
    if start:
        for array in start:
            rough.centres(array)
    else:
        picks.append(int(np.argmax(round_off(_squares(pool, mean)))))
        exact.picks.append(picks[0])
        rough.pick(picks[0])
    while len(picks) < query.count:
        contenders = rough.contenders()
        if len(contenders) > 1:
            distances = exact(contenders)
            best = int(
                contenders[np.argmax(round_off(distances))]
            )  # contenders are in rising order, so ties go to the smaller
            if distances.max() == 0:  # every example left is a copy of a centre
                left = np.setdiff1d(np.arange(len(pool)), picks)
                picks += left[: query.count - len(picks)].tolist()
                break
        else:
            best = int(contenders[0])
        picks.append(best)
        exact.picks.append(best)
        rough.pick(best)
        query.tick(1, query.count)
    indices = np.array(picks, np.int64)
    return Selection(indices, {"distance": _reach(pool, start, indices, mean)})


class _Rough:
    """Squared distances to the nearest centre in float32, each within `error` of the truth, most of them out of date.

    Distances only fall as centres are added, so an old one is an upper bound. Only the `active` rows, the farthest
    when last looked at, hear of every pick; the others wait until one of them might be the farthest.
    Rows are centred on the mean and brought into float32's range first, so that no digits are lost to an offset.
    """

    def __init__(self, pool: Array, mean: NDArray[np.float64], chunk: int) -> None:
        self.pool, self.rows = pool, chunk or ROWS
        self.shift = mean.astype(np.float64 if pool.dtype.itemsize == 8 else np.float32)
        self.mean = self.shift.astype(np.float64)
        n, d = pool.shape
        squares = _squares(pool, self.mean)
        top = squares.max()
        self.scale = 1.0 if 1e-20 < top < 1e20 or top == 0 else float(2.0 ** -np.round(np.log2(top) / 2))
        self.squares = (squares * self.scale**2).astype(np.float32)
        self.unit = (d + 16) * float(np.finfo(np.float32).eps) / 2
        self.radius = 0.0  # the largest centre's square
        self.distance = np.full(n, np.inf, np.float32)
        self.pending: list[NDArray[np.float32]] = []
        self.buffer = np.ones((self.rows, d + 1), np.float32)
        self.chosen = np.zeros(n, bool)
        self._refresh(min(chunk or ACTIVE, n))

    def centres(self, rows: Array) -> None:
        """Add centres from outside the pool, to every row at once."""
        for i in range(0, len(rows), self.rows):
            self._apply(self._centre(rows[i : i + self.rows]))
        self._refresh(len(self.active))

    def pick(self, row: int) -> None:
        """Make a row of the pool a centre; only the active rows hear of it now."""
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
        """The rows that may be the farthest, in rising order, certainly including the one that is."""
        found = self._among_active()
        if found is None:
            self._flush()
            found = self._among_active()
        if found is None:  # more rows are tied than are active; all are up to date now
            distance = np.where(self.chosen, -np.inf, self.distance.astype(np.float64))
            error = self._error(self.squares)
            found = np.flatnonzero(distance + error >= np.max(distance - error))
        return found

    def _among_active(self) -> NDArray[np.int64] | None:
        error = self._error(self.active_squares)
        least = np.max(self.active_distance - error)
        if least <= self.outside + self._error(self.outside_square) or not np.isfinite(least):
            return None
        return self.active[self.active_distance + error >= least]

    def _error(self, squares: Array | float) -> Array:
        return np.asarray(self.unit * (np.asarray(squares, np.float64) + self.radius))

    def _flush(self) -> None:
        if self.pending:
            self._apply(np.concatenate(self.pending))
            self.pending = []
        self._refresh(len(self.active))

    def _apply(self, centres: NDArray[np.float32]) -> None:
        for i in range(0, len(self.pool), self.rows):
            near = (self._load(self.pool[i : i + self.rows]) @ centres.T).min(axis=1)
            near += self.squares[i : i + self.rows]
            np.minimum(self.distance[i : i + self.rows], near, out=self.distance[i : i + self.rows])

    def _refresh(self, size: int) -> None:
        """Choose the active rows anew: the farthest by the distances known."""
        far = np.where(self.chosen, -np.inf, self.distance)
        cut = len(far) - size
        order = np.argpartition(far, cut) if cut > 0 else np.arange(len(far))
        outside, self.active = order[: max(cut, 0)], np.sort(order[max(cut, 0) :])
        self.outside = float(far[outside].max(initial=-np.inf))
        self.outside_square = float(self.squares[outside].max(initial=0))
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
        squares = _squares(rows, self.mean) * self.scale**2
        self.radius = max(self.radius, float(squares.max()))
        out = self._load(rows) * np.float32(-2)
        out[:, -1] = squares
        return out


class _Exact:
    """Squared distances to the nearest centre in float64 by the definition, for the few rows that need them."""

    def __init__(self, pool: Array, start: list[Array]) -> None:
        self.pool, self.start = pool, start
        self.picks: list[int] = []
        self.best = np.full(len(pool), np.inf)
        self.seen = np.full(len(pool), -1)  # how many picks a row has been compared with; -1: not even with the start

    def __call__(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        for seen in np.unique(self.seen[rows]).tolist():
            some = rows[(self.seen[rows] == seen) & (self.best[rows] > 0)]
            for centres in (self.start if seen < 0 else []) + [self.pool[self.picks[max(seen, 0) :]]]:
                self._compare(some, centres)
        self.seen[rows] = len(self.picks)
        return self.best[rows]

    def _compare(self, rows: NDArray[np.int64], centres: Array) -> None:
        if len(rows) < len(centres):
            for row in rows.tolist():
                self.best[row] = min(self.best[row], _squares(centres, self.pool[row].astype(np.float64)).min())
        else:
            points = self.pool[rows]
            for centre in centres:
                self.best[rows] = np.minimum(self.best[rows], _squares(points, centre.astype(np.float64)))


def _squares(rows: Array, point: NDArray[np.float64]) -> NDArray[np.float64]:
    """Squared distance of each row from the point; the same for a row whatever the rows beside it."""
    out = np.empty(len(rows))
    size = max(1, PAIRS // max(1, rows.shape[1]))
    for i in range(0, len(rows), size):
        out[i : i + size] = np.square(rows[i : i + size].astype(np.float64) - point).sum(axis=1)
    return out


def _mean(rows: Array) -> NDArray[np.float64]:
    """The mean row, summed in float64."""
    total = np.zeros(rows.shape[1])
    for i in range(0, len(rows), ROWS):
        total += rows[i : i + ROWS].sum(axis=0, dtype=np.float64)
    return total / len(rows)


def _reach(pool: Array, start: list[Array], picks: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distance of each pick from the nearest centre at its time; from the mean where there was none."""
    x = pool[picks].astype(np.float64) - mean
    best = np.full(len(x), np.inf)
    for array in start:
        for i in range(0, len(array), ROWS):
            best = np.minimum(best, _nearest(x, array[i : i + ROWS].astype(np.float64) - mean, False))
    best = np.minimum(best, _nearest(x, x, True))
    if not start:
        best[0] = np.square(x[0]).sum()
    return np.sqrt(best)


def _nearest(x: NDArray[np.float64], centres: NDArray[np.float64], earlier: bool) -> NDArray[np.float64]:
    """Squared distance of each x from its nearest centre (`earlier`: of those before it), cancellation mended."""
    near = np.square(centres).sum(axis=1) - 2 * (x @ centres.T)
    if earlier:
        near[np.triu_indices(len(x))] = np.inf
    which = near.argmin(axis=1)
    out = np.square(x - centres[which]).sum(axis=1)
    return np.where(np.isfinite(near.min(axis=1)), out, np.inf)
