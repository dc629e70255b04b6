"""Finished runs as rows, from tables and directories."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError
from accuacl.experiment import metrics, record
from accuacl.experiment.config import Config, canonical

Row = dict[str, Any]

NUMBERS = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy", "calibration_error")
NESTED = {"accuracy_matrix": 2, "picked": 2, "round_accuracy": 3}  # lists in lists, how deep


def collect(paths: Sequence[Path]) -> list[Row]:
    """The rows of all tables and runs at `paths`, each run once, however often it was found."""
    newest: dict[tuple[Any, ...], Row] = {}
    for path in paths:
        for where, row in _found(path):
            row = {**row, **canonical(record.settings(row))}
            _check(where, row)
            key = tuple(row[name] for name in Config.model_fields)
            if key not in newest or str(row.get("finished") or "") >= str(newest[key].get("finished") or ""):
                newest[key] = row
    return list(newest.values())


def unfinished(paths: Sequence[Path]) -> int:
    """How many runs there are begun but not finished."""
    begun = {journal.parent.resolve() for path in paths if path.is_dir() for journal in path.rglob("journal.sqlite")}
    return sum(not is_run(run) for run in begun)


def is_run(path: Path) -> bool:
    """Whether the directory is that of one finished run."""
    return (path / "result.json").is_file()


def _found(path: Path) -> list[tuple[str, Row]]:
    if path.is_file():
        return _of_table(path)
    if not path.is_dir():
        raise InputError(f"there is no {path}; give a results.csv, a run's directory or one that holds runs.")
    rows = [pair for table in sorted(path.rglob("results.csv")) for pair in _of_table(table)]
    rows += [(str(result.parent), _of_run(result.parent)) for result in sorted(path.rglob("result.json"))]
    if not rows:
        raise InputError(f"{path} holds no finished run and no results.csv; finish a run first or give another folder.")
    return rows


def _of_table(path: Path) -> list[tuple[str, Row]]:
    try:
        rows = record.read_csv(path)
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text; give a results.csv or a directory of runs.") from None
    if not rows:
        raise InputError(f"{path} has no rows; give a table with at least one run.")
    return [(f"{path}, row {i + 1}", row) for i, row in enumerate(rows)]


def _of_run(run: Path) -> Row:
    if not (run / "journal.sqlite").is_file():
        raise InputError(f"{run} has a result.json but no journal.sqlite; restore it or leave the run out.")
    try:
        return record.row(run)
    except (sqlite3.Error, KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(
            f"{run} is not a whole run ({type(error).__name__}: {error}); run it again or leave it out."
        ) from None


def _check(where: str, row: Row) -> None:
    """What is averaged must be numbers, what is drawn must be an accuracy matrix."""
    for name in NUMBERS:
        value = row.get(name)
        if name in NUMBERS[:2] and value is None:
            raise InputError(f"{where}: {name} is missing; every run needs it, so mend the row or leave it out.")
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise InputError(f"{where}: {name} is {value!r}, not a number; mend the row or leave it out.")
    for name, depth in NESTED.items():
        if row.get(name) is not None and not _nested(row[name], depth):
            raise InputError(f"{where}: {name} is not made of numbers as it should be; mend the row or leave it out.")
    if row.get("accuracy_matrix") is not None:
        try:
            metrics.summary(row["accuracy_matrix"])
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None


def _nested(value: Any, depth: int) -> bool:
    """Whether it is finite numbers (or nothing) in lists in lists, so many deep."""
    if depth:
        return isinstance(value, list) and bool(value) and all(_nested(part, depth - 1) for part in value)
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
