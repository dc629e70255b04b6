"""Pools read into memory, in the order of their ids: as a whole, or a random sample of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accuacl.base.errors import InputError, listed
from accuacl.base.machine import available_memory
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.engines import Function
from accuacl.features import Features
from accuacl.pools.ids import Excluded, Rising, as_array, as_column, as_uint64, take
from accuacl.pools.passes import check_unique, chunks
from accuacl.pools.pool import (
    GROUP_ROWS,
    Pool,
    PoolSource,
    check_present,
    files_of,
    open_parquet,
    read,
    row_groups_of,
)
from accuacl.strategies import REGISTRY, TooLarge, bytes_needed, sample_hashes, takes_sample, whole_number

USUAL_LIMIT = 4 << 30  # bytes that a pool in memory may take, if they are free


@dataclass(frozen=True, eq=False)
class Loaded:
    """Rows of a pool in the order of their ids, and those left out because they are already labelled."""

    ids: NDArray[Any]
    features: Features
    left_out: Features | None
    rows: int  # of the whole pool, without those left out


def check_fits(strategy: str, pool: Pool, sample: int | None, others: int, limit: int | None) -> None:
    """Refuse, with the bytes needed, before anything is read. others: rows of memory and labelled."""
    d, K = pool.layout.shape
    row = d * np.dtype(pool.layout.types[0]).itemsize + K * np.dtype(pool.layout.types[1]).itemsize
    rows = pool.rows if sample is None else sample
    need = others * row + bytes_needed(REGISTRY[strategy], rows, d, K)
    if sample is not None:
        need += 3 * (8 * d + 8 * K + 64) * rows
        what, instead = f"{need:,} bytes for a sample of {rows:,} rows", "give a smaller --sample"
    else:  # ids, their order, and what the strategies keep for each row (see "Cost" in their docstrings)
        need += rows * (row + 24 + 80 + 4 * K)
        what = f"the whole pool at once: {need:,} bytes for {rows:,} rows"
        instead = "choose a strategy that reads the pool in parts, such as accuacl, or coverage with --sample"
        if takes_sample(strategy):
            instead = "let a random sample represent the pool with --sample"
    may = min(USUAL_LIMIT, available_memory()) if limit is None else whole_number("memory_limit", limit, 0)
    if need > may:
        raise TooLarge(
            f"{strategy} needs {what} with d={d} and K={K}, but only {may:,} bytes are allowed; allow more with "
            f"--memory-limit, or {instead}.",
            need,
        )


def load(pool: Pool, left_out: Excluded, trust_ids: bool, progress: OnProgress | None) -> Loaded:
    """All rows of a pool."""
    ids = as_array([id_ for chunk in chunks(pool.layout, pool.groups, ("id",)) for id_ in chunk.ids.tolist()])
    order = np.argsort(ids, kind="stable")
    ids, position = ids[order], np.empty(len(ids), np.int64)
    if not trust_ids and (ids[1:] == ids[:-1]).any():
        check_unique(pool.layout, pool.rows, lambda function, what: _over_shards(function, pool))
    position[order] = np.arange(len(ids))
    features = load_features(pool, position, progress)
    column = as_column(pa.array(ids.tolist(), pa.large_string())) if ids.dtype == object else ids
    gone = left_out.among(column)
    if not gone.any():
        return Loaded(ids, features, None, len(ids))
    kept = np.flatnonzero(~gone)
    return Loaded(ids[kept], features.rows(kept), features.rows(np.flatnonzero(gone)), len(kept))


def load_features(
    pool: Pool, position: NDArray[np.int64] | None = None, progress: OnProgress | None = None
) -> Features:
    """All rows, checked, each at its position (unset: as they come)."""
    layout, done = pool.layout, 0
    h, p = (np.empty((pool.rows, width), kind) for width, kind in zip(layout.shape, layout.types, strict=True))
    for chunk in chunks(layout, pool.groups, tuple(name for name in layout.wanted if name != "id")):
        features = chunk.features(check=True)
        rows = slice(done, done + len(chunk)) if position is None else position[done : done + len(chunk)]
        h[rows], p[rows] = features.embeddings, features.probabilities
        done += len(chunk)
        if progress:
            progress(Progress(done, pool.rows, "reading"))
    return Features.trusted(h, p)


def load_sample(pool: Pool, size: int, left_out: Excluded, trust_ids: bool, progress: OnProgress | None) -> Loaded:
    """The `size` rows whose ids have the smallest hashes, in one read that keeps little more than these."""
    samples: list[_Sample] = []
    labelled: list[Features] = []
    cut, rising, done, rows = np.uint64(2**64 - 1), Rising(), 0, 0
    for chunk in chunks(pool.layout, pool.groups, pool.layout.wanted):
        features, gone = chunk.features(check=True), left_out.among(chunk.ids)
        rising.add(chunk.ids)
        hashes = sample_hashes(as_uint64(chunk.ids))
        kept = np.flatnonzero(~gone & (hashes <= cut))
        samples.append(_Sample(hashes[kept], take(chunk.ids, kept), features.rows(kept)))
        if gone.any():
            labelled.append(features.rows(np.flatnonzero(gone)))
        if sum(len(sample.ids) for sample in samples) > 2 * size:
            samples = [_Sample.smallest(samples, size)]
            cut = samples[0].hashes.max()
        done, rows = done + len(chunk), rows + int((~gone).sum())
        if progress:
            progress(Progress(done, pool.rows, "reading"))
    if not trust_ids and not rising.holds:
        check_unique(pool.layout, pool.rows, lambda function, what: _over_shards(function, pool))
    sample = _Sample.smallest(samples, size)
    order = np.argsort(sample.ids, kind="stable")
    known = Features.concat(labelled) if labelled else None
    return Loaded(sample.ids[order], sample.features.rows(order), known, rows)


class NoClasses(InputError):
    """There is no column of classes."""


def read_labels(source: PoolSource, column: str) -> NDArray[np.int64]:
    """The classes of all rows in these Parquet files, as columns of the probabilities, in the order of the rows."""
    parts = [np.empty(0, np.int64)]
    for file in files_of(source, "labelled"):
        parquet = open_parquet(file)
        schema = parquet.schema_arrow
        if column not in schema.names:
            raise NoClasses(
                f"{file} has no column {column!r} (columns: {listed(schema.names)}); say with --label-column which one "
                "has the classes."
            )
        if not pa.types.is_integer(schema.field(column).type):
            raise NoClasses(
                f"{file}: {column} holds {schema.field(column).type}; give each class as a whole number, its place in "
                "the probabilities, from 0."
            )
        for group in row_groups_of(file, parquet.metadata):
            first = group.first
            for batch in read(file, parquet, group.number, [column], GROUP_ROWS):
                check_present(group, first, column, batch.column(0))
                parts.append(batch.column(0).to_numpy().astype(np.int64))
                first += len(batch)
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Sample:
    hashes: NDArray[np.uint64]
    ids: NDArray[Any]
    features: Features

    @classmethod
    def smallest(cls, samples: list[_Sample], size: int) -> _Sample:
        """The rows with the smallest hashes, and of equal ones those with the smaller ids."""
        hashes, ids = (np.concatenate([getattr(sample, name) for sample in samples]) for name in ("hashes", "ids"))
        order = np.lexsort((ids, hashes))[:size]
        return cls(hashes[order], ids[order], Features.concat([sample.features for sample in samples]).rows(order))


def _over_shards(function: Function, pool: Pool) -> Iterator[Any]:
    """A function over all shards of a pool, in this process."""
    return (function(shard, ignore) for shard in pool.shards())
