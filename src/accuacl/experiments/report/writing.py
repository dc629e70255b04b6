"""Write the report of finished runs, which are read from tables of results and from the directories of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accuacl.base.errors import InputError, alternatives
from accuacl.base.files import check_new_file, write_text
from accuacl.experiments import CLASS_METRICS, Config, metrics, read_csv, read_result, run_row, shown_settings
from accuacl.experiments.report import documents, figure_files, formats
from accuacl.experiments.report.document import FORMATS
from accuacl.experiments.report.groups import SOURCE, Row, make_groups, show
from accuacl.experiments.report.tables import means_csv
from accuacl.experiments.sweeps import has_query_times, read_query_times

TABLE = "results.csv"  # as sweeps call theirs
QUERIES = "efficiency.csv"  # as `accuacl paper efficiency` calls its table
NEEDED = ("average_accuracy", "forgetting")
NUMBERS = (*NEEDED, "forgetting_max", "learning_accuracy", "calibration_error", *CLASS_METRICS)
NESTED = {
    "accuracy_matrix": 2,
    "picked": 2,
    "round_accuracy": 3,
    "found": 2,
    "rarest_labels": 2,
}  # lists in lists, and how deep
FILES_OF_RUNS = ("results.csv", "result.json", "config.json", "journal.sqlite", QUERIES)
TOGETHER = "No setting tells the paths apart, so their runs are taken together."
FOREIGN = ("pdf", "docx", "doc", "odt", "xlsx")  # suffixes of other formats


def write(
    paths: Sequence[Path],
    out: Path | None = None,
    format: str = "",
    title: str = "",
    data_dir: Path | None = None,
    command: str = "",
    figures: Path | None = None,
    figure_type: str = "",
    choose: Callable[[list[Row]], list[Row]] | None = None,
    notices: Sequence[str] = (),
    baseline: str = "",
    on_read: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Write the report of the runs and tables at `paths`; returns the file.

    A single run has a report of its own, written beside it unless `out` is given; several runs are averaged over their
    seeds, by default in report.html here; tables of query times (efficiency.csv) get a section of their own.

    `format`: html, md, latex or csv; unset, what the suffix of `out` says.

    `data_dir`: where the images of a single run lie. `command`: the one that made all runs, to be shown. `figures`: a
    folder for every figure as a file of type `figure_type` (svg, pdf or png; by default svg, for LaTeX pdf), which
    Markdown and LaTeX then show. `choose`: keeps some of the rows. `notices`: sentences to begin with. `baseline`: what
    all else is compared with: a strategy, learner, memory policy or path, or a setting as name=value. `on_read`: called
    with a sentence that says which tables and runs were read.
    """
    if not paths:
        raise InputError("no path was given; give a results.csv, a run's directory or one that holds runs.")
    single = len(paths) == 1 and is_run(paths[0])
    format = _format(format, out)
    out = out or (paths[0] if single else Path()) / f"report.{FORMATS[format][0]}"
    _check_out(out, paths)
    _check_figures(figures, figure_type, format, out)
    sources = read(paths)
    usual = baseline_of_paths(sources)
    queries = {table: read_query_times(table) for table in query_tables(paths)}
    source = describe(sources, queries)
    rows = merge(sources)
    baseline = baseline_of_path(baseline, sources, rows) or baseline
    if not rows and not any(queries.values()):
        raise InputError(f"{paths[0]} has no rows; give a table with at least one query.")
    if not rows and (choose or format == "csv"):
        raise InputError(f"{paths[0]} holds query times and no runs; leave out --only and --format csv.")
    on_read(source)
    if choose:
        rows = choose(rows)
    if single and baseline:
        raise InputError("a single run cannot be compared with anything; leave out --baseline or give more runs.")
    if single:
        report = documents.one_run(paths[0], rows[0], title, data_dir, source)
    else:
        # Nobody knows which of the unfinished runs would have been chosen.
        unfinished = 0 if choose else count_unfinished(paths)
        query_times = [row for table in queries.values() for row in table]
        notices = [*notices, *([TOGETHER] if not usual and are_mixed(sources, rows) else [])]
        report = documents.many_runs(rows, title, command, unfinished, notices, source, query_times, baseline, usual)
    if figures:
        report = figure_files.write(report, figures, figure_type or ("pdf" if format == "latex" else "svg"))
    if format == "csv":
        text = means_csv(make_groups(rows))
    elif format == "html":
        text = formats.render_html(report)
    else:
        render = formats.render_latex if format == "latex" else formats.render_markdown
        text = render(report, out.parent)
    write_text(out, text)
    return out


@dataclass(frozen=True)
class RowSource:
    """A table of results or the directory of a run, the rows read from it, and the path that it was found at."""

    path: Path
    rows: list[Row]
    is_table: bool
    given: Path


def read(paths: Sequence[Path]) -> list[RowSource]:
    """All tables and runs at these paths.

    A file is a table of results. The directory of a run is that run alone, whatever lies below it. Any other directory
    is all runs and all tables called results.csv in it and below; no other file is opened. Tables of query times are
    left to `query_tables`.
    """
    return [source for path in paths if not has_query_times(path) for source in _read(path, path)]


