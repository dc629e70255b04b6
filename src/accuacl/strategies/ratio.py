"""The state of fisher-ratio: what every example would gain, kept up to date from pick to pick."""

from __future__ import annotations

import numpy as np

from accuacl.base.progress import Tick
from accuacl.base.threads import spread
from accuacl.strategies.smallest import Indices, Vector

MOST = 64  # picks whose products with all rows are made together
AHEAD = 100  # one of so many rows is a candidate for these
ROWS = 2048
COLUMNS = 8192  # of the products of planned picks, made at a time
TIE = 1e-9  # gains this close, relatively, are a tie
NOTHING = 1e-13  # gains below this share of the first are rounding errors


class Ratio:
    """For every row x of the pool q = x V x and g = x N x, where V = M^-1 and N = V T V. Its gain is g / (1 + q).

    M is ridge * I and the sum of y y^T over known and picked rows y, T the sum of weight * z z^T over target rows.
    A pick p changes, with a = V p, y = N p, c = X a, z = X y and e = 1 + q_p, these:
    q by -c^2 / e, g by -2 c z / e + c^2 g_p / e^2, V by -a a^T / e, N by -(a y^T + y a^T) / e + a a^T g_p / e^2.
    One product with X at every pick would read all of X for little work. So the next picks are guessed, greedily among
    the rows with the largest gains, and the products are made for all of them; a guess that fails costs time alone.

    Where X has more columns than rows, V and N stand for X V X^T and X N X^T: the dual form.
    """

    def __init__(
        self,
        target: list[tuple[Vector, Vector]],
        known: Vector,
        ridge: float,
        rows: int,
        dual: bool | None = None,
    ) -> None:
        """`target`: rows and their weights in T; the first of these are the pool's. `dual`: unset, if that is less."""
        x = target[0][0]
        self.x, self.target, self.known, self.ridge = x, target, known, ridge
        self.rows, self.dual = rows or ROWS, x.shape[1] > len(x) if dual is None else dual
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
        """By how much each row would lower tr(V T); -inf for rows of which none is left.

        Changes subtract, and what is left of a much larger number has lost digits: where these matter to the choice or
        to its score, everything is computed anew.
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

    def guess(self, outside: float) -> list[int]:
        """The next picks, if all rows that are not here gain at most `outside`; given V and N, in the primal form."""
        for first in range(0, len(self.x), self.rows):
            self._compute_rows(first)
        gain = self.g / (1 + self.q)
        best = int(np.argmax(gain >= gain.max() - TIE * abs(gain.max())))
        self._guess(best, np.arange(len(self.x)), np.ones(len(self.x), np.int64), outside)
        return self.plan

    def add(self, row: int, gain: Vector, left: Indices) -> None:
        """Pick a row. `gain` and `left` of all rows, as they were, say which could be next."""
        if self.plan[self.done : self.done + 1] != [row]:
            self._make_plan(row, gain, left)
        (c, z), e, g = self.CZ[:, self.done], self.e[self.done], self.g_picked[self.done]
        self.g += c * (c * (g / e) - 2 * z) / e
        self.q -= c * c / e
        self.picks.append(row)
        self.done, self.age = self.done + 1, self.age + 1

    def _make_plan(self, row: int, gain: Vector, left: Indices) -> None:
        """Make V and N those of now; guess which picks follow this row, and make their products with all rows."""
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
