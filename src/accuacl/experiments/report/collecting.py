"""The rows of a report: read from tables of results and directories of runs, checked, each run once.

Several paths may be compared with each other: the baseline can be a path, or a setting that differs between paths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError, counted, listed
from accuacl.experiments import CLASS_METRICS, Config, Row, metrics, read_csv, read_result, run_row, shown_settings
from accuacl.experiments.report.comparison import Baseline
from accuacl.experiments.report.groups import SOURCE, show
from accuacl.experiments.sweeps import has_query_times

TABLE = "results.csv"  # the name under which sweeps write their table
QUERIES = "efficiency.csv"  # the name under which `accuacl paper efficiency` writes its table
NEEDED = ("average_accuracy", "forgetting")
NUMBERS = (*NEEDED, "forgetting_max", "learning_accuracy", "calibration_error", *CLASS_METRICS)
NESTED = {
    "accuracy_matrix": 2,
    "picked": 2,
    "round_accuracy": 3,
    "found": 2,
    "rarest_labels": 2,
}  # {column of nested lists: their depth}


@dataclass(frozen=True)
class RowSource:
    """A table of results or the directory of a run, and the rows read from it."""

    path: Path
    rows: list[Row]


def read(paths: Sequence[Path]) -> dict[Path, list[RowSource]]:
    """Read all tables and runs at each of these paths.

    A file is a table of results. The directory of a run is that run alone, whatever lies below it. Any other directory
    is all runs and all tables called results.csv in it and below; no other file is opened. Tables of query times are
    read elsewhere.
    """
    return {path: [] if has_query_times(path) else _read(path) for path in paths}


def query_tables(path: Path) -> list[Path]:
    """Return all tables of query times at a path: the file, or those called efficiency.csv in a directory."""
    if path.is_dir() and not is_run(path):
        return [table for table in sorted(path.rglob(QUERIES)) if has_query_times(table)]
    return [path] if has_query_times(path) else []


def merge(rows_of: Mapping[Path, Sequence[Row]]) -> list[Row]:
    """Return the rows of all paths, each run once; if a run occurs several times, the one that finished last counts.

    If two paths, neither inside the other, have the same run, but finished at different times, the rows of all paths
    are kept. Their column `source` then names the path, and the report compares the paths.
    """
    runs = {path: _newest(rows) for path, rows in rows_of.items()}
    nested = any(path.resolve() in other.resolve().parents for path in runs for other in runs)
    if not nested and any(
        _finished(one[settings]) != _finished(other[settings])
        for one, other in combinations(runs.values(), 2)
        for settings in one.keys() & other.keys()
    ):
        names = _names(list(runs))
        return [row | {SOURCE: names[path]} for path, of_path in runs.items() for row in of_path.values()]
    return list(_newest(row for of_path in runs.values() for row in of_path.values()).values())


def _newest(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """Return {settings of a run: its row that finished last}."""
    newest: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        settings = tuple(row[name] for name in Config.model_fields)
        if settings not in newest or _finished(row) >= _finished(newest[settings]):
            newest[settings] = row
    return newest


def _finished(row: Row) -> str:
    return str(row.get("finished") or "")


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return a name for each path: its last part, unless another path has the same."""
    last = [path.absolute().name for path in paths]
    return {path: name if last.count(name) == 1 else str(path) for path, name in zip(paths, last, strict=True)}


def path_baselines(rows_of: Mapping[Path, Sequence[Row]], rows: Sequence[Row]) -> dict[Path, Baseline | None]:
    """Return, for each of several paths, a baseline that tells its runs from those of the others.

    If the merged rows have the column `source`, it is the path. Otherwise it is the settings that have one value in the
    path and other values in another path; None if there are no such settings.
    """
    if len(rows_of) < 2:
        return {}
    if any(row.get(SOURCE) for row in rows):
        return {path: Baseline((SOURCE,), (name,)) for path, name in _names(list(rows_of)).items()}
    names = [name for name in Config.model_fields if name != "seed"]
    values = {path: {name: {show(row[name]) for row in of_path} for name in names} for path, of_path in rows_of.items()}
    baselines: dict[Path, Baseline | None] = {}
    for path, own in values.items():
        apart = [
            name
            for name in names
            if len(own[name]) == 1 and any(own[name].isdisjoint(others[name]) for others in values.values())
        ]
        labels = tuple(value for name in apart for value in own[name])
        baselines[path] = Baseline(tuple(apart), labels) if apart else None
    return baselines


