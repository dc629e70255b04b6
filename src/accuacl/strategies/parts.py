"""A pool that does not fit into memory, read in parts as often as a strategy needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import OnProgress
from accuacl.features import Features
from accuacl.strategies.smallest import Indices, Vector

Strategy = TypeVar("Strategy", bound=Callable[..., object])


@dataclass(frozen=True, eq=False)
class Part:
    """Consecutive rows of a pool, from row number `first` on.

    `labelled`: rows that already have labels and must not be picked. `ids_at`: the ids of rows of this part; `keys`:
    64 bits for each id, as in `Rows`.
    """

    first: int
    features: Features
    labelled: NDArray[np.bool_]
    ids_at: Callable[[Indices], NDArray[Any]]
    keys: Callable[[], NDArray[np.uint64]]

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True, eq=False)
class PartsQuery:
    """A `Query` whose pool of so many rows is read in parts: the same parts in the same order each time."""

    read: Callable[[], Iterator[Part]]
    rows: int
    d: int
    K: int
    budget: int
    labelled: Features | None = None
    memory: Features | None = None
    past: int | None = None
    progress: OnProgress | None = None


PartsAnswer = tuple[NDArray[Any], dict[str, Vector]]  # ids in selection order, and scores


@dataclass(frozen=True)
class PartsForm:
    """A strategy's second form: `choose` makes the same picks from a `PartsQuery`; `needed`: bytes beyond the parts.

    Both are given the strategy's options. only_with: an option without which there is no such form.
    """

    choose: Callable[..., PartsAnswer]
    needed: Callable[..., int]  # of n examples, d wide, of K classes
    only_with: str = ""


def in_parts(form: PartsForm) -> Callable[[Strategy], Strategy]:
    """Declare a strategy's second form."""

    def declare(strategy: Strategy) -> Strategy:
        strategy.in_parts = form  # type: ignore[attr-defined]
        return strategy

    return declare


def parts_form(strategy: Callable[..., object], options: dict[str, Any]) -> PartsForm | None:
    """The second form of a strategy, if it has one with these options."""
    form: PartsForm | None = getattr(strategy, "in_parts", None)
    return form if form and (not form.only_with or options.get(form.only_with) is not None) else None
