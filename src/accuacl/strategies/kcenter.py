"""k-center greedy, also known as core-set, with and without the replay memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Array
from accuacl.strategies.api import Query, Selection, embeddings_only
from accuacl.strategies.ranking import round_off

ROWS = 1024  # the rows in a block when the mean and the distances between picks are computed
FARTHEST_ROWS = 2048  # the rows of the pool in a block when they are compared with centres
ACTIVE = 1500  # the most rows whose distances are updated at every pick
PAIRS = 1 << 16  # the numbers in a block of exact differences: few enough for the processor's cache


@embeddings_only
def kcenter(query: Query) -> Selection:
    """Pick, again and again, the example that is farthest from all those labelled or picked so far.

    The picks spread over the space of embeddings. If nothing is labelled yet, the first pick is the example farthest
    from the mean. Score: `distance` of the example to the nearest centre when it was picked. Centres are the labelled
    examples and the earlier picks.

    Reference: Sener and Savarese, "Active Learning for Convolutional Neural Networks: A Core-Set Approach", ICLR 2018.

    Cost: O(n d (labelled + budget)) in matrix products; a row's distance is updated only when it might be the largest.
    Memory: about 80 n bytes and some rows; no n x n matrix is made.

    >>> from accuacl import Features, select
    >>> pool = Features([[0.0], [1.0], [9.0], [10.0]], [[1.0]] * 4)
    >>> picked = select("kcenter", pool=pool, budget=3, labelled=Features([[2.0]], [[1.0]]))
    >>> picked.indices, picked.scores["distance"]
    (array([3, 0, 1]), array([8., 2., 1.]))
    """
    return _greedy(query, [query.labelled.embeddings] if query.labelled is not None else [])


@embeddings_only
def kcenter_memory(query: Query) -> Selection:
    """Pick by k-center greedy, with the examples of the replay memory as centres beside the labelled ones.

    The picks then also keep their distance from examples of past tasks. Score: `distance`, as in `kcenter`.

    Reference and cost: those of `kcenter`, with the memory counted among the labelled examples.

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
            if distance == 0:  # every example that is left equals a centre, so the order of indices decides
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
    """Return the farthest row, of tied ones the first, and its squared distance, or None if it was not computed."""
    contenders = rough.contenders()
    if len(contenders) == 1:
        return int(contenders[0]), None
    distances = exact(contenders)
    best = int(np.argmax(round_off(distances)))
    return int(contenders[best]), float(distances[best])


def _reach(pool: Array, start: list[Array], picks: NDArray[np.int64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each pick from the nearest centre when it was picked, or from the mean without centres."""
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
    """Return the squared distance of each row of x from its nearest centre; inf if there is none.

    With `earlier`, the centres are the rows of x themselves, and only those before a row count. The nearest centre is
    found by a matrix product; its distance is then computed from the difference, so that no digits cancel.
    """
    near = np.square(centres).sum(axis=1) - 2 * (x @ centres.T)
    if earlier:
        near[np.triu_indices(len(x))] = np.inf
    which = near.argmin(axis=1)
    return np.where(np.isfinite(near.min(axis=1)), np.square(x - centres[which]).sum(axis=1), np.inf)


class Rough:
    """Squared distances of rows to their nearest centre in float32, with a bound on the rounding error.

    Distances only fall as centres are added, so one that is out of date is an upper bound. Only the `active` rows,
    which had the largest distances when they were chosen, are updated at every pick. All others are updated when one of
    them might be the farthest. Rows are first centred on the mean and scaled into float32's range, so that an offset
    costs no digits.
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
        """Make a row of the pool a centre; update the distances of the active rows only."""
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
        """Return, by index, the rows that may be the farthest within the error; the farthest is always among them."""
        farthest = self._among_active()
        if farthest is None:
            self._flush()
            farthest = self._among_active()
        if farthest is None:  # more rows are tied than are active, so take them from all rows, now up to date
            farthest = _may_be_largest(
                np.where(self.chosen, -np.inf, self.distance), self._error(self.squares, self.distance)
            )
        return farthest

    def _among_active(self) -> NDArray[np.int64] | None:
        """Return the contenders if all of them are active rows; else None."""
        error = self._error(self.active_squares, self.active_distance)
        least = np.max(self.active_distance - error)
        if not least > self.outside or not np.isfinite(least):
            return None
        return self.active[_may_be_largest(self.active_distance, error)]

    def _error(self, squares: Array, distance: Array) -> Array:
        """Return a bound on the rounding error of |x|^2 + |c|^2 - 2 x.c, which holds for every centre c.

        It uses |c|^2 <= 2 |x|^2 + 2 |x - c|^2.
        """
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
        """Choose the rows with the largest known distances as the active ones."""
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
        """Return the rows centred and scaled in float32, with a last column of ones."""
        out = self.buffer[: len(rows)]
        if len(rows) > len(out):
            out = np.ones((len(rows), len(self.mean) + 1), np.float32)
        if self.scale == 1:
            np.subtract(rows, self.shift, out=out[:, :-1], casting="same_kind")
        else:
            out[:, :-1] = (rows - self.mean) * self.scale
        return out

    def _centre(self, rows: Array) -> NDArray[np.float32]:
        """Return centres c as rows [-2 c, |c|^2], so that loaded_row @ centre + |row|^2 is the squared distance."""
        out = self._load(rows) * np.float32(-2)
        out[:, -1] = squares_from(rows, self.mean) * self.scale**2
        return out


def _may_be_largest(value: Array, error: Array) -> NDArray[np.int64]:
    return np.flatnonzero(value + error >= np.max(value - error))


class Exact:
    """Squared distances to the nearest centre in float64, computed from differences for the few rows that need them."""

    def __init__(self, pool: Array, start: list[Array]) -> None:
        self.pool, self.start = pool, start
        self.picks: list[int] = []
        self.best = np.full(len(pool), np.inf)
        self.seen = np.full(len(pool), -1)  # picks each row was compared with; -1: not even with `start`

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
    """Return the squared distance of each row from the point; a row's result does not depend on the other rows."""
    out = np.empty(len(rows))
    size = max(1, PAIRS // max(1, rows.shape[1]))
    for i in range(0, len(rows), size):
        difference = rows[i : i + size] - point
        out[i : i + size] = np.square(difference, out=difference).sum(axis=1)
    return out
