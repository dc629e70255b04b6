"""The state of fisher-ratio: what every example would gain, kept up to date from pick to pick."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import Progress, Tick, portion
from accuacl.base.threads import spread
from accuacl.strategies.accuacl import Lam, weight_of_past
from accuacl.strategies.api import check_fits, needs
from accuacl.strategies.facility import distinct, unit
from accuacl.strategies.options import Option
from accuacl.strategies.parts import Part, PartsAnswer, PartsForm, PartsQuery, in_parts
from accuacl.strategies.query import Query, Selection
from accuacl.strategies.ranking import Indices, Vector
from accuacl.strategies.simple import uncertainties

Ridge = Annotated[float, Option("how much is known in every direction at first", least=1e-6, most=1e6)]
Uncertainty = Annotated[
    bool,
    Option(
        "whether examples of which the model is unsure count more (weighed) or not (ignored)",
        words=("ignored", "weighed"),
    ),
]
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


@dataclass(frozen=True, eq=False)
class Found:
    """Rows of the pool: their gains, ids, row numbers and embeddings of length 1."""

    gain: Vector
    ids: NDArray[Any]
    rows: Indices
    x: Vector

    @classmethod
    def of(cls, part: Part, x: Vector, gain: Vector, rows: Indices) -> Found:
        return cls(gain[rows], part.ids_at(rows), part.first + rows, x[rows])

    @classmethod
    def joined(cls, founds: list[Found]) -> Found:
        return cls(*(np.concatenate([getattr(found, name) for found in founds]) for name in cls.__annotations__))

    def take(self, rows: Any) -> Found:
        return Found(self.gain[rows], self.ids[rows], self.rows[rows], self.x[rows])

    def best(self) -> int:
        """The row with the largest gain; of those that tie, the smallest id."""
        top = self.gain.max()
        tied = np.flatnonzero(self.gain >= top - TIE * abs(top))
        return int(tied[np.argsort(self.ids[tied], kind="stable")[0]])


@dataclass(frozen=True, eq=False)
class Updates:
    """Picks, and how they change q and g of every row, as in `Ratio`."""

    rows: Indices
    AY: Vector
    e: Vector
    g: Vector

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, x: Vector) -> Vector:
        return np.asarray((self.AY.reshape(-1, x.shape[1]) @ x.T).reshape(2, len(self), len(x)))

    def apply(self, k: int, products: Vector, first: int, q: Vector, g: Vector) -> None:
        """Update q and g of consecutive rows to those after pick k."""
        (c, z), e = products[:, k], self.e[k]
        g += c * (c * (self.g[k] / e) - 2 * z) / e
        q -= c * c / e
        if first <= self.rows[k] < first + len(g):
            g[self.rows[k] - first] = -np.inf

    def first(self, count: int) -> Updates:
        count = min(count, len(self))
        return Updates(self.rows[:count], self.AY[:, :count], self.e[:count], self.g[:count])


def records(part: Part, x: Vector, gain: Vector) -> Found:
    """Rows that tie with the best of the part and gain more than all that have a smaller id: one of them is the
    first to tie with the best of the pool, whatever that is."""
    top = gain.max(initial=-np.inf)
    rows = np.flatnonzero(gain >= top - TIE * abs(top)) if top > -np.inf else np.empty(0, np.int64)
    if len(rows) > 1:
        rows = rows[np.argsort(part.ids_at(rows), kind="stable")]
        before = np.maximum.accumulate(gain[rows])[:-1]
        rows = rows[np.append(True, gain[rows][1:] > before)]
    return Found.of(part, x, gain, rows)


NEAR_BYTES = 128 << 20  # for the rows among which picks are guessed
EPS = float(np.finfo(float).eps)


def near_rows(n: int, d: int) -> int:
    """Among how many rows picks are guessed."""
    return min(n, max(2 * MOST, min(n // 10, NEAR_BYTES // (8 * d))))


def needed_in_parts(n: int, d: int, K: int, **options: Any) -> int:
    """Bytes: four numbers per row, d x d matrices, rows to guess among (at times twice), parts of the pool."""
    return 40 * n + 64 * d * d + 32 * near_rows(n, d) * (d + 8) + (256 << 20)


class PartsRatio:
    """q and g of all rows, V and N in memory, as in `Ratio`; the rows themselves are read when needed."""

    def __init__(self, query: PartsQuery, ridge: float, lam: float, uncertainty: bool) -> None:
        n, d = query.rows, query.d
        self.query, self.ridge, self.lam, self.uncertainty = query, ridge, lam, uncertainty
        self.q, self.g = np.empty((2, n)), np.empty((2, n))  # now, and after the guessed picks
        self.nothing = Updates(np.empty(0, np.int64), np.empty((2, 0, d)), np.empty(0), np.empty(0))
        self.plan = self.pending = self.nothing  # `pending`: picks that q and g do not include yet
        self.near: Found | None = None
        self.cut = -np.inf  # no other row had a larger gain
        self.fresh, self.age, self.over = True, 0, False
        self.top_q = self.top_g = 0.0  # the largest when these were computed by their definitions
        self.picks: list[tuple[Any, int, Vector, float]] = []  # id, row, embedding, gain
        self.told = 0.0

    def choose(self) -> PartsAnswer:
        """Ids and gains of the picks."""
        self.M, self.T = self._sums(self.uncertainty)
        count = min(self.query.budget, self.left)
        while len(self.picks) < count and not self.over:
            self._make_plan(count - len(self.picks))
            self._accept(self._read())
        ids, gains = [pick[0] for pick in self.picks], [pick[3] for pick in self.picks]
        if len(ids) < count:
            ids += heapq.nsmallest(count - len(ids), self._ids_left())
        self._tell(1.0, "choosing")
        return np.array(ids), {"gain": np.array(gains + [0.0] * (count - len(gains)))}

    def _sums(self, uncertainty: bool) -> tuple[Vector, Vector]:
        """M and T by their definitions; all rows have the same weight if none is uncertain."""
        query, d = self.query, self.query.d
        M, T, self.left = self.ridge * np.eye(d), np.zeros((d, d)), 0

        def add(part: Part) -> tuple[int, Vector, Vector]:
            x, left = unit(part.features.embeddings), ~part.labelled
            u = uncertainties(part.features) if uncertainty else np.ones(len(part))
            known = outer(x[part.labelled], np.ones(len(part) - left.sum())) if part.labelled.any() else np.zeros(1)
            return int(left.sum()), known, outer(x[left], u[left])

        done = 0
        for rows, known, target in spread(add, query.read(), 2.0 * query.rows * d * d):
            M, T, self.left, done = M + known, T + target, self.left + rows, done + rows
            self._tell(0.1 * done / max(1, query.rows), "adding up")
        memory = query.memory if query.memory is not None and len(query.memory) else None
        T *= (1 - self.lam if memory else 1.0) / max(1, self.left)
        for some in (query.labelled, memory):
            if some is not None:
                x = unit(some.embeddings)
                M += outer(x, np.ones(len(x)))
        if memory:
            weights = uncertainties(memory) if uncertainty else np.ones(len(memory))
            T += outer(unit(memory.embeddings), weights * (self.lam / len(memory)))
        if uncertainty and not T.any() and self.left:
            return self._sums(False)
        return M, T

    def _make_plan(self, most: int) -> None:
        """Guess the next picks; V and N are computed again when necessary."""
        if self.fresh:
            x = np.array([pick[2] for pick in self.picks]).reshape(-1, self.query.d)
            self.V = np.asarray(np.linalg.inv(self.M + x.T @ x))
            self.N, self.pending = self.V @ self.T @ self.V, self.nothing
        self.plan = self.nothing
        taken = {pick[1] for pick in self.picks}
        near = self.near.take([row not in taken for row in self.near.rows.tolist()]) if self.near else None
        if near is None or not len(near.rows):
            return
        near = near.take(np.argsort(near.ids, kind="stable"))
        state = Ratio([(near.x, np.zeros(len(near.x)))], near.x[:0], self.ridge, 0, dual=False)
        state.V, state.N = self.V, self.N
        rows = state.guess(self.cut)
        self.plan = Updates(near.rows[rows], state.AY[:, : len(rows)], state.e, state.g_picked).first(most)

    def _read(self) -> list[Found]:
        """Read the pool for q and g now and after the plan, the best rows before each pick of the plan, and `near`."""
        query, wanted = self.query, near_rows(self.query.rows, self.query.d)
        steps: list[list[Found]] = [[] for _ in range(len(self.plan))]
        near: list[Found] = []
        self.cut, done, fresh = -np.inf, 0, self.fresh
        if fresh:
            self.top_q, self.top_g, self.age, self.fresh = 0.0, 0.0, 0, False
        columns = 2 * (len(self.plan) + len(self.pending) + (query.d if fresh else 0))
        start, end = (0.1 + 0.9 * picks / query.budget for picks in (len(self.picks), len(self.picks) + len(self.plan)))
        for part, found, top in spread(
            lambda part: self._look(part, fresh), query.read(), 2.0 * query.rows * query.d * columns
        ):
            for step, best in zip(steps, found, strict=True):
                step.append(best)
            near.append(top)
            if sum(len(some.rows) for some in near) > 2 * wanted:
                near = [self._largest(near, wanted)]
            if fresh:
                rows = slice(part.first, part.first + len(part))
                self.top_q = max(self.top_q, float(self.q[0, rows].max(initial=0)))
                self.top_g = max(self.top_g, float(self.g[0, rows].max(initial=0)))
            done += len(part)
            self._tell(start + (end - start) * done / max(1, query.rows), "choosing")
        self.near = self._largest(near, wanted) if near else None
        return [Found.joined(step) for step in steps]

    def _look(self, part: Part, fresh: bool) -> tuple[Part, list[Found], Found]:
        """One part: (itself, the rows that may be best before each pick of the plan, rows to guess among)."""
        x, rows = unit(part.features.embeddings), slice(part.first, part.first + len(part))
        q, g = self.q[0, rows], self.g[0, rows]
        if fresh:
            q[:], g[:] = (np.einsum("ij,ij->i", x @ matrix, x) for matrix in (self.V, self.N))
            g[part.labelled] = -np.inf
            taken = np.array([pick[1] for pick in self.picks if part.first <= pick[1] < rows.stop], np.int64)
            g[taken - part.first] = -np.inf
        products = self.pending.products(x)
        for k in range(len(self.pending)):
            self.pending.apply(k, products, part.first, q, g)
        q, g = q.copy(), g.copy()
        products, found = self.plan.products(x), []
        for k in range(len(self.plan)):
            found.append(records(part, x, g / (1 + q)))
            self.plan.apply(k, products, part.first, q, g)
        self.q[1, rows], self.g[1, rows] = q, g
        gain = g / (1 + q)
        return part, found, Found.of(part, x, gain, np.flatnonzero((gain > self.cut) & (gain > -np.inf)))

    def _largest(self, near: list[Found], wanted: int) -> Found:
        """Keep the rows with the largest gains; the largest of the others is the cut."""
        found = Found.joined(near)
        if len(found.rows) <= wanted:
            return found
        order = np.argpartition(-found.gain, wanted)
        self.cut = max(self.cut, float(found.gain[order[wanted]]))
        return found.take(order[:wanted])

    def _accept(self, steps: list[Found]) -> None:
        """Pick the rows with the largest gains, as long as the plan is right."""
        done, extra = 0, self.nothing
        for k, found in enumerate(steps):
            best = found.best()
            gain, age = float(found.gain[best]), self.age + k
            if gain <= NOTHING * max((pick[3] for pick in self.picks), default=0.0):
                self.over = True
                break
            if age and (16 + age) * EPS * (self.top_g + gain * self.top_q) > TIE / 8 * gain:
                self.fresh = True  # too many digits are lost to tell which gain is the largest
                break
            self.picks.append((found.ids[best], int(found.rows[best]), found.x[best], gain))
            if found.rows[best] != self.plan.rows[k]:
                self._settle(self.plan.first(done))
                extra = self._update_of(found.rows[best : best + 1], found.x[best])
                self._settle(extra)
                break
            done += 1
        if not len(extra):
            self._settle(self.plan.first(done))
        self.age += done + len(extra)
        if done == len(self.plan) and not self.fresh:
            self.q[0], self.g[0], self.pending = self.q[1], self.g[1], self.nothing
        else:
            both = (self.plan.first(done), extra)
            AY = np.concatenate([some.AY for some in both], axis=1)
            rows, e, g = (np.concatenate([getattr(some, name) for some in both]) for name in ("rows", "e", "g"))
            self.pending = Updates(rows, AY, e, g)

    def _update_of(self, rows: Indices, x: Vector) -> Updates:
        """The update of a single pick."""
        AY = np.stack([self.V @ x, self.N @ x])
        return Updates(rows, AY[:, None], np.array([1 + AY[0] @ x]), np.array([AY[1] @ x]))

    def _settle(self, some: Updates) -> None:
        """Update V and N to those after some picks."""
        (A, Y), e = some.AY, some.e
        half = (A.T / e) @ (Y - A * (some.g / (2 * e))[:, None])
        self.V -= (A.T / e) @ A
        self.N -= half + half.T

    def _ids_left(self) -> Iterator[Any]:
        taken = {pick[1] for pick in self.picks}
        for part in self.query.read():
            rows = [row for row in np.flatnonzero(~part.labelled).tolist() if part.first + row not in taken]
            yield from part.ids_at(np.array(rows, np.int64)).tolist()

    def _tell(self, share: float, text: str) -> None:
        self.told = max(self.told, share)
        if self.query.progress:
            self.query.progress(Progress(self.told, 1.0, text))


def needed(n: int, d: int, K: int) -> int:
    """Bytes: two float64 copies of the embeddings, products of some rows with all, matrices of d x d or n x n."""
    return 16 * n * d + 64 * min(n, d) ** 2 + 8 * n * (2 * MOST + 64)


def from_parts(
    query: PartsQuery, *, ridge: float = 1.0, lam: float | None = None, uncertainty: bool = True
) -> PartsAnswer:
    """The same picks from a pool that is read in parts."""
    labelled, memory = query.labelled, query.memory
    lam = weight_of_past(lam, query.past, len(memory or ()), query.rows + len(labelled or ()))
    return PartsRatio(query, ridge, lam, uncertainty).choose()


@in_parts(PartsForm(from_parts, needed_in_parts))
@needs(needed)
def fisher_ratio(query: Query, *, ridge: Ridge = 1.0, lam: Lam = None, uncertainty: Uncertainty = True) -> Selection:
    """Picks, one by one, the examples that most reduce the uncertainty about pool and memory.

    Embeddings h are scaled to length 1. M, the information available, is ridge * I plus the sum of h h^T over labelled
    examples, memory and picks. T, the information wanted, is (1 - lam) times the mean of u h h^T over the pool plus lam
    times that over the memory, where u = 1 - margin. Each pick is the example that lowers tr(M^-1 T) most: the ratio of
    Fisher information that AccuACL's scores approximate, here with full matrices over h and for the whole batch.
    Score: `gain`, by how much the pick lowered the trace.

    Options: `ridge`; `lam`, the weight of the past (default: past / (past + pool + labelled)); `uncertainty`:
    with False, u = 1, as it also is if the model is certain of everything (of all that has an embedding but zeros).

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
    weights, past_weights = _weights(query, lam, uncertainty)
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
    """What each example of the pool and of the memory weighs in the target."""
    n, m = len(query.pool), len(query.memory or ())
    shares = np.repeat([(1 - lam if m else 1.0) / max(n, 1), lam / max(m, 1)], [n, m])
    if uncertainty:
        sets = [some for some in (query.pool, query.memory) if some is not None]
        u = np.concatenate([uncertainties(some) * some.embeddings.any(axis=1) for some in sets])  # zeros inform nobody
        shares = shares * u if (shares * u).any() else shares
    return shares[:n], shares[n:]
