"""Write the report of finished runs to a file, in a given format, with figures beside it if wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from accuacl.base.errors import InputError, alternatives, counted
from accuacl.base.files import check_new_file, write_text
from accuacl.experiments import Row
from accuacl.experiments.report import documents, figure_files, formats
from accuacl.experiments.report.collecting import (
    QUERIES,
    count_unfinished,
    describe,
    given_baseline,
    is_run,
    merge,
    path_baselines,
    query_tables,
    read,
)
from accuacl.experiments.report.document import FORMATS
from accuacl.experiments.report.groups import make_groups
from accuacl.experiments.report.tables import means_csv
from accuacl.experiments.sweeps import read_query_times

FILES_OF_RUNS = ("results.csv", "result.json", "config.json", "journal.sqlite", QUERIES)
TOGETHER = "No setting tells the paths apart, so their runs are taken together."
FOREIGN = ("pdf", "docx", "doc", "odt", "xlsx")  # suffixes that are refused, as a report cannot have these formats


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
    """Write the report of the runs and tables at `paths`; return the file.

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
    queries = {table: read_query_times(table) for path in paths for table in query_tables(path)}
    rows_of = {path: [row for source in found for row in source.rows] for path, found in sources.items() if found}
    rows = merge(rows_of)
    if not rows and not any(queries.values()):
        raise InputError(f"{paths[0]} has no rows; give a table with at least one query.")
    if not rows and (choose or format == "csv"):
        raise InputError(f"{paths[0]} holds query times and no runs; leave out --only and --format csv.")
    if single and baseline:
        raise InputError("a single run cannot be compared with anything; leave out --baseline or give more runs.")
    source = describe(sources, queries)
    on_read(source)
    of_paths = path_baselines(rows_of, rows)
    wanted = given_baseline(baseline, of_paths)
    rows = choose(rows) if choose else rows
    if single:
        report = documents.one_run(paths[0], rows[0], title, data_dir, source)
    else:
        unfinished = 0 if choose else count_unfinished(paths)  # with --only, these may not belong to the report
        notices = [*notices, f"Left out: {counted(unfinished, 'unfinished run')}."] if unfinished else notices
        query_times = [row for table in queries.values() for row in table]
        usual = next(iter(of_paths.values()), None)
        notices = [*notices, TOGETHER] if of_paths and not usual else notices
        report = documents.many_runs(rows, title, command, notices, source, query_times, wanted, usual)
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


def _format(given: str, out: Path | None) -> str:
    """Return the format that is asked for, by its name or by the suffix of the file; both must agree."""
    if given and given not in FORMATS:
        raise InputError(f"format is {given!r}; give one of {', '.join(FORMATS)}.")
    suffix = out.suffix.removeprefix(".").lower() if out else ""
    meant = next((name for name, suffixes in FORMATS.items() if suffix in suffixes), "")
    if not suffix or (given and not meant and suffix not in FOREIGN):
        return given or "html"
    if not meant or given not in ("", meant):
        wanted = FORMATS[given] if given else [each for suffixes in FORMATS.values() for each in suffixes]
        endings = alternatives([f".{each}" for each in wanted])
        raise InputError(f"{out} has an unsupported extension for {given or 'a report'}; use {endings}.")
    return meant


def _check_out(out: Path, paths: Sequence[Path]) -> None:
    """Refuse an output file that cannot be written, or that has results in it."""
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
        raise InputError(
            f"LaTeX cannot include files from {figures}; give a path without spaces and special characters."
        )
