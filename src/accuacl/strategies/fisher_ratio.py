"""fisher-ratio: the examples that most reduce the uncertainty about pool and memory."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from accuacl.base.progress import Tick, portion
from accuacl.base.threads import spread
from accuacl.strategies.accuacl import Lam, weight_of_past
from accuacl.strategies.api import Query, Selection, check_fits, needs
from accuacl.strategies.facility import distinct, unit
from accuacl.strategies.ranking import Indices, Vector
from accuacl.strategies.registry import Option
from accuacl.strategies.simple import uncertainties

RidgeOption = Annotated[float, Option("initial precision in every direction", least=1e-6, most=1e6)]
Uncertainty = Annotated[
    Literal["weighed", "ignored"],
    Option("whether examples that the model is unsure of count more (weighed) or not (ignored)"),
]
MOST = 64  # picks whose products with all rows are made together
AHEAD = 100  # one in this many rows is a candidate for these
ROWS = 2048
COLUMNS = 8192  # of the products of planned picks, made at a time
TIE = 1e-9  # gains this close, relatively, are a tie
NOTHING = 1e-13  # gains below this share of the first are rounding errors


def needed(n: int, d: int, K: int) -> int:
    """Bytes: two float64 copies of the embeddings, products of some rows with all, matrices of d x d or n x n."""
    return 16 * n * d + 64 * min(n, d) ** 2 + 8 * n * (2 * MOST + 64)


@needs(needed)
def fisher_ratio(
    query: Query, *, ridge: RidgeOption = 1.0, lam: Lam = None, uncertainty: Uncertainty = "weighed"
) -> Selection:
    """Picks, one by one, the examples that most reduce the uncertainty about pool and memory.

    Embeddings h are scaled to length 1. M, the information available, is ridge * I plus the sum of h h^T over labelled
    examples, memory and picks. T, the information wanted, is (1 - lam) times the mean of u h h^T over the pool plus lam
    times that over the memory, where u = 1 - margin. Each pick is the example that lowers tr(M^-1 T) most: the ratio of
    Fisher information that AccuACL's scores approximate, here with full matrices over h and for the whole batch.
    Score: `gain`, by how much the pick lowered the trace.

    Options: `ridge`; `lam`, the weight of the past (default: past / (past + pool + labelled)); `uncertainty`: with
    "ignored", u = 1, as it also is if the model is certain of everything (of all that has an embedding but zeros).

    Reference: Ash et al., "Gone Fishing: Neural Active Learning with Fisher Embeddings", NeurIPS 2021, for the forward
    step; here with one matrix for all classes, unit lengths and a term for the past.

    Cost: O(n d (d + budget)) in matrix products, in float64, and O(n) more for each pick; 16 n d bytes and 1,600 n.
    With d > n the same with matrices of n x n. Gains that agree to nine digits are ties.

    >>> from accuacl import Features, select
    >>> pool = Features([[1.0, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], [[0.6, 0.4], [0.5, 0.5], [0.5, 0.5], [0.9, 0.1]])
    >>> picked = select("fisher-ratio", pool=pool, budget=2)
    >>> picked.indices, picked.scores["gain"].round(3)
    (array([1, 2]), array([0.227, 0.149]))
    """
    n, d, labelled, memory = len(query.pool), query.pool.d, query.labelled, query.memory
    lam = weight_of_past(lam, query.past, len(memory or ()), n + len(labelled or ()))
    check_fits("fisher-ratio", needed(n, d, query.pool.K), n, d)
    if query.count == 0:
        return Selection(np.empty(0, np.int64), {"gain": np.empty(0)})
    x = unit(query.pool.embeddings)
    past = unit(memory.embeddings) if memory is not None else x[:0]
    known = np.concatenate([unit(labelled.embeddings), past]) if labelled is not None else past
    weights, past_weights = _weights(query, lam, uncertainty == "weighed")
    first, group = distinct(x)
    rows = x[first] if len(first) < n else x
    target = [(rows, np.bincount(group, weights, len(first)).astype(np.float64)), (past, past_weights)]
    del x, rows
    return _greedy(query, Ratio(target, known, ridge, query.chunk), group)


def _greedy(query: Query, state: Ratio, group: Indices) -> Selection:
    tick = query.ticker(2 * query.count)
    state.compute(portion(tick, query.count, len(state.x)))
    members, sizes = np.argsort(group, kind="stable"), np.bincount(group)  # copies are picked in the order of indices
    start, taken = np.cumsum(sizes) - sizes, np.zeros(len(sizes), np.int64)
    picks: list[int] = []
    gains: list[float] = []
    while len(picks) < query.count:
        gain = state.gains(sizes - taken)
        top = float(gain.max())
        if top <= NOTHING * max(gains, default=0.0):
            rest = np.setdiff1d(np.arange(len(group)), picks)[: query.count - len(picks)]
            picks, gains = picks + rest.tolist(), gains + [0.0] * len(rest)
            tick(len(rest))
            break
        tied = np.flatnonzero(gain >= top - TIE * top)
        following = members[start[tied] + taken[tied]]
        row = int(tied[np.argmin(following)])
        picks.append(int(following.min()))
        gains.append(float(gain[row]))
        state.add(row, gain, sizes - taken)
        taken[row] += 1
        tick(1)
    return Selection(np.array(picks, np.int64), {"gain": np.array(gains)})


def _weights(query: Query, lam: float, uncertainty: bool) -> tuple[Vector, Vector]:
    """The weight of each example of the pool and of the memory in the target."""
    n, m = len(query.pool), len(query.memory or ())
    shares = np.repeat([(1 - lam if m else 1.0) / max(n, 1), lam / max(m, 1)], [n, m])
    if uncertainty:
        sets = [features for features in (query.pool, query.memory) if features is not None]
        # an embedding of zeros carries no information
        u = np.concatenate([uncertainties(features) * features.embeddings.any(axis=1) for features in sets])
        shares = shares * u if (shares * u).any() else shares
    return shares[:n], shares[n:]


class Ratio:
    """For every row x of the pool q = x V x and g = x N x, where V = M^-1 and N = V T V. Its gain is g / (1 + q).

    M is ridge * I and the sum of y y^T over known and picked rows y, T the sum of weight * z z^T over target rows.
    A pick p changes, with a = V p, y = N p, c = X a, z = X y and e = 1 + q_p, these:
    q by -c^2 / e, g by -2 c z / e + c^2 g_p / e^2, V by -a a^T / e, N by -(a y^T + y a^T) / e + a a^T g_p / e^2.
    One product with X at every pick would read all of X for little work. So the next picks are guessed, greedily among
    the rows with the largest gains, and the products are computed for all of them at once; a wrong guess only costs
    time.

    Where X has more columns than rows, V and N stand for X V X^T and X N X^T: the dual form.
    """

    def __init__(self, target: list[tuple[Vector, Vector]], known: Vector, ridge: float, rows: int) -> None:
        """`target`: rows and their weights in T; the first of these are the pool's."""
        x = target[0][0]
        self.x, self.target, self.known, self.ridge = x, target, known, ridge
        self.rows, self.dual = rows or ROWS, x.shape[1] > len(x)
        self.picks: list[int] = []
        self.plan: list[int] = []  # the picks that are guessed
        self.done = 0  # how many of these have been made; V and N do not hold them yet
        self.AY = np.empty((2, MOST, len(x) if self.dual else x.shape[1]))
        self.CZ, self.products = self.AY, np.empty((0 if self.dual else 2 * MOST, len(x)))
        self.e, self.g_picked = np.empty((2, MOST))
        self.q, self.g = np.empty((2, len(x)))

    def compute(self, tick: Tick) -> None:
        """V, N, q and g by their definitions."""
        self.V: Vector = np.empty(0)  # let go of the old ones first
        self.N: Vector = self.V
        known, n = np.concatenate([self.known, self.x[self.picks]]), len(self.x)
        if self.dual:
            target, weights = (np.concatenate(parts) for parts in zip(*self.target, strict=True))
            products = self.x @ target.T
            products -= (self.x @ known.T) @ np.linalg.solve(_plus(known @ known.T, self.ridge), known @ target.T)
            products /= self.ridge
            self.V, self.N = products[:, :n].copy(), (products * weights) @ products.T
            self.q, self.g = self.V.diagonal().copy(), self.N.diagonal().copy()
            tick(n)
        else:
            self.V = np.asarray(np.linalg.inv(_plus(known.T @ known, self.ridge)), np.float64)
            self.N = self.V @ sum(outer(rows, weights, self.rows) for rows, weights in self.target) @ self.V
            for done in spread(self._compute_rows, range(0, n, self.rows), 4.0 * n * len(self.V) ** 2):
                tick(done)
        self.start_q, self.start_g, self.age = self.q.copy(), self.g.copy(), 0
        self.plan, self.done = [], 0

    def _compute_rows(self, first: int) -> int:
        """q and g of a block of rows; how many these are."""
        block = self.x[first : first + self.rows]
        self.q[first : first + self.rows] = np.einsum("ij,ij->i", block @ self.V, block)
        self.g[first : first + self.rows] = np.einsum("ij,ij->i", block @ self.N, block)
        return len(block)

    def gains(self, left: Indices) -> Vector:
        """By how much each row would lower tr(V T); -inf for rows with no copy left.

        Changes subtract, and what is left of a much larger number has lost digits: where these matter to the choice or
        to its score, everything is recomputed.
        """
        gain = np.where(left > 0, self.g / (1 + self.q), -np.inf)
        if self.age:
            size = self.start_g + np.where(left > 0, gain, 0) * self.start_q
            error = (16 + self.age) * np.finfo(float).eps * np.abs(size) / (1 + self.q)
            contend = gain + error >= np.max(gain - error)
            if (error[contend] > TIE / 4 * np.abs(gain[contend])).any():
                self.compute(lambda more: None)
                gain = np.where(left > 0, self.g / (1 + self.q), -np.inf)
        return gain

    def add(self, row: int, gain: Vector, left: Indices) -> None:
        """Pick a row. The earlier `gain` and `left` of all rows say which could be next."""
        if self.plan[self.done : self.done + 1] != [row]:
            self._make_plan(row, gain, left)
        (c, z), e, g = self.CZ[:, self.done], self.e[self.done], self.g_picked[self.done]
        self.g += c * (c * (g / e) - 2 * z) / e
        self.q -= c * c / e
        self.picks.append(row)
        self.done, self.age = self.done + 1, self.age + 1

    def _make_plan(self, row: int, gain: Vector, left: Indices) -> None:
        """Bring V and N up to date; guess which picks follow this row, and compute their products with all rows."""
        (A, Y), e, g = self.AY[:, : self.done], self.e[: self.done], self.g_picked[: self.done]
        half = (A.T / e) @ (Y - A * (g / (2 * e))[:, None])
        self.V -= (A.T / e) @ A
        self.N -= half + half.T
        cut = max(0, len(gain) - max(MOST, len(gain) // AHEAD))
        order = np.argpartition(gain, cut)
        rows, outside = np.union1d(order[cut:], row), gain[order[:cut]].max(initial=-np.inf)
        self._guess(int(np.searchsorted(rows, row)), rows, left[rows].copy(), float(outside))
        if not self.dual:
            AY = self.AY[:, : len(self.plan)].reshape(-1, self.x.shape[1])
            products = self.products[: len(AY)]

            def multiply(first: int) -> None:
                block = slice(first, first + COLUMNS)
                np.matmul(AY, self.x[block].T, out=products[:, block])

            list(spread(multiply, range(0, len(self.x), COLUMNS), 2.0 * AY.size * len(self.x)))
            self.CZ = products.reshape(2, len(self.plan), -1)

    def _guess(self, best: int, rows: Indices, left: Indices, outside: float) -> None:
        """Greedy among these rows, from `best` on, for as long as all others gain less."""
        x, q, g = self.x[rows], self.q[rows], self.g[rows]
        (A, Y), self.plan, self.done = self.AY, [], 0
        while len(self.plan) < MOST:
            k, row = len(self.plan), int(rows[best])
            self.e[k], self.g_picked[k] = 1 + q[best], g[best]
            V, N = (self.V[row], self.N[row]) if self.dual else (self.V @ x[best], self.N @ x[best])
            first, second = (self.AY[:, :k, row] if self.dual else self.AY[:, :k] @ x[best]) / self.e[:k]
            A[k] = V - first @ A[:k]
            Y[k] = N - (second - first * (self.g_picked[:k] / self.e[:k])) @ A[:k] - first @ Y[:k]
            c, z = self.AY[:, k, rows] if self.dual else self.AY[:, k] @ x.T
            g, q = g + c * (c * (g[best] / self.e[k]) - 2 * z) / self.e[k], q - c * c / self.e[k]
            self.plan.append(row)
            left[best] -= 1
            gain = np.where(left > 0, g / (1 + q), -np.inf)
            best = int(np.argmax(gain >= gain.max() - TIE * abs(gain.max())))
            if not gain[best] > max(outside, 0):
                break


def outer(x: Vector, weights: Vector, rows: int = ROWS) -> Vector:
    """The sum of weight * x x^T."""
    total = np.zeros((x.shape[1], x.shape[1]))

    def outer(first: int) -> Vector:
        block = x[first : first + rows]
        return np.asarray((block.T * weights[first : first + rows]) @ block)

    for part in spread(outer, range(0, len(x), rows), 2.0 * x.size * x.shape[1]):
        total += part
    return total


def _plus(matrix: Vector, ridge: float) -> Vector:
    """Add the ridge to the diagonal."""
    matrix.flat[:: len(matrix) + 1] += ridge
    return matrix
