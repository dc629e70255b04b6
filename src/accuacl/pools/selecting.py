"""Which examples of a pool in Parquet files should be labelled next? As `accuacl.select`, with the same picks.

Strategies that rank rows one by one read the pool shard by shard, in parallel and in memory that does not grow with
it. The others need all rows at once: the pool is read into memory if it fits, or a random sample of it if that is asked
for. Picks are written as Parquet, CSV or JSON lines, and pools in the form that is read fastest; a file is complete or
absent.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from accuacl import engines, strategies
from accuacl.base.errors import InputError, alternatives
from accuacl.base.files import check_new_file, replacing, write_bytes
from accuacl.base.progress import OnProgress, check_progress
from accuacl.engines import Engine
from accuacl.features import Features, check_alike
from accuacl.pools.ids import Excluded
from accuacl.pools.loading import check_fits, load, load_features, load_sample
from accuacl.pools.pool import GROUP_ROWS, SHARD_ROWS, Columns, Pool, PoolSource, files_of, open_pool
from accuacl.pools.scan import Scan, ShardMap, count_left_out
from accuacl.strategies import Context, Examples, InMemory, RowStrategy, sample_size, whole_number

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
    classes: Any = None,
    **options: Any,
) -> Picked:
    """Which `budget` examples of a pool in Parquet files should be labelled next? As `accuacl.select`, out of core.

    dataset: a file, a folder, a pattern, several of these, or a pyarrow dataset, with columns for `id` (whole numbers
    or text, no id twice), `embedding` and `probability` (lists of float32 or float16; coverage, kcenter and typiclust
    need no probabilities); `columns` renames them.
    labelled, memory: the same, or Features; AccuACL only needs the number of labelled examples.
    exclude: ids in the pool that already have labels; they are left out, and count as labelled in this task.
    engine: "local" (processes), "ray" (the connected cluster, the one at `address`, or a new one on this machine),
    or an engine object. workers: how many processes or CPUs (0: all). memory_limit: bytes for strategies that need the
    whole pool at once. trust_ids: skip the check that no id occurs twice. progress: called with the number
    of rows done and the total. classes: for direct and anchoral, the class of each labelled example, in the order of
    their rows, as a column of the probabilities; excluded rows count as the class that the model predicts.
    options: the strategy's own, by name.

    The picks do not depend on engine, workers, row groups, files or the order of rows, and are those of `select` on the
    same rows in the order of their ids, except that random draws (uniform, samples) depend on ids, not on row numbers.
    Ties go to the smaller id: numbers by value, text by its bytes.
    """
    options = strategies.check_options(strategy, options)  # before anything is read
    check_progress(progress)
    if isinstance(engine, str):
        engines.check(engine, address)
    chosen, names = strategies.REGISTRY[strategy], columns or Columns()
    reads = tuple(name for name in VECTORS if name in getattr(chosen, "reads", VECTORS))
    pool = open_pool(dataset, names, ("id", *reads))
    of_set = VECTORS if isinstance(chosen, RowStrategy) else reads
    sets = {name: _open_set(given, names, of_set, name) for name, given in (("labelled", labelled), ("memory", memory))}
    widths: dict[str, Any] = {name: getattr(given, "layout", given) for name, given in sets.items()}
    check_alike(pool.layout, **widths)
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
        classes,
    )
    if not isinstance(chosen, RowStrategy):
        return _select_loaded(strategy, query, memory_limit, options)
    strategies.warn_without_memory(strategy, memory, past, options)
    shards = whole_number("shard_rows", shard_rows, 1)
    with engines.get(engine, workers, address) if isinstance(engine, str) else engine as running:
        return _rank_shards(chosen, query, ShardMap(running, progress), shards, options)


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
    classes: Any = None  # of the labelled examples

    def picked(self, ids: NDArray[Any], scores: dict[str, NDArray[Any]], rows: int, excluded: int) -> Picked:
        kind = object if self.pool.layout.id == "text" else np.int64  # also if nothing was picked
        return Picked(ids.astype(kind), scores, rows, excluded, max(0, len(self.left_out) - excluded))


def _rank_shards(
    strategy: RowStrategy[Any], query: _Query, shard_map: ShardMap, shard_rows: int, options: dict[str, Any]
) -> Picked:
    """Rank the rows on disk, shard by shard. Rows that are left out count as labelled."""
    pool, shards = query.pool, query.pool.shards(shard_rows)
    shard_map.expect(strategy.passes * pool.rows)
    excluded = count_left_out(shard_map, pool, shards, query.left_out)
    scan = Scan(shard_map, pool, shards, query.left_out, excluded, "id" in strategy.reads, query.trust_ids)
    memory: Examples | None = None
    if isinstance(query.memory, Pool):
        shard_map.expect((strategy.passes - 1) * query.memory.rows)
        memory = Scan(shard_map, query.memory, query.memory.shards(), Excluded((), ""), 0, False, trust_ids=True)
    elif query.memory is not None:
        memory = InMemory(query.memory)
    current = pool.rows + _rows(query.labelled)
    context = Context(*pool.layout.shape, scan, memory, current, query.past, query.seed)
    ids, scores = strategy.prepare(context, **options).choose(scan, min(query.budget, len(scan)))
    return query.picked(ids, scores, len(scan), excluded)


def _select_loaded(strategy: str, query: _Query, memory_limit: int | None, options: dict[str, Any]) -> Picked:
    """Read the pool, or a sample of it, and select in memory. Rows that are left out count as labelled."""
    pool, sample = query.pool, _sample(strategy, query, options)
    check_fits(strategy, pool, sample, _rows(query.labelled) + _rows(query.memory), memory_limit)
    if sample is None:
        loaded = load(pool, query.left_out, query.trust_ids, query.progress)
    else:
        loaded = load_sample(pool, sample, query.left_out, query.trust_ids, query.progress)
        options = {name: value for name, value in options.items() if name != "sample"}
    labelled = [features for features in (_in_memory(query.labelled), loaded.left_out) if features is not None]
    if memory_limit is not None and "memory_limit" in strategies.options_of(strategy):
        options = {"memory_limit": memory_limit} | options
    picked = strategies.select(
        strategy,
        pool=loaded.features,
        budget=query.budget,
        labelled=Features.concat(labelled) if labelled else None,
        memory=_in_memory(query.memory),
        past=query.past,
        seed=query.seed,
        progress=query.progress,
        classes=_classes(query, loaded.left_out),
        **options,
    )
    scores = picked.scores
    if sample is not None:  # estimates for the whole pool
        scores = {name: values * (loaded.rows / max(1, len(loaded.ids))) for name, values in scores.items()}
    return query.picked(loaded.ids[picked.indices], scores, loaded.rows, pool.rows - loaded.rows)


def _classes(query: _Query, left_out: Features | None) -> Any:
    """The classes of the labelled examples, then of the rows that are left out, whose labels are not known."""
    if query.classes is None or left_out is None:
        return query.classes
    classes, labelled = np.asarray(query.classes), _rows(query.labelled)
    if classes.shape != (labelled,):
        raise InputError(f"classes have the shape {classes.shape}; give one for each of {labelled} labelled examples.")
    return np.concatenate([classes, left_out.probabilities.argmax(axis=1)])


def _sample(strategy: str, query: _Query, options: dict[str, Any]) -> int | None:
    """How many rows represent the pool; None if all of it is read.

    The sample is drawn by the ids while the pool is read: how much memory is free does not change which rows it has.
    """
    if not strategies.takes_sample(strategy):
        return None
    size = sample_size(options.get("sample"), query.budget, query.pool.rows)
    return size if size < query.pool.rows else None


def _open_set(
    given: PoolSource | Features | None, columns: Columns, wanted: tuple[str, ...], what: str
) -> Pool | Features | None:
    """A set in memory, or one on disk. A column that is not wanted is one of ones in both."""
    if given is None or (isinstance(given, Features) and "probability" in wanted):
        return given
    if isinstance(given, Features):
        return Features.trusted(given.embeddings, np.ones((len(given), 1), np.float32))
    return open_pool(given, columns, wanted, what)


def _in_memory(examples: Pool | Features | None) -> Features | None:
    return load_features(examples) if isinstance(examples, Pool) else examples


def _rows(examples: Pool | Features | None) -> int:
    return examples.rows if isinstance(examples, Pool) else len(examples or ())


def write_pool(path: Path, ids: Any, embeddings: NDArray[Any], probabilities: NDArray[Any]) -> None:
    """Write a Parquet file with the columns id, embedding and probability.

    The outputs of a network do not compress, so they are stored uncompressed. The columns are declared as never null,
    which makes reading a quarter faster.
    """
    if not len(ids) == len(embeddings) == len(probabilities):
        raise InputError(
            f"there are {len(ids)} ids, {len(embeddings)} embeddings and {len(probabilities)} probabilities; give each "
            "row one of each."
        )
    columns = {"id": pa.array(ids), "embedding": _lists(embeddings), "probability": _lists(probabilities)}
    schema = pa.schema([pa.field(name, column.type, nullable=False) for name, column in columns.items()])
    table = pa.Table.from_arrays(list(columns.values()), schema=schema)
    with replacing(Path(path)) as file:
        pq.write_table(table, file, GROUP_ROWS, compression="none", use_dictionary=False, write_statistics=["id"])


def _lists(matrix: NDArray[Any]) -> pa.Array:
    values = pa.array(matrix.reshape(-1))
    type_ = pa.list_(pa.field("element", values.type, nullable=False), matrix.shape[1])
    return pa.FixedSizeListArray.from_arrays(values, type=type_)


ENDINGS = (".parquet", ".csv", ".jsonl")


def check_place(path: Path, others: Sequence[Path] = (), **sources: Sequence[str]) -> None:
    """Refuse a path for the picks before any work is done.

    sources: the Parquet files, folders and patterns that are read, by name; others: other files that are read. The
    picks may neither overwrite one of these nor be read as part of a folder or pattern the next time.
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file, such as {path / 'picked.csv'}.")
    if path.suffix not in ENDINGS:
        has = f"ends in {path.suffix!r}" if path.suffix else "has no ending"
        raise InputError(f"{path} {has}; give a name that ends in {alternatives(ENDINGS)}.")
    check_new_file(path)
    read = {file.resolve() for file in others}
    places = [(source, name) for name, several in sources.items() for source in several]
    read |= {Path(file).resolve() for source, name in places for file in files_of(source, name)}
    if path.resolve() in read or any(_would_find(source, path) for source, _ in places):
        raise InputError(f"{path} is one of the input files; give another --out.")


