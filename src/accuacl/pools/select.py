"""Selection from a pool on disk, exactly as in memory, in memory that does not grow with the pool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from accuacl import engines, strategies
from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.engines.work import Engine
from accuacl.features import Features
from accuacl.fisher import Target, settle
from accuacl.pools.crew import Crew
from accuacl.pools.ids import Excluded, as_column
from accuacl.pools.pool import SHARD_ROWS, Columns, Pool, Source, open_pool
from accuacl.pools.ranks import FISHER, STREAMED, Draw, Rank, columns_of
from accuacl.pools.scan import InMemory, Scan
from accuacl.pools.whole import check_fits, read_all, read_sorted
from accuacl.strategies.accuacl import Options, candidates
from accuacl.strategies.query import number, whole_number

VECTORS = ("embedding", "probability")


@dataclass(frozen=True, eq=False)
class Picked:
    """The picks in selection order: their ids, and the scores that explain them, as `Selection` has them."""

    ids: NDArray[Any]  # int64, or objects (str)
    scores: dict[str, NDArray[np.float64]]
    rows: int  # of the pool, without those left out
    excluded: int  # rows that were left out
    unknown: int = 0  # ids that were to be left out and are not in the pool

    def __len__(self) -> int:
        return len(self.ids)


def select(
    dataset: Source,
    strategy: str = "accuacl",
    *,
    budget: int,
    labelled: Source | Features | None = None,
    memory: Source | Features | None = None,
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
    labelled, memory: the same, or Features; of the labelled AccuACL only needs to know how many there are.
    exclude: ids of the pool that are labelled already; they are left out, and count as labelled in this task.
    engine: "local" (processes), "ray" (the cluster that is connected, the one at `address`, or one on this machine),
    or an engine object; workers: how many processes or CPUs (0: all). memory_limit: bytes for strategies that need the
    whole pool at once. trust_ids: do not check that no id comes twice. progress: called with the rows
    done, of how many. The strategy's options follow by name.

    The picks do not depend on engine, workers, row groups, files or the order of rows, and are those of `select` on the
    same rows in the order of their ids. Ties go to the smaller id: numbers by value, text by its bytes.
    """
    strategies.get(strategy, **options)  # wrong names are refused before anything is read
    budget, seed = whole_number("budget", budget, 0), whole_number("seed", seed, 0)
    past = None if past is None else whole_number("past", past, 0)
    names = columns or Columns()
    pool = open_pool(dataset, names, columns_of(strategy))
    sets = {
        name: given if given is None or isinstance(given, Features) else open_pool(given, names, VECTORS, name)
        for name, given in (("labelled", labelled), ("memory", memory))
    }
    for name, other in sets.items():
        _check_alike(pool, name, other)
    left_out = Excluded(exclude, pool.layout.id)
    if strategy not in STREAMED:
        more = {"budget": budget, "past": past, "seed": seed, **options}
        return _whole(strategy, pool, sets, left_out, memory_limit, trust_ids, progress, more)
    fisher = _Fisher(options, pool, sets["memory"], past, _rows(sets["labelled"])) if strategy in FISHER else None
    shards = pool.shards(whole_number("shard_rows", shard_rows, 1))
    with engines.get(engine, workers, address) if isinstance(engine, str) else engine as staff:
        crew = Crew(staff, progress)
        crew.expect(pool.rows)
        scan = Scan(crew, pool, shards, left_out, trust_ids)
        rank: Rank | Draw
        if fisher:
            target = fisher.target(scan)
            count = min(budget, len(scan))
            if strategy in ("accuacl", "accuacl-full"):
                count = candidates(fisher.oversample, count, len(scan))
            rank = Rank(strategy, count, target, fisher.options.released)
        else:
            rank = Draw(seed, budget) if strategy == "uniform" else Rank(strategy, budget)
        found = scan.best(rank, first=fisher is None)
    selection = rank.answer(found, min(budget, len(scan)))
    return _picked(pool, found.ids[selection.indices], selection.scores, len(scan), scan.excluded, left_out)


