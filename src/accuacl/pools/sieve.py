"""The smallest rows of a pool that is read in parts: the smallest of each part, and then the smallest of those.

A part keeps at most as many rows as are wanted in all, with their features. A `Cut`, an upper bound for rows that can
still be among the smallest, saves work and does not change the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.features import Features
from accuacl.pools.ids import Column, as_uint64, take
from accuacl.strategies import Ranking, Rows, among_smallest, made_exact, reach, round_off


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that may be picked: their ids, values (smaller is better), the errors of these, and the rows themselves."""

    ids: NDArray[Any]
    value: NDArray[Any]
    bound: NDArray[np.float64]
    rows: Rows

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Candidates:
        """No rows, of width d and K."""
        features = Features.trusted(np.empty((0, shape[0])), np.empty((0, shape[1])))
        return cls(np.empty(0, np.int64), np.empty(0), np.empty(0), Rows(np.empty(0, np.uint64), features))

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """All parts in one, sorted by id, which decides between rows that tie."""
        parts = [part for part in parts if len(part)] or parts[:1]
        ids = np.concatenate([part.ids for part in parts])
        order = np.argsort(ids, kind="stable")
        features = Features.trusted(
            np.concatenate([part.rows.embeddings for part in parts])[order],
            np.concatenate([part.rows.probabilities for part in parts])[order],
        )
        return cls(
            ids[order],
            np.concatenate([part.value for part in parts])[order],
            np.concatenate([part.bound for part in parts])[order],
            Rows(np.concatenate([part.rows.ids for part in parts])[order], features),
        )


@dataclass(frozen=True)
class Cut:
    """An upper bound for rows that can still be among the smallest: the most that such a value can be and, to decide
    ties, the exact value (rounded) and id of the largest such row."""

    reach: Any = np.inf
    largest: tuple[Any, Any] | None = None

    def at_most(self, other: Cut) -> Cut:
        """The stricter of the two cuts."""
        known = [cut.largest for cut in (self, other) if cut.largest is not None]
        return Cut(min(self.reach, other.reach), min(known, default=None))

    def admits(self, value: NDArray[Any], ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether rows can be among the smallest, by their exact values (rounded) and ids."""
        may = value <= self.reach
        if self.largest is not None and len(ids):
            may &= (value < self.largest[0]) | ((value == self.largest[0]) & (ids <= self.largest[1]))
        return np.asarray(may)


@dataclass(frozen=True)
class Sieve:
    """Finds the `count` smallest rows of a pool by a ranking. by_id: whether the ranking looks at ids."""

    ranking: Ranking
    count: int
    by_id: bool

    def sift(self, ids: Column, features: Features, cut: Cut) -> Candidates:
        """The rows of a part that can be among the smallest."""
        rows = Rows(as_uint64(ids) if self.by_id else np.zeros(len(features), np.uint64), features)
        kept = np.arange(len(rows))
        if self.ranking.may_reach is not None:
            kept = self.ranking.may_reach(rows, cut.reach)
            rows = rows.take(kept)
        value, bound = self.ranking.values(rows)
        least, most = reach(value, bound)
        near = least <= cut.reach
        if np.isfinite(cut.reach):  # rows that the cut leaves undecided are computed exactly here, in parallel
            undecided = np.flatnonzero(near & (most > cut.reach))
            value, bound = made_exact(value, bound, undecided, lambda some: self.ranking.exact(rows.take(some)))
            near[undecided] = cut.admits(round_off(value[undecided]), take(ids, kept[undecided]))
        passed = np.flatnonzero(near)
        return Candidates(take(ids, kept[passed]), value[passed], bound[passed], rows.take(passed))

    def join(self, parts: Sequence[Candidates]) -> Candidates:
        """The `count` smallest of several parts, in the order of their ids."""
        all_ = Candidates.joined(parts)
        kept, value, bound = among_smallest(
            self.count, all_.value, all_.bound, lambda some: self.ranking.exact(all_.rows.take(some))
        )
        return Candidates(all_.ids[kept], value, bound, all_.rows.take(kept))

    def tighter(self, cut: Cut, parts: Sequence[Candidates]) -> Cut:
        """The cut that these rows, together with earlier ones, allow."""
        if self.count == 0:
            return Cut(-np.inf)
        value = np.concatenate([part.value for part in parts])
        if len(value) < self.count:
            return cut
        bound = np.concatenate([part.bound for part in parts])
        least, most = reach(value, bound)
        if len(parts) == 1 and len(value) == self.count:  # joined, therefore sorted by id
            rounded = round_off(value)
            last = int(np.flatnonzero(rounded == rounded.max())[-1])
            if bound[last] == 0 and ((bound == 0) | (most < least[last])).all():
                cut = cut.at_most(Cut(largest=(rounded[last], parts[0].ids[last])))
        return cut.at_most(Cut(np.partition(most, self.count - 1)[self.count - 1]))