def query_tables(paths: Sequence[Path]) -> list[Path]:
    """All tables of query times at these paths: files, and those called efficiency.csv in directories."""
    return list(dict.fromkeys(table for path in paths for table in _query_tables(path)))


def _query_tables(path: Path) -> list[Path]:
    if path.is_dir() and not is_run(path):
        return [table for table in sorted(path.rglob(QUERIES)) if has_query_times(table)]
    return [path] if has_query_times(path) else []


def merge(sources: Sequence[RowSource]) -> list[Row]:
    """The rows of all sources, each run once: the one that finished last, if a run was found several times.

    If two of the given paths, neither of them inside the other, have the same run, finished at different times, the
    rows of all paths are kept, and their column `source` says which they are from: a report then compares the paths.
    """
    paths = list(dict.fromkeys(source.given for source in sources))
    newest: dict[tuple[Any, ...], dict[Path, Row]] = {}
    for given, row in ((source.given, row) for source in sources for row in source.rows):
        by_path = newest.setdefault(tuple(row[name] for name in Config.model_fields), {})
        if _finished(row) >= _finished(by_path.get(given, {})):
            by_path[given] = row
    nested = any(path.resolve() in other.resolve().parents for path in paths for other in paths)
    if nested or all(len({_finished(row) for row in by_path.values()}) == 1 for by_path in newest.values()):
        return [max(by_path.values(), key=_finished) for by_path in newest.values()]
    names = _names(paths)
    return [by_path[path] | {SOURCE: names[path]} for path in paths for by_path in newest.values() if path in by_path]


def baseline_of_paths(sources: Sequence[RowSource]) -> str:
    """The settings that tell the first of the given paths from the others, as `--baseline` would be given; or "".

    The first path has one value of each. The others have other values, or each has one and some have another.
    """
    by_path: dict[Path, list[Row]] = {}
    for source in sources:
        by_path.setdefault(source.given, []).extend(source.rows)
    settings = []
    for name in (name for name in Config.model_fields if name != "seed"):
        first, *others = [{show(row[name]) for row in rows} for rows in by_path.values()] or [set()]
        apart = all(first.isdisjoint(values) for values in others)
        single = all(len(values) == 1 for values in others) and any(values != first for values in others)
        if others and len(first) == 1 and (apart or single):
            settings.append(f"{name}={min(first)}")
    return ",".join(settings)


def are_mixed(sources: Sequence[RowSource], rows: Sequence[Row]) -> bool:
    """Whether two of the given paths have different runs, and no column `source` says which they are from."""
    by_path: dict[Path, set[tuple[Any, ...]]] = {}
    for source in sources:
        runs = {tuple(row[name] for name in Config.model_fields) for row in source.rows}
        by_path.setdefault(source.given, set()).update(runs)
    first, *others = list(by_path.values()) or [set()]
    return any(runs != first for runs in others) and not any(row.get(SOURCE) for row in rows)


def baseline_of_path(baseline: str, sources: Sequence[RowSource], rows: Sequence[Row]) -> str:
    """What `--baseline` would be given instead of one of the paths, in any spelling; "" for what is none of them.

    rows: as `merge` gives them: their column `source` names the path, where paths have the same runs. Else the path is
    told by the settings in which it differs from the others. "" too if it is not, but has the name of a strategy,
    learner or memory policy.
    """
    paths = list(dict.fromkeys(source.given for source in sources))
    path = next((path for path in paths if baseline and path.resolve() == Path(baseline).resolve()), None)
    if path is None:
        return ""
    if any(row.get(SOURCE) for row in rows):
        return f"{SOURCE}={_names(paths)[path]}"
    told_apart = baseline_of_paths(sorted(sources, key=lambda source: source.given != path))
    if len(paths) > 1 and not told_apart and not _is_name(baseline, rows):
        raise InputError(
            f"no setting has one value in {baseline} and other values in the other paths, so it cannot be the "
            "baseline; give a strategy, learner, memory policy or setting."
        )
    return told_apart


def _is_name(baseline: str, rows: Sequence[Row]) -> bool:
    """Whether the baseline also names a strategy, learner or memory policy of the rows."""
    return any(baseline == str(row[name]) for row in rows for name in ("strategy", "learner", "memory_policy"))


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """What each path is called: its last part, unless another has the same."""
    last = [path.absolute().name for path in paths]
    return {path: name if last.count(name) == 1 else str(path) for path, name in zip(paths, last, strict=True)}


def _finished(row: Row) -> str:
    return str(row.get("finished") or "")