def write_picks(path: Path, picked: Picked) -> None:
    """Write id, rank (from 1) and scores, one row per pick, in selection order."""
    check_place(path)
    if not picked.rows and not picked.excluded:
        raise InputError("the pool has no rows, so there is nothing to pick; give another pool.")
    columns = {"id": pa.array(picked.ids.tolist(), pa.string() if picked.ids.dtype == object else pa.int64())}
    columns |= {"rank": pa.array(range(1, len(picked) + 1), pa.int64())}
    columns |= {name: pa.array(scores) for name, scores in picked.scores.items()}
    table = pa.table(columns)
    text = {".csv": _csv, ".jsonl": _json_lines}.get(path.suffix)
    write_bytes(path, text(table.to_pydict()).encode() if text else _parquet(table))


def _would_find(source: str, path: Path) -> bool:
    """Whether a folder or pattern would match the file, once it is written."""
    target, pattern = path.resolve(), Path(source).resolve()
    if pattern.is_dir():
        return path.suffix == ".parquet" and target.is_relative_to(pattern)
    no_folder_between = str(pattern).replace("**/", "")  # `match` takes ** for exactly one
    return target.match(str(pattern)) or target.match(no_folder_between)


def _csv(columns: dict[str, list[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return out.getvalue()


def _json_lines(columns: dict[str, list[Any]]) -> str:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)


def _parquet(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(table, out)
    return out.getvalue().to_pybytes()
