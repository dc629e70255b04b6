"""fisher-ratio over a pool that is read in parts: the same picks, for many reads of the pool.

As in memory, the next picks are guessed, here among the rows with the largest gains when the pool was last read. The
next read computes the products of all rows with the guessed picks, so the gain of every row before each of them is
known, and guesses are accepted as long as theirs is the largest. The first wrong guess is replaced by the row with the
largest gain. So each read gives at least one pick, and usually 64.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

import numpy as np

from accuacl.base.progress import Progress
from accuacl.base.threads import spread
from accuacl.greedy import unit
from accuacl.strategies.margin import uncertainties
from accuacl.strategies.parts import Part, PartsAnswer, PartsQuery
from accuacl.strategies.ratio import MOST, NOTHING, TIE, Ratio, outer
from accuacl.strategies.ratio_rows import Found, Updates, records
from accuacl.strategies.smallest import Indices, Vector

NEAR_BYTES = 128 << 20  # for the rows among which picks are guessed
EPS = float(np.finfo(float).eps)


def near_rows(n: int, d: int) -> int:
    """Among how many rows picks are guessed."""
    return min(n, max(2 * MOST, min(n // 10, NEAR_BYTES // (8 * d))))


def needed(n: int, d: int, K: int, **options: Any) -> int:
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
