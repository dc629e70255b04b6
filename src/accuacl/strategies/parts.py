"""A pool that does not fit into memory, read in parts as often as a strategy needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import derive, hash_ids
from accuacl.features import Features
from accuacl.strategies.query import Query
from accuacl.strategies.ranking import Indices, Vector

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


KEY = derive("a sample that stands for the pool")


def checked(sample: int | None, budget: int, n: int) -> int:
    """How many rows of n are in the sample: all, if no number is given."""
    if sample is None or n <= sample:
        return n
    if sample < min(budget, n):
        raise InputError(
            f"sample is {sample}, but {min(budget, n)} are to be picked from it; give several times as many."
        )
    return sample


def rows_of(query: Query, size: int) -> Indices:
    """The rows of the sample, ascending: those whose indices have the smallest hashes."""
    hashes = hash_ids(KEY, np.arange(len(query.pool), dtype=np.uint64))
    return np.sort(np.argsort(hashes, kind="stable")[:size])


def gather(query: PartsQuery, size: int) -> tuple[NDArray[Any], Features, Features | None, int]:
    """Of a pool that is read in parts: ids and features of the sample, in the order of the ids; the labelled; rows."""
    sets: list[tuple[NDArray[Any], ...]] = []  # hashes, ids, embeddings, probabilities
    labelled = [query.labelled] if query.labelled is not None else []
    cut, done, left = np.uint64(2**64 - 1), 0, 0
    for part in query.read():
        hashes = hash_ids(KEY, part.keys())
        rows = np.flatnonzero(~part.labelled & (hashes <= cut))
        some = part.features.rows(rows)
        sets.append((hashes[rows], part.ids_at(rows), some.embeddings, some.probabilities))
        if part.labelled.any():
            labelled.append(part.features.rows(np.flatnonzero(part.labelled)))
        if sum(len(hashes) for hashes, *_ in sets) > 2 * size:
            sets = [_smallest(sets, size)]
            cut = sets[0][0].max()
        done, left = done + len(part), left + len(part) - int(part.labelled.sum())
        if query.progress:
            query.progress(Progress(done, query.rows, "reading"))
    if not sets:
        return np.empty(0), Features.trusted(np.empty((0, query.d)), np.empty((0, query.K))), _joined(labelled), 0
    _, ids, h, p = _smallest(sets, size)
    order = np.argsort(ids, kind="stable")
    return ids[order], Features.trusted(h[order], p[order]), _joined(labelled), left


def _smallest(sets: list[tuple[NDArray[Any], ...]], size: int) -> tuple[NDArray[Any], ...]:
    hashes, *others = (np.concatenate(arrays) for arrays in zip(*sets, strict=True))
    order = np.lexsort((others[0], hashes))[:size]
    return hashes[order], *(array[order] for array in others)


def _joined(sets: list[Features]) -> Features | None:
    if not sets:
        return None
    h, p = (np.concatenate([getattr(some, name) for some in sets]) for name in ("embeddings", "probabilities"))
    return Features.trusted(h, p)
