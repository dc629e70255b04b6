"""What fisher-ratio remembers of rows that it reads in parts: the best of them, and how picks change all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.strategies.parts import Part
from accuacl.strategies.ratio import TIE
from accuacl.strategies.smallest import Indices, Vector


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
