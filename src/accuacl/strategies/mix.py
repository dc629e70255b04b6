"""Two rankings that take turns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.strategies.query import number
from accuacl.strategies.ranking import Find, Ranking
from accuacl.strategies.smallest import Indices, Vector


@dataclass(frozen=True)
class Mix:
    """Two rankings that take turns: `first` has this share of the picks, `second` the rest; none is picked twice.

    name: of the score that is 1 for picks of the first and 0 for the others.
    """

    first: Ranking
    second: Ranking
    share: float
    name: str

    def choose(self, find: Find, count: int) -> tuple[NDArray[Any], dict[str, Vector]]:
        """The picks of both in turn, through `find`, and their scores by both."""
        some = part(self.share, count)
        ids, rows = find(self.first, some)
        others, other_rows = find(self.second, count)  # enough even if the first has picked the same rows
        inside = set(ids.tolist())
        new = np.array([i for i, id_ in enumerate(others.tolist()) if id_ not in inside], np.int64)[: count - some]
        order = in_turn(len(ids), len(new))
        scores = {self.name: np.repeat([1.0, 0.0], [len(ids), len(new)])[order]}
        for ranking in (self.first, self.second):
            mine, theirs = ranking.explain(rows), ranking.explain(other_rows.take(new))
            scores |= {name: np.concatenate([mine[name], theirs[name]])[order] for name in mine}
        return np.concatenate([ids, others[new]])[order], scores


def part(share: float, count: int) -> int:
    """How many of `count` picks the first ranking makes."""
    return math.floor(number("share", share, 0, 1, "a number in [0, 1]") * count + 0.5)


def in_turn(first: int, second: int) -> Indices:
    """An order of `first` things and `second` others in which every prefix has the same mix as the whole.

    >>> in_turn(2, 4)
    array([2, 0, 3, 4, 1, 5])
    """
    places = np.concatenate([(np.arange(count) + 0.5) / max(1, count) for count in (first, second)])
    return np.argsort(places, kind="stable")
