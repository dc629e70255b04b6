"""Time and memory of a query at the sizes of split-cifar10: the paper's efficiency figure."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accuacl import bench
from accuacl.base.errors import InputError
from accuacl.base.files import making, reason, write_text
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.bench import Case

SIZES = ("strategy", "n", "d", "K", "b", "m", "labelled")
MEASURED = ("cpu_seconds", "wall_seconds", "extra_bytes", "machine")
KINDS: dict[str, Callable[[str], Any]] = dict.fromkeys((*SIZES[1:], "extra_bytes"), int) | dict.fromkeys(
    ("cpu_seconds", "wall_seconds"), float
)  # of columns that are no text
SECONDS_EACH = 3.0  # to measure a short query, mostly for starting a process

Row = dict[str, Any]


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
    rows = read_query_times(table) if table.exists() else []
    known = {_sizes(row) for row in rows}
    missing = [case for case in cases if _sizes(vars(case)) not in known]
    costs = QueryCosts()
    measurements = bench.run(missing, dense_limit=0)
    with making(table.parent):
        for done, case in enumerate(missing):
            on_progress(Progress(done, len(missing), f"{case.strategy} K={case.K}"))
            result = next(measurements)
            if result.needs is not None:
                costs.refused[case.strategy] = max(costs.refused.get(case.strategy, 0), result.needs)
                continue
            numbers = (result.cpu, result.wall, result.memory, bench.machine())
            rows.append({name: getattr(case, name) for name in SIZES} | dict(zip(MEASURED, numbers, strict=True)))
            _write(table, rows)
    wanted = {_sizes(vars(case)) for case in cases if case.strategy not in costs.refused}
    shown = [row for row in rows if _sizes(row) in wanted]
    costs.totals = _totals(shown, queries=recipe["rounds"] - 1)
    costs.machines = list(dict.fromkeys(row["machine"] for row in shown))
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


def _totals(rows: Iterable[Row], queries: int) -> dict[str, tuple[float, float]]:
    """By strategy: CPU seconds for `queries` queries in every task, and the most bytes that one of them took."""
    totals: dict[str, tuple[float, float]] = {}
    for row in rows:
        seconds, most = totals.get(row["strategy"], (0.0, 0.0))
        totals[row["strategy"]] = seconds + queries * row["cpu_seconds"], max(most, row["extra_bytes"])
    return totals


def has_query_times(table: Path) -> bool:
    """Whether the file's first line is that of a table of query times."""
    try:
        with table.open("rb") as file:
            return file.readline().decode().strip().split(",") == [*SIZES, *MEASURED]
    except (OSError, UnicodeDecodeError):
        return False


def read_query_times(table: Path) -> list[Row]:
    """The rows of the table; those without numbers, which earlier versions wrote for refused queries, are left out."""
    if not has_query_times(table):
        raise InputError(f"{table} is not a table of query times; remove it or give another.")
    try:
        with table.open(newline="") as file:
            return [
                {name: KINDS.get(name, str)(text) for name, text in row.items()}
                for row in csv.DictReader(file)
                if row["cpu_seconds"]
            ]
    except (OSError, UnicodeDecodeError, csv.Error, ValueError, TypeError) as error:
        raise InputError(f"{table} cannot be read: {reason(error)}; fix it or give another.") from None


def _write(table: Path, rows: Iterable[Row]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, (*SIZES, *MEASURED), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(table, text.getvalue())
