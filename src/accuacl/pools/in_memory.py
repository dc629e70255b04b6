"""Strategies that need the whole pool: it is read into memory, in the order of its ids, if it fits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.engines import Function
from accuacl.features import Features
from accuacl.pools.chunks import chunks
from accuacl.pools.duplicates import check_unique
from accuacl.pools.ids import as_array
from accuacl.pools.pool import Pool
from accuacl.strategies import REGISTRY, TooLarge, available, bytes_needed, options_of, parts_form, whole_number

USUAL_LIMIT = 4 << 30


def fits(strategy: str, pool: Pool, others: int, limit: int | None, options: dict[str, Any]) -> bool:
    """Whether the pool is read into memory for a strategy: if it fits, unless the strategy wants a sample of it.

    Refuses, with the bytes needed, before anything is read, where it does not fit and cannot be read in parts.
    `others`: rows of memory and labelled.
    """
    layout, chosen = pool.layout, REGISTRY[strategy]
    row = layout.d * np.dtype(layout.types[0]).itemsize + layout.K * np.dtype(layout.types[1]).itemsize
    # ids, their order, and what the strategies keep for each row (see "Cost" in their docstrings)
    need = (pool.rows + others) * row + pool.rows * (24 + 80 + 4 * layout.K)
    need += bytes_needed(chosen, pool.rows, *layout.shape)
    may = min(USUAL_LIMIT, available()) if limit is None else whole_number("memory_limit", limit, 0)
    in_parts = parts_form(chosen, options)
    # A sample is drawn by the ids while the pool is read in parts; what is free must not change which rows are in it.
    by_sample = in_parts is not None and in_parts.only_with == "sample"
    sampled = by_sample and whole_number("sample", options["sample"], 1) < pool.rows
    if need <= may and not sampled:
        return True
    if in_parts is not None:
        least = others * row + in_parts.needed(pool.rows, *layout.shape, **options)
        if least <= may:
            return False
        need = least if sampled else min(need, least)
    sample = "sample" in options_of(strategy)
    raise TooLarge(
        f"{strategy} needs {'' if in_parts else 'the whole pool at once: '}{need:,} bytes for {pool.rows:,} rows with "
        f"d={layout.d} and K={layout.K}, and may use {may:,}; allow more with --memory-limit, "
        + ("let a random sample of the pool stand for it with a small --sample, " if sample else "")
        + "or choose a strategy that reads the pool in parts, such as accuacl.",
        need,
    )


def read_sorted(pool: Pool, trust_ids: bool, progress: OnProgress | None) -> tuple[NDArray[Any], Features]:
    """The ids of a pool in ascending order, and its features in that order."""
    ids = as_array([id_ for chunk in chunks(pool.layout, pool.groups, ("id",)) for id_ in chunk.ids.tolist()])
    order = np.argsort(ids, kind="stable")
    ids, position = ids[order], np.empty(len(ids), np.int64)
    if not trust_ids and (ids[1:] == ids[:-1]).any():
        check_unique(pool.layout, pool.rows, lambda function, what: here(function, pool))
    position[order] = np.arange(len(ids))
    return ids, read_all(pool, position, progress)


def read_all(pool: Pool, position: NDArray[np.int64] | None = None, progress: OnProgress | None = None) -> Features:
    """All rows, checked, each at its position (unset: as they come)."""
    layout, done = pool.layout, 0
    h, p = (np.empty((pool.rows, width), kind) for width, kind in zip(layout.shape, layout.types, strict=True))
    for chunk in chunks(layout, pool.groups, ("embedding", "probability")):
        features = chunk.features(check=True)
        rows = slice(done, done + len(chunk)) if position is None else position[done : done + len(chunk)]
        h[rows], p[rows] = features.embeddings, features.probabilities
        done += len(chunk)
        if progress:
            progress(Progress(done, pool.rows, "reading"))
    return Features.trusted(h, p)


def here(function: Function, pool: Pool) -> Iterator[Any]:
    """A function over all shards of a pool, in this process."""
    return (function(shard, ignore) for shard in pool.shards())
