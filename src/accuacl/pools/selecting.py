"""Strategies that need the whole pool: it is read into memory, in the order of its ids, if it fits."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accuacl import engines, strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress, check_progress, ignore
from accuacl.base.threads import shared_out
from accuacl.engines import Engine, Function
from accuacl.features import Features
from accuacl.pools import ids
from accuacl.pools.ids import Excluded, as_array, as_column
from accuacl.pools.passes import Sieve, check_unique, chunks
from accuacl.pools.pool import SHARD_ROWS, Columns, Pool, PoolSource, open_pool
from accuacl.pools.scan import Scan, ShardMap
from accuacl.strategies import (
    REGISTRY,
    Context,
    Examples,
    InMemory,
    Part,
    PartsQuery,
    Ranking,
    Rows,
    RowStrategy,
    TooLarge,
    available,
    bytes_needed,
    options_of,
    parts_form,
    whole_number,
)

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
    sampled = by_sample and options["sample"] < pool.rows
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


class PartsReader:
    """Reads a pool from start to end. The first time it checks every row, and that no id occurs twice."""

    def __init__(self, pool: Pool, left_out: ids.Excluded, trust_ids: bool) -> None:
        self.pool, self.left_out, self.trust_ids = pool, left_out, trust_ids
        self.checked, self.excluded = False, 0

    def __call__(self) -> Iterator[Part]:
        layout, rising, first, excluded = self.pool.layout, ids.Rising(), 0, 0
        for chunk in chunks(layout, self.pool.groups, layout.wanted):
            features, gone = chunk.features(check=not self.checked), self.left_out.among(chunk.ids)
            if not self.checked:
                rising.add(chunk.ids)
            yield Part(
                first,
                features,
                gone,
                functools.partial(ids.take, chunk.ids),
                functools.partial(ids.as_uint64, chunk.ids),
            )
            first, excluded = first + len(chunk), excluded + int(gone.sum())
        if not self.checked and not self.trust_ids and not rising.holds:
            check_unique(layout, self.pool.rows, lambda function, what: here(function, self.pool))
        self.checked, self.excluded = True, excluded


VECTORS = ("embedding", "probability")


@dataclass(frozen=True, eq=False)
class Picked:
    """The picks in selection order: their ids, and the scores that explain them, as in `Selection`."""

    ids: NDArray[Any]  # int64, or objects (str)
    scores: dict[str, NDArray[np.float64]]
    rows: int  # of the pool, without those left out
    excluded: int  # rows that were left out
    unknown: int = 0  # ids that were to be left out and are not in the pool

    def __len__(self) -> int:
        return len(self.ids)


def select(
    dataset: PoolSource,
    strategy: str = "accuacl",
    *,
    budget: int,
    labelled: PoolSource | Features | None = None,
    memory: PoolSource | Features | None = None,
    past: int | None = None,
    seed: int = 0,
    exclude: Iterable[int] | Iterable[str] = (),
    columns: Columns | None = None,
    engine: str | Engine = "local",
    workers: int = 0,
    address: str | None = None,
    shard_rows: int = SHARD_ROWS,
    memory_limit: int | None = None,
    trust_ids: bool = False,
    progress: OnProgress | None = None,
    **options: Any,
) -> Picked:
    """Which `budget` examples of a pool in Parquet files should be labelled next? As `accuacl.select`, out of core.

    dataset: a file, a folder, a pattern, several of these, or a pyarrow dataset, with columns for `id` (whole numbers
    or text, no id twice), `embedding` and `probability` (lists of float32 or float16); `columns` renames them.
    labelled, memory: the same, or Features; AccuACL only needs the number of labelled examples.
    exclude: ids in the pool that already have labels; they are left out, and count as labelled in this task.
    engine: "local" (processes), "ray" (the connected cluster, the one at `address`, or a new one on this machine),
    or an engine object. workers: how many processes or CPUs (0: all). memory_limit: bytes for strategies that need the
    whole pool at once. trust_ids: do not check that no id occurs twice. progress: called with the number
    of rows done and the total. options: the strategy's own, by name.

    The picks do not depend on engine, workers, row groups, files or the order of rows, and are those of `select` on the
    same rows in the order of their ids. Ties go to the smaller id: numbers by value, text by its bytes.
    """
    options = strategies.check_options(strategy, options)  # before anything is read
    check_progress(progress)
    if isinstance(engine, str):
        engines.check(engine, address)
    chosen, names = strategies.REGISTRY[strategy], columns or Columns()
    reads = chosen.reads if isinstance(chosen, RowStrategy) else VECTORS
    pool = open_pool(dataset, names, ("id", *(name for name in VECTORS if name in reads)))
    sets = {
        name: given if given is None or isinstance(given, Features) else open_pool(given, names, VECTORS, name)
        for name, given in (("labelled", labelled), ("memory", memory))
    }
    for name, other in sets.items():
        _check_alike(pool, name, other)
    query = _Query(
        pool,
        whole_number("budget", budget, 0),
        sets["labelled"],
        sets["memory"],
        None if past is None else whole_number("past", past, 0),
        whole_number("seed", seed, 0),
        Excluded(exclude, pool.layout.id),
        trust_ids,
        progress,
    )
    if not isinstance(chosen, RowStrategy):
        return _select_in_memory(strategy, query, memory_limit, options)
    strategies.warn_without_memory(strategy, memory, past, options)
    shards = pool.shards(whole_number("shard_rows", shard_rows, 1))
    with engines.get(engine, workers, address) if isinstance(engine, str) else engine as running:
        shard_map = ShardMap(running, progress)
        return _select_rows(chosen, query, Scan(shard_map, pool, shards, query.left_out, trust_ids), options)


@dataclass(frozen=True)
class _Query:
    """The question, checked; sets on disk are open."""

    pool: Pool
    budget: int
    labelled: Pool | Features | None
    memory: Pool | Features | None
    past: int | None
    seed: int
    left_out: Excluded
    trust_ids: bool
    progress: OnProgress | None

    def picked(self, ids: NDArray[Any], scores: dict[str, NDArray[Any]], rows: int, excluded: int) -> Picked:
        kind = object if self.pool.layout.id == "text" else np.int64  # also if nothing was picked
        return Picked(ids.astype(kind), scores, rows, excluded, max(0, len(self.left_out) - excluded))


def _select_rows(strategy: RowStrategy[Any], query: _Query, scan: Scan, options: dict[str, Any]) -> Picked:
    """Rank the rows on disk, shard by shard. Rows that are left out count as labelled."""
    pool, shard_map = query.pool, scan.shard_map
    shard_map.expect(strategy.passes * pool.rows)
    memory: Examples | None = None
    if isinstance(query.memory, Pool):
        memory = Scan(shard_map, query.memory, query.memory.shards(), Excluded((), ""), trust_ids=True)
        shard_map.expect((strategy.passes - 1) * query.memory.rows)
    elif query.memory is not None:
        memory = InMemory(query.memory)
    current = pool.rows + _rows(query.labelled)
    context = Context(*pool.layout.shape, scan, memory, current, query.past, query.seed)

    def find(ranking: Ranking, count: int) -> tuple[NDArray[Any], Rows]:
        def sieve() -> Sieve:
            return Sieve(ranking, ranking.wanted(min(count, len(scan)), len(scan)), "id" in strategy.reads)

        found = scan.smallest(sieve())
        found = sieve().join([found])  # only now is the number of rows left out known
        picks = ranking.pick(found.rows, np.arange(len(found)), min(count, len(scan)))
        return found.ids[picks], found.rows.take(picks)

    ids, scores = strategy.prepare(context, **options).choose(find, min(query.budget, len(scan)))
    return query.picked(ids, scores, len(scan), scan.excluded)


def _select_in_memory(strategy: str, query: _Query, memory_limit: int | None, options: dict[str, Any]) -> Picked:
    """Read the whole pool, then select in memory. Rows that are left out count as labelled."""
    pool, sets = query.pool, {"labelled": query.labelled, "memory": query.memory}
    if not fits(strategy, pool, sum(_rows(other) for other in sets.values()), memory_limit, options):
        return _select_in_parts(strategy, query, options)
    ids, features = read_sorted(pool, query.trust_ids, query.progress)
    column = as_column(pa.array(ids.tolist(), pa.large_string())) if ids.dtype == object else ids
    gone = query.left_out.among(column)
    given: dict[str, Any] = {name: _in_memory(other) for name, other in sets.items()}
    if gone.any():
        out, known = features.rows(np.flatnonzero(gone)), given["labelled"]
        given["labelled"] = _joined(known, out) if known is not None else out
        features, ids = features.rows(np.flatnonzero(~gone)), ids[~gone]
    if memory_limit is not None and "memory_limit" in strategies.options_of(strategy):
        options = {"memory_limit": memory_limit} | options
    picked = strategies.select(
        strategy,
        pool=features,
        budget=query.budget,
        past=query.past,
        seed=query.seed,
        progress=query.progress,
        **given,
        **options,
    )
    return query.picked(ids[picked.indices], picked.scores, len(ids), int(gone.sum()))


def _select_in_parts(strategy: str, query: _Query, options: dict[str, Any]) -> Picked:
    """Read the pool as often as the strategy wants, and keep of it what that keeps."""
    pool, form = query.pool, strategies.parts_form(strategies.REGISTRY[strategy], options)
    assert form is not None
    strategies.warn_without_memory(strategy, query.memory, query.past, options)
    reader = PartsReader(pool, query.left_out, query.trust_ids)
    sets = _in_memory(query.labelled), _in_memory(query.memory)
    asked = PartsQuery(reader, pool.rows, *pool.layout.shape, query.budget, *sets, query.past, query.progress)
    with shared_out():
        ids, scores = form.choose(asked, **options)
    return query.picked(ids, scores, pool.rows - reader.excluded, reader.excluded)


def _in_memory(examples: Pool | Features | None) -> Features | None:
    return read_all(examples) if isinstance(examples, Pool) else examples


def _joined(a: Features, b: Features) -> Features:
    return Features.trusted(
        np.concatenate([a.embeddings, b.embeddings]), np.concatenate([a.probabilities, b.probabilities])
    )


def _rows(examples: Pool | Features | None) -> int:
    return examples.rows if isinstance(examples, Pool) else len(examples or ())


def _check_alike(pool: Pool, name: str, other: Pool | Features | None) -> None:
    d, K = pool.layout.d, pool.layout.K
    if other is None or not d or not K:  # then at most their number matters
        return
    wide = other.layout if isinstance(other, Pool) else other
    if (wide.d, wide.K) != (d, K):
        raise InputError(
            f"the pool has d={d} and K={K} but {name} has d={wide.d} and K={wide.K}; "
            "compute both with the same model over the same classes."
        )
