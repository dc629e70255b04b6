"""Time and memory of queries, each in a process of its own; at the sizes of split-cifar10 the paper's efficiency.

What takes long to import is imported where it is used: the command line needs only the constants of this module.
"""

from __future__ import annotations

import csv
import functools
import io
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from accuacl.base.errors import InputError
from accuacl.base.files import making, reason, write_text
from accuacl.base.machine import cpu_name, peak_memory, reset_peak_memory
from accuacl.base.progress import OnProgress, Progress, ignore

if TYPE_CHECKING:
    from accuacl.features import Features
    from accuacl.strategies import Selection

Result = TypeVar("Result")
SIZES = ("strategy", "n", "d", "K", "b", "m", "labelled")
MEASURED = ("cpu_seconds", "wall_seconds", "extra_bytes", "machine")
KINDS: dict[str, Callable[[str], Any]] = dict.fromkeys((*SIZES[1:], "extra_bytes"), int) | dict.fromkeys(
    ("cpu_seconds", "wall_seconds"), float
)  # of columns that are not text
SECONDS_EACH = 3.0  # to measure a short query, mostly for starting a process

Row = dict[str, Any]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Case:
    """A strategy and the size of its problem: pool n, embedding width d, classes K, budget b, memory m, labelled."""

    strategy: str
    n: int
    d: int
    K: int
    b: int
    m: int = 1000
    labelled: int = 0


@dataclass(frozen=True)
class Measurement:
    """CPU and wall-clock seconds and bytes beyond the inputs; if the strategy refused, the bytes that it needs."""

    cpu: float = 0.0
    wall: float = 0.0
    memory: int = 0
    needs: int | None = None


@dataclass
class QueryCosts:
    """What queries cost, by strategy."""

    totals: dict[str, tuple[float, float]] = field(default_factory=dict)  # CPU seconds of all, bytes of the largest
    refused: dict[str, int] = field(default_factory=dict)  # bytes that a strategy needs but are not free
    machines: list[str] = field(default_factory=list)  # on which they were measured


def measure_queries(
    recipe: dict[str, Any], scale: str, strategies: Sequence[str], table: Path, on_progress: OnProgress = ignore
) -> QueryCosts:
    """Measure the queries that `table` does not have yet, and add each to it.

    Only the middle query of each task is measured, and stands for the others. A strategy that refuses a query for lack
    of memory has no total; it is tried again the next time.
    """
    cases = _cases(recipe, scale, strategies)
    rows = {_sizes(row): row for row in (read_query_times(table) if table.exists() else [])}
    missing = [case for case in cases if _sizes(vars(case)) not in rows]
    costs = QueryCosts()
    with making(table.parent):
        for done, case in enumerate(missing):
            on_progress(Progress(done, len(missing), f"{case.strategy} K={case.K}"))
            result = in_fresh_process(measure, case, threads=1)
            if result.needs is not None:
                costs.refused[case.strategy] = max(costs.refused.get(case.strategy, 0), result.needs)
                continue
            numbers = (result.cpu, result.wall, result.memory, machine())
            rows[_sizes(vars(case))] = vars(case) | dict(zip(MEASURED, numbers, strict=True))
            _write(table, rows.values())
    for case in (case for case in cases if case.strategy not in costs.refused):
        row = rows[_sizes(vars(case))]
        seconds, most = costs.totals.get(case.strategy, (0.0, 0.0))
        seconds += (recipe["rounds"] - 1) * row["cpu_seconds"]  # of the first round nobody asks a strategy
        costs.totals[case.strategy] = seconds, max(most, row["extra_bytes"])
        costs.machines += [row["machine"]] if row["machine"] not in costs.machines else []
    return costs


def _cases(recipe: dict[str, Any], scale: str, strategies: Iterable[str]) -> list[Case]:
    return [
        Case(
            name, recipe["pool"][scale], recipe["width"][scale], classes, recipe["budget"],
            m=recipe["memory"] if task else 0, labelled=recipe["budget"] * recipe["rounds"] // 2,
        )
        for name in strategies
        for task, classes in enumerate(recipe["classes"])
    ]  # fmt: skip