def given_baseline(given: str, of_paths: Mapping[Path, Baseline | None]) -> str | Baseline:
    """Return the baseline of the path that `given` names, in any spelling; if it names none, return `given` itself."""
    for path, baseline in of_paths.items():
        if given and path.resolve() == Path(given).resolve():
            if baseline is None:
                raise InputError(
                    f"no setting has one value in {given} and other values in the other paths, so it cannot be the "
                    "baseline; give a strategy, learner, memory policy or setting."
                )
            return baseline
    return given


def describe(sources: Mapping[Path, Sequence[RowSource]], queries: Mapping[Path, Sequence[Row]]) -> str:
    """Return a sentence on where the rows were read from; queries: the rows of each table of query times."""
    found = list(chain.from_iterable(sources.values()))
    runs = [source.path for source in found if source.path.is_dir()]
    names = [f"{source.path} ({counted(len(source.rows), 'row')})" for source in found if source.path not in runs]
    if runs:
        names.append(f"{runs[0]} (a run)" if len(runs) == 1 else f"{len(runs)} directories of runs")
    names += [f"{table} ({len(rows)} queries)" for table, rows in queries.items()]
    return f"Read from {', '.join(names)}."


def count_unfinished(paths: Sequence[Path]) -> int:
    """Return how many runs in these directories have started but not finished."""
    folders = [path for path in paths if path.is_dir() and not is_run(path)]
    begun = {journal.parent.resolve() for folder in folders for journal in folder.rglob("journal.sqlite")}
    return sum(not is_run(run) for run in begun)


def is_run(path: Path) -> bool:
    """Return whether this is the directory of a finished run."""
    return (path / "result.json").is_file()


def _read(path: Path) -> list[RowSource]:
    if is_run(path):
        return [_read_run(path)]
    if path.is_file():
        return [_read_table(path)]
    if not path.is_dir():
        raise InputError(f"there is no file or folder {path}; give a {TABLE}, or a folder with one or more runs.")
    sources = [_read_table(table) for table in sorted(path.rglob(TABLE))]
    sources += [_read_run(result.parent) for result in sorted(path.rglob("result.json"))]
    if not sources and not query_tables(path):
        tables = [table.name for table in sorted(path.glob("*.csv"))]
        what_to_do = "finish a run first or give another folder"
        if tables:
            what_to_do += f", or one of its tables by name, if they hold results: {listed(tables, most=5)}"
        raise InputError(f"{path} holds no finished run and no {TABLE}; {what_to_do}.")
    return sources


def _read_table(path: Path) -> RowSource:
    rows = read_csv(path)
    if not rows:
        raise InputError(f"{path} has no rows; give a table with at least one run.")
    return RowSource(path, [_checked(f"{path}, row {i + 1}", row) for i, row in enumerate(rows)])


def _read_run(run: Path) -> RowSource:
    if not (run / "journal.sqlite").is_file():
        raise InputError(f"{run} has a result.json but no journal.sqlite; restore it or leave the run out.")
    row = run_row(run) | {"confusion": read_result(run).get("confusion")}  # tables lack it
    return RowSource(run, [_checked(str(run), row)])


def _checked(where: str, row: Row) -> Row:
    """Check that the row's numbers and lists are well formed; return it with its settings in canonical form."""
    for name in NUMBERS:
        value = row.get(name)
        if name in NEEDED and value is None:
            raise InputError(f"{where}: {name} is missing; every run needs it, so fix the row or leave it out.")
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise InputError(f"{where}: {name} is {value!r}, not a number; fix the row or leave it out.")
    for name, depth in NESTED.items():
        if row.get(name) is not None and not _is_nested(row[name], depth):
            raise InputError(f"{where}: {name} is not {depth} lists deep with numbers; fix the row or leave it out.")
    if row.get("accuracy_matrix") is not None:
        try:
            metrics.summary(row["accuracy_matrix"])
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return {**row, **shown_settings(row)}


def _is_nested(value: Any, depth: int) -> bool:
    """Return whether the value is a list, nested to this depth, of finite numbers or None."""
    if depth:
        return isinstance(value, list) and bool(value) and all(_is_nested(item, depth - 1) for item in value)
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