class _Fisher:
    """AccuACL's options, and how its target comes from pool and memory."""

    def __init__(
        self, given: dict[str, Any], pool: Pool, memory: Pool | Features | None, past: int | None, labelled: int
    ) -> None:
        chosen = {"variant": "released", "keep": None, "total_classes": None, "lam": None, "oversample": 2.0} | given
        self.oversample = number("oversample", chosen.pop("oversample"), 1, np.inf, "a number of at least 1")
        self.options = Options.of(pool.layout.K, **chosen)
        self.memory, self.past, self.labelled = memory, past, labelled
        self.options.weight(past, 1, _rows(memory))  # a memory without a weight is refused before anything is read

    def target(self, pool: Scan) -> Target:
        memory: Scan | InMemory | None = None
        if isinstance(self.memory, Pool):
            memory = Scan(pool.crew, self.memory, self.memory.shards(), Excluded((), ""), trust_ids=True)
            pool.crew.expect(self.memory.rows)
        elif self.memory is not None:
            memory = InMemory(self.memory)
        pool.crew.expect(len(pool))  # the second pass
        new, past = pool.sums(), memory.sums() if memory else None
        weight = self.options.weight(self.past, pool.pool.rows + self.labelled, _rows(self.memory))
        mean = settle(new, past, weight, lambda rows: (pool.exact(rows), memory.exact(rows) if memory else []))
        return self.options.target(mean)


def _whole(
    strategy: str,
    pool: Pool,
    sets: dict[str, Pool | Features | None],
    left_out: Excluded,
    memory_limit: int | None,
    trust_ids: bool,
    progress: OnProgress | None,
    options: dict[str, Any],
) -> Picked:
    """Read everything, then as in memory. Rows that are left out are known, so they count as labelled."""
    check_fits(strategy, pool, sum(_rows(other) for other in sets.values()), memory_limit)
    ids, features = read_sorted(pool, trust_ids, progress)
    gone = left_out.among(as_column(pa.array(ids.tolist(), pa.large_string())) if ids.dtype == object else ids)
    given: dict[str, Any] = {}
    for name, other in sets.items():
        given[name] = read_all(other) if isinstance(other, Pool) else other
    if gone.any():
        out, known = features.rows(np.flatnonzero(gone)), given["labelled"]
        given["labelled"] = _joined(known, out) if known is not None else out
        features, ids = features.rows(np.flatnonzero(~gone)), ids[~gone]
    if strategy == "bait" and memory_limit is not None:
        options = {"memory_limit": memory_limit} | options
    picked = strategies.select(strategy, pool=features, progress=progress, **given, **options)
    return _picked(pool, ids[picked.indices], picked.scores, len(ids), int(gone.sum()), left_out)


def _picked(
    pool: Pool, ids: NDArray[Any], scores: dict[str, NDArray[Any]], rows: int, excluded: int, left_out: Excluded
) -> Picked:
    kind = object if pool.layout.id == "text" else np.int64  # also where nothing was picked
    return Picked(ids.astype(kind), scores, rows, excluded, max(0, len(left_out) - excluded))


def _joined(a: Features, b: Features) -> Features:
    return Features.trusted(
        np.concatenate([a.embeddings, b.embeddings]), np.concatenate([a.probabilities, b.probabilities])
    )


def _rows(some: Pool | Features | None) -> int:
    return some.rows if isinstance(some, Pool) else len(some or ())


def _check_alike(pool: Pool, name: str, other: Pool | Features | None) -> None:
    if other is None or not pool.layout.d:  # then only how many there are matters, if that
        return
    d, K = pool.layout.d, pool.layout.K
    wide = other.layout if isinstance(other, Pool) else other
    if (wide.d, wide.K) != (d, K):
        raise InputError(
            f"the pool has d={d} and K={K} but {name} has d={wide.d} and K={wide.K}; "
            "compute both with the same model over the same classes."
        )
