"""Strategies that rank rows one by one, over a pool in parts: the best of each part, and the best of those.

A part keeps at most as many rows as are wanted of the whole, with their features. A `cut`, what is known of the worst
row that can still be among the best, saves work and changes no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl import fisher
from accuacl.features import Features
from accuacl.pools.ids import Column, draws, take
from accuacl.strategies import Selection
from accuacl.strategies.accuacl import Scores
from accuacl.strategies.entropy import exact as entropies
from accuacl.strategies.entropy import sweep as sweep_entropies
from accuacl.strategies.margin import margins
from accuacl.strategies.ranking import Vector, in_slices, narrow, reach, round_off

FISHER = ("accuacl", "accuacl-full", "accuacl-distribution", "accuacl-magnitude")
SCORES = {"entropy": "entropy", "least-confidence": "confidence", "margin": "margin"}  # and what it is called
STREAMED = ("uniform", *SCORES, *FISHER)  # all others need the whole pool at once


def columns_of(strategy: str) -> tuple[str, ...]:
    """What a strategy reads of a pool."""
    if strategy == "uniform":
        return ("id",)
    return ("id", "probability") if strategy in SCORES else ("id", "embedding", "probability")


@dataclass(frozen=True, eq=False)
class Candidates:
    """Rows that may be picked: ids, what they are ranked by (the smaller the better) with its error, features."""

    ids: NDArray[Any]
    value: NDArray[Any]
    bound: Vector
    features: Features

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def none(cls) -> Candidates:
        return cls(
            np.empty(0, np.int64), np.empty(0), np.empty(0), Features.trusted(np.empty((0, 1)), np.empty((0, 1)))
        )

    def take(self, rows: NDArray[np.int64]) -> Candidates:
        return Candidates(self.ids[rows], self.value[rows], self.bound[rows], self.features.rows(rows))


@dataclass(frozen=True)
class Cut:
    """What is known of the worst row that can still be among the best: how far its value reaches at most, and, where
    rows tie with it, its exact value (rounded) and id."""

    reach: float = np.inf
    worst: tuple[float, Any] | None = None

    def at_most(self, other: Cut) -> Cut:
        """Both hold."""
        known = [cut.worst for cut in (self, other) if cut.worst is not None]
        return Cut(min(self.reach, other.reach), min(known, default=None))

    def admits(self, value: Vector, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether rows can be among the best, by their exact values (rounded) and ids."""
        may = value <= self.reach
        if self.worst is not None and len(ids):
            may &= (value < self.worst[0]) | ((value == self.worst[0]) & (ids <= self.worst[1]))
        return may