def _sizes(case: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(case[name]) for name in SIZES)


def has_query_times(table: Path) -> bool:
    """Whether the file's first line is that of a table of query times."""
    try:
        with table.open("rb") as file:
            return file.readline().decode().strip().split(",") == [*SIZES, *MEASURED]
    except (OSError, UnicodeDecodeError):
        return False


def read_query_times(table: Path) -> list[Row]:
    """The rows of the table."""
    if not has_query_times(table):
        raise InputError(f"{table} is not a table of query times; remove it or give another.")
    try:
        with table.open(newline="", encoding="utf-8") as file:
            return [{name: KINDS.get(name, str)(text) for name, text in row.items()} for row in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
        raise InputError(f"{table} cannot be read: {reason(error)}; fix it or give another.") from None


def _write(table: Path, rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, (*SIZES, *MEASURED), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(table, text.getvalue())


def in_fresh_process(function: Callable[..., Result], case: Case, *arguments: Any, threads: int | None) -> Result:
    """A function's result for a case, in a process whose libraries use this many threads (None: their own choice)."""
    saved = {name: os.environ.pop(name, None) for name in THREAD_VARIABLES}
    if threads:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            return pool.submit(function, case, *arguments).result()
    except BrokenProcessPool:
        raise InputError(f"{case} was killed, most likely for lack of memory; give a smaller case.") from None
    finally:
        for name, value in saved.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def measure(case: Case) -> Measurement:
    """Measure one query in this process."""
    from accuacl.strategies import TooLarge

    try:
        return Measurement(*timed(query(case, *problem(case))))
    except TooLarge as refusal:
        return Measurement(needs=refusal.bytes)


def query(case: Case, pool: Features, memory: Features | None, labelled: Features | None) -> Callable[[], Selection]:
    """The case's query, ready to be measured: what it imports has been imported."""
    from accuacl.strategies import select

    arguments: dict[str, Any] = {"pool": pool, "budget": case.b, "labelled": labelled}
    if memory is not None:
        arguments |= {"memory": memory, "past": 9 * case.n}
    select(case.strategy, **(arguments | {"pool": pool.rows(slice(0, 2)), "budget": 1}))
    return functools.partial(select, case.strategy, **arguments)


def problem(case: Case) -> tuple[Features, Features | None, Features | None]:
    """Clustered, rectified embeddings and the softmax of a linear model on them, like those of a trained network."""
    import numpy as np

    from accuacl.features import Features

    rng = np.random.default_rng(0)
    centres = rng.normal(size=(case.K, case.d)).astype(np.float32)
    weights = (centres - centres.mean(axis=0)) / np.float32(case.d)

    def draw(n: int) -> Features:
        h, p = np.empty((n, case.d), np.float32), np.empty((n, case.K), np.float32)
        for i in range(0, n, 4096):
            size = min(4096, n - i)
            block = rng.standard_normal((size, case.d), np.float32)
            block += centres[rng.integers(case.K, size=size)]
            np.maximum(block, 0, out=h[i : i + size])
            logits = 8 * (block @ weights.T)
            e = np.exp(logits - logits.max(axis=1, keepdims=True))
            p[i : i + size] = e / e.sum(axis=1, keepdims=True)
        return Features(h, p)

    return draw(case.n), draw(case.m) if case.m else None, draw(case.labelled) if case.labelled else None


def timed(job: Callable[[], Any]) -> tuple[float, float, int]:
    """CPU and wall-clock seconds, the best of a few runs, and peak memory beyond what was in use before."""
    cpus: list[float] = []
    walls: list[float] = []
    extra = 0
    while len(cpus) < 1 or (len(cpus) < 5 and sum(walls) < 2):
        before = reset_peak_memory()
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
        extra = max(extra, peak_memory() - before)
    return min(cpus), min(walls), extra


def machine(threads: int | None = 1) -> str:
    """The machine and libraries of this measurement, in one line, with this many threads (None: their own choice)."""
    import numpy as np
    import torch

    used = f", {threads} thread(s)" if threads else ""
    return f"{cpu_name()}, {os.cpu_count()} cores{used}, numpy {np.__version__}, torch {torch.__version__}"
