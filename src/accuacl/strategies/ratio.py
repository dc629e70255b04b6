"""The state of fisher-ratio: what every example would gain, kept up to date from pick to pick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Tick
from accuacl.strategies.smallest import Indices, Vector

MOST = 32  # picks whose products with all rows are made together
AHEAD = 192  # rows among which these are guessed
ROWS = 2048
TIE = 1e-9  # gains this close, relatively, are a tie


class Ratio:
    """For every row x of the pool q = x V x and g = x N x, where V = M^-1 and N = V T V. Its gain is g / (1 + q).

    M is ridge * I and the sum of y y^T over known and picked rows y, T the sum of weight * z z^T over target rows.
    A pick p changes, with c = X V p, z = X N p and e = 1 + q_p, q by -c^2 / e and g by -2 c z / e + c^2 g_p / e^2.
    The products with X are made for several likely picks at a time, with V and N as they are then. What the picks since
    have changed is held back: it is made good for each next pick, and for V and N when new products are due.

    Where X has more columns than rows, V and N stand for X V X^T and X N X^T: the dual form.
    """

    def __init__(self, target: list[tuple[Vector, Vector]], known: Vector, ridge: float, rows: int) -> None:
        """`target`: rows and their weights in T; the first of these are the pool's."""
        x = target[0][0]
        self.x, self.target, self.known, self.ridge = x, target, known, ridge
        self.rows, self.dual = rows or ROWS, x.shape[1] > len(x)
        self.picks: list[int] = []
        self.likely: dict[int, int] = {}  # rows whose products are there, and where
        width = len(x) if self.dual else x.shape[1]
        self.A, self.Y = np.empty((2, MOST, width))  # V p and N p of the picks that V and N do not hold yet
        self.C, self.Z = (self.A, self.Y) if self.dual else np.empty((2, MOST, len(x)))  # X V p and X N p of these
        self.products = np.empty((0 if self.dual else 2 * MOST, len(x)))
        self.e, self.g_picked = np.empty((2, MOST))
        self.held = 0  # how many these are

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
            self.N = self.V @ sum(_outer(rows, weights, self.rows) for rows, weights in self.target) @ self.V
            self.q, self.g = np.empty(n), np.empty(n)
            for i in range(0, n, self.rows):
                block = self.x[i : i + self.rows]
                self.q[i : i + self.rows] = np.einsum("ij,ij->i", block @ self.V, block)
                self.g[i : i + self.rows] = np.einsum("ij,ij->i", block @ self.N, block)
                tick(len(block))
        self.start_q, self.start_g, self.age = self.q.copy(), self.g.copy(), 0
        self.likely, self.held = {}, 0

    def gains(self, left: NDArray[np.bool_]) -> Vector:
        """By how much each row would lower tr(V T); -inf for rows that are not left.

        Changes subtract, and what is left of a much larger number has lost digits: where that could change the choice,
        everything is computed anew.
        """
        gain = np.where(left, self.g / (1 + self.q), -np.inf)
        if self.age:
            spread = self.start_g + np.where(left, gain, 0) * self.start_q
            error = (16 + self.age) * np.finfo(float).eps * np.abs(spread) / (1 + self.q)
            contend = gain + error >= np.max(gain - error)
            if np.count_nonzero(contend) > 1 and (error[contend] > TIE / 4 * np.abs(gain[contend])).any():
                self.compute(lambda more: None)
                gain = np.where(left, self.g / (1 + self.q), -np.inf)
        return gain

    def add(self, row: int, gain: Vector) -> None:
        """Pick a row; those with the largest gains are likely to be picked next."""
        if row not in self.likely or self.held == MOST:
            self._products(row, gain)
        at, k, e = self.likely[row], self.held, 1 + self.q[row]
        first = self.C[:k, row] / self.e[:k]
        second = (self.Z[:k, row] - first * self.g_picked[:k]) / self.e[:k]
        for V, N, of_V, of_N in ((self.A, self.Y, self.of_V, self.of_N), (self.C, self.Z, self.with_V, self.with_N)):
            V[k] = of_V[at] - first @ V[:k]
            N[k] = of_N[at] - second @ V[:k] - first @ N[:k]
        self.e[k], self.g_picked[k] = e, self.g[row]
        self.g += self.C[k] * (self.C[k] * (self.g[row] / e) - 2 * self.Z[k]) / e
        self.q -= self.C[k] * self.C[k] / e
        self.picks.append(row)
        self.held, self.age = k + 1, self.age + 1

    def _products(self, row: int, gain: Vector) -> None:
        """Make V and N those of now, and the products for this row and for those with the largest gains."""
        A, Y, e, g = self.A[: self.held], self.Y[: self.held], self.e[: self.held], self.g_picked[: self.held]
        half = (A.T / e) @ (Y - A * (g / (2 * e))[:, None])
        self.V -= (A.T / e) @ A
        self.N -= half + half.T
        rows = np.union1d(self._guess(gain), row)
        self.likely, self.held = {int(row): i for i, row in enumerate(rows)}, 0
        if self.dual:
            self.of_V, self.of_N = self.with_V, self.with_N = self.V[rows], self.N[rows]
        else:
            self.of_V, self.of_N = self.x[rows] @ self.V, self.x[rows] @ self.N
            both = np.concatenate([self.of_V, self.of_N])
            np.matmul(both, self.x.T, out=self.products[: len(both)])
            self.with_V, self.with_N = self.products[: len(rows)], self.products[len(rows) : len(both)]

    def _guess(self, gain: Vector) -> Indices:
        """The next picks, if they all are among the rows with the largest gains now: greedy on these rows alone."""
        cut = max(0, len(gain) - AHEAD)
        order = np.argpartition(gain, cut)
        outside, rows = float(gain[order[:cut]].max(initial=-np.inf)), order[cut:]
        if self.dual:
            V, N = self.V[np.ix_(rows, rows)], self.N[np.ix_(rows, rows)]
        else:
            V, N = (self.x[rows] @ matrix @ self.x[rows].T for matrix in (self.V, self.N))
        q, g, gains = V.diagonal().copy(), N.diagonal().copy(), gain[rows]
        guess: list[int] = []
        while len(guess) < MOST - 1:
            best = int(np.argmax(gains))
            if gains[best] < outside or gains[best] == -np.inf:
                break
            guess.append(best)
            c, z, e = V[best].copy(), N[best] - V[best] * (g[best] / (2 + 2 * q[best])), 1 + q[best]
            g, q = g - 2 * c * z / e, q - c * c / e
            V -= np.outer(c / e, c)
            N -= np.outer(c / e, z) + np.outer(z / e, c)
            gains = g / (1 + q)
            gains[guess] = -np.inf
        return rows[guess]


def _outer(x: Vector, weights: Vector, rows: int) -> Vector:
    """The sum of weight * x x^T."""
    total = np.zeros((x.shape[1], x.shape[1]))
    for i in range(0, len(x), rows):
        total += (x[i : i + rows].T * weights[i : i + rows]) @ x[i : i + rows]
    return total


def _plus(matrix: Vector, ridge: float) -> Vector:
    """Add the ridge to the diagonal."""
    matrix.flat[:: len(matrix) + 1] += ridge
    return matrix
