"""A random sample that represents a pool which would take too long as a whole; the same for the same ids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.progress import Progress
from accuacl.base.randomness import derive, hash_ids
from accuacl.features import Features
from accuacl.strategies.parts import PartsQuery
from accuacl.strategies.query import Query, whole_number
from accuacl.strategies.smallest import Indices

KEY = derive("a sample that stands for the pool")


def checked(sample: int | None, budget: int, n: int) -> int:
    """How many rows of n are in the sample: all, if no number is given."""
    if sample is None or n <= whole_number("sample", sample, 1):
        return n
    if sample < min(budget, n):
        raise InputError(
            f"sample is {sample}, but {min(budget, n)} are to be picked from it; give several times as many."
        )
    return int(sample)


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