@dataclass(frozen=True)
class Rank:
    """How a strategy ranks rows, and how many `count` it wants of the whole pool."""

    strategy: str
    count: int
    target: fisher.Target | None = None
    released: bool = True

    def sift(self, ids: Column, features: Features, cut: Cut) -> Candidates:
        """The rows of a part that can be among the best."""
        rows = np.arange(len(features))
        if self.target is not None and self.strategy != "accuacl-magnitude":
            rows = fisher.may_be_below(features, self.target, cut.reach)
            features = features.rows(rows)
        value, bound = self._rough(features)
        least, most = reach(value, bound)
        near = least <= cut.reach
        if np.isfinite(cut.reach):  # what could be on either side of it is computed exactly, here where others help
            open_ = np.flatnonzero(near & (most > cut.reach))
            value[open_], bound[open_] = in_slices(lambda rows: self._exact(features.rows(rows)), open_), 0.0
            near[open_] = cut.admits(round_off(value[open_]), take(ids, rows[open_]))
        some = np.flatnonzero(near)
        return Candidates(take(ids, rows[some]), value[some], bound[some], features.rows(some))

    def join(self, parts: Sequence[Candidates]) -> Candidates:
        """The `count` best of several parts, in the order of their ids."""
        found = _sorted(parts)
        rows, value, bound = narrow(
            self.count, found.value, found.bound, lambda rows: self._exact(found.features.rows(rows))
        )
        return Candidates(found.ids[rows], value, bound, found.features.rows(rows))

    def tighter(self, cut: Cut, parts: Sequence[Candidates]) -> Cut:
        """What a row must reach to be among the best, as far as these say too."""
        if self.count == 0:
            return Cut(-np.inf)
        value = np.concatenate([np.empty(0), *(part.value for part in parts)])
        if len(value) < self.count:
            return cut
        bound = np.concatenate([part.bound for part in parts])
        least, most = reach(value, bound)
        if len(parts) == 1 and len(value) == self.count:  # joined, so in the order of ids
            rounded = round_off(value)
            worst = int(np.flatnonzero(rounded == rounded.max())[-1])
            if bound[worst] == 0 and ((bound == 0) | (most < least[worst])).all():
                cut = cut.at_most(Cut(worst=(float(rounded[worst]), parts[0].ids[worst])))
        return cut.at_most(Cut(float(np.partition(most, self.count - 1)[self.count - 1])))

    def answer(self, found: Candidates, count: int) -> Selection:
        """The picks, as rows of the joined candidates, as they would have been picked in memory."""
        rows = np.arange(len(found))
        if self.target is not None:
            scores = Scores(found.features, self.target, self.released)
            if self.strategy in ("accuacl", "accuacl-full"):
                return scores.largest_of(rows, count)
        exact = in_slices(lambda rows: self._exact(found.features.rows(rows)), rows)
        rows = np.argsort(round_off(exact), kind="stable")[:count]
        if self.target is not None:
            return scores.explain(rows)
        sign = -1 if self.strategy == "entropy" else 1
        return Selection(rows, {SCORES[self.strategy]: sign * exact[rows]})

    def _rough(self, features: Features) -> tuple[Vector, Vector]:
        if self.target is not None:
            scores = Scores(features, self.target, self.released)
            if self.strategy != "accuacl-magnitude":
                return scores.sweep_distribution()
            value, bound = scores.sweep_magnitude()
            return -value, bound
        if self.strategy == "entropy":
            value, bound = sweep_entropies(features.probabilities)
            return -value, bound
        return self._exact(features), np.zeros(len(features))

    def _exact(self, features: Features) -> Vector:
        p = features.probabilities
        if self.strategy == "entropy":
            return -entropies(p)
        if self.strategy == "margin":
            return margins(p)
        if self.strategy == "least-confidence":
            return p.max(axis=1).astype(np.float64)
        assert self.target is not None
        if self.strategy == "accuacl-magnitude":
            return -fisher.magnitude(features, self.target if self.released else None)
        return fisher.distribution(features, self.target)


@dataclass(frozen=True)
class Draw:
    """Uniform sampling: ranks by the hash of (seed, id)."""

    seed: int
    count: int

    def sift(self, ids: Column, features: Features, cut: Cut) -> Candidates:
        hashes = draws(self.seed, ids)
        rows = np.flatnonzero(hashes <= np.uint64(min(cut.reach, 2**64 - 1)))
        return Candidates(take(ids, rows), hashes[rows], np.zeros(len(rows)), features.rows(rows))

    def join(self, parts: Sequence[Candidates]) -> Candidates:
        found = _sorted(parts)
        return found.take(np.sort(np.argsort(found.value, kind="stable")[: self.count]))

    def tighter(self, cut: Cut, parts: Sequence[Candidates]) -> Cut:
        hashes = np.concatenate([np.empty(0, np.uint64), *(part.value for part in parts)])
        if self.count == 0 or len(hashes) < self.count:
            return cut
        return Cut(int(np.partition(hashes, self.count - 1)[self.count - 1]))

    def answer(self, found: Candidates, count: int) -> Selection:
        rows = np.argsort(found.value, kind="stable")[:count]
        return Selection(rows, {"draw": found.value[rows] / 2.0**64})


def _sorted(parts: Sequence[Candidates]) -> Candidates:
    """All in one, by id: then rows that tie are in the order that decides."""
    some = [part for part in parts if len(part)] or parts[:1]
    found = Candidates(
        np.concatenate([part.ids for part in some]),
        np.concatenate([part.value for part in some]),
        np.concatenate([part.bound for part in some]),
        Features.trusted(
            np.concatenate([part.features.embeddings for part in some]),
            np.concatenate([part.features.probabilities for part in some]),
        ),
    )
    return found.take(np.argsort(found.ids, kind="stable"))