def describe(sources: Sequence[RowSource], queries: Mapping[Path, Sequence[Row]] | None = None) -> str:
    """Where the rows were read from, as a sentence; queries: rows of query times by their table.

    >>> table, run = Path("a/results.csv"), Path("runs/x")
    >>> describe([RowSource(table, [{}, {}], True, table), RowSource(run, [{}], False, run)])
    'Read from a/results.csv (2 rows), runs/x (a run).'
    """
    names = [f"{s.path} ({len(s.rows)} row{'s' * (len(s.rows) > 1)})" for s in sources if s.is_table]
    runs = [source.path for source in sources if not source.is_table]
    if runs:
        names.append(f"{runs[0]} (a run)" if len(runs) == 1 else f"{len(runs)} directories of runs")
    names += [f"{table} ({len(rows)} queries)" for table, rows in (queries or {}).items()]
    return f"Read from {', '.join(names)}."


def count_unfinished(paths: Sequence[Path]) -> int:
    """How many runs in these directories have started but not finished."""
    folders = [path for path in paths if path.is_dir() and not is_run(path)]
    begun = {journal.parent.resolve() for folder in folders for journal in folder.rglob("journal.sqlite")}
    return sum(not is_run(run) for run in begun)


def is_run(path: Path) -> bool:
    """Whether this is the directory of a finished run."""
    return (path / "result.json").is_file()


def _format(given: str, out: Path | None) -> str:
    """The format that is asked for, by its name, by the suffix of the file or by both."""
    if given and given not in FORMATS:
        raise InputError(f"format is {given!r}; give one of {', '.join(FORMATS)}.")
    suffix = out.suffix.removeprefix(".").lower() if out else ""
    meant = next((name for name, suffixes in FORMATS.items() if suffix in suffixes), "")
    if given and not meant and suffix not in FOREIGN:
        meant = given  # in a file of any name
    if suffix and (not meant or given not in ("", meant)):
        name = given or "a report"
        wanted = FORMATS[given] if given else [suffix for suffixes in FORMATS.values() for suffix in suffixes]
        endings = alternatives([f".{each}" for each in wanted])
        raise InputError(f"{out} has an unsupported extension for {name}; use {endings}.")
    return meant or "html"


def _check_out(out: Path, paths: Sequence[Path]) -> None:
    """Refuse a file that cannot be written, and one that results are kept in."""
    check_new_file(out)
    if out.resolve() in {path.resolve() for path in paths}:
        raise InputError(f"{out} is what the report is made from and would be lost; give another --out.")
    if out.name in FILES_OF_RUNS and any(path.resolve() in out.resolve().parents for path in paths):
        raise InputError(f"{out} has the name of a file that runs keep; give another --out.")


def _check_figures(figures: Path | None, figure_type: str, format: str, out: Path) -> None:
    """Refuse a folder and a type of figures that the format cannot show."""
    if figure_type and not figures:
        raise InputError("--figure-type needs a folder for the figures; give --figures too.")
    if figures and figures.exists() and not figures.is_dir():
        raise InputError(f"{figures} is a file; give a folder for the figures.")
    if figure_type == "svg" and format == "latex":
        raise InputError("LaTeX includes no SVG; give --figure-type pdf or png.")
    if figures and format == "latex" and set(formats.link(figures, out.parent)) & set("%#{}~\\ "):
        raise InputError(f"LaTeX cannot include files of {figures}; give --figures without spaces and special signs.")


def _read(path: Path, given: Path) -> list[RowSource]:
    if is_run(path):
        return [_read_run(path, given)]
    if path.is_file():
        return [_read_table(path, given)]
    if not path.is_dir():
        raise InputError(f"there is no file or folder {path}; give a {TABLE}, or a folder with one or more runs.")
    sources = [_read_table(table, given) for table in sorted(path.rglob(TABLE))]
    sources += [_read_run(result.parent, given) for result in sorted(path.rglob("result.json"))]
    if not sources and not _query_tables(path):
        tables = [table.name for table in sorted(path.glob("*.csv"))]
        what_to_do = "finish a run first or give another folder"
        if tables:
            listed = ", ".join(tables[:5]) + (f" and {len(tables) - 5} more" if tables[5:] else "")
            what_to_do += f", or one of its tables by name, if they hold results: {listed}"
        raise InputError(f"{path} holds no finished run and no {TABLE}; {what_to_do}.")
    return sources


def _read_table(path: Path, given: Path) -> RowSource:
    rows = read_csv(path)
    if not rows:
        raise InputError(f"{path} has no rows; give a table with at least one run.")
    return RowSource(path, [_checked(f"{path}, row {i + 1}", row) for i, row in enumerate(rows)], True, given)


def _read_run(run: Path, given: Path) -> RowSource:
    if not (run / "journal.sqlite").is_file():
        raise InputError(f"{run} has a result.json but no journal.sqlite; restore it or leave the run out.")
    row = run_row(run) | {"confusion": read_result(run).get("confusion")}  # which tables do not have
    return RowSource(run, [_checked(str(run), row)], False, given)


def _checked(where: str, row: Row) -> Row:
    """The row with its settings in their canonical form, once its numbers and lists were found well formed."""
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
    """Whether the value is lists, nested to this depth, of finite numbers or None."""
    if depth:
        return isinstance(value, list) and bool(value) and all(_is_nested(item, depth - 1) for item in value)
    return value is None or (isinstance(value, int | float) and math.isfinite(value))
