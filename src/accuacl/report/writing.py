"""From paths to a report on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import check_new_file, write_text
from accuacl.report import collect, many_runs, one_run
from accuacl.report.formats import FORMATS, figure_files, latex, markdown, page
from accuacl.report.statistics.groups import Row, make_groups
from accuacl.report.tables.means_csv import means_csv
from accuacl.sweeps import read_query_times

FILES_OF_RUNS = ("results.csv", "result.json", "config.json", "journal.sqlite", collect.QUERIES)

FOREIGN = ("pdf", "docx", "doc", "odt", "xlsx")  # suffixes of what no format is


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
    tell: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Write the report of the runs and tables at `paths`; returns the file.

    A single run has a report of its own, written beside it unless `out` is given; several runs are averaged over their
    seeds, by default in report.html here; tables of query times (efficiency.csv) get a section of their own.

    `format`: html, md, latex or csv; unset, what the suffix of `out` says.

    `data_dir`: where the images of a single run lie. `command`: the one that made all runs, to be shown. `figures`: a
    folder for every figure as a file of type `figure_type` (svg, pdf or png; by default svg, for LaTeX pdf), which
    Markdown and LaTeX then show. `choose`: keeps some of the rows. `notices`: sentences to begin with. `tell`: gets a
    sentence that says which tables and runs were read.
    """
    if not paths:
        raise InputError("no path was given; give a results.csv, a run's directory or one that holds runs.")
    single = len(paths) == 1 and collect.is_run(paths[0])
    format = _format(format, out)
    out = out or (paths[0] if single else Path()) / f"report.{FORMATS[format][0]}"
    _check_out(out, paths)
    _check_figures(figures, figure_type, format, out)
    sources = collect.read(paths)
    queries = {table: read_query_times(table) for table in collect.query_tables(paths)}
    source = collect.describe(sources, queries)
    rows = collect.merge(sources)
    if not rows and not any(queries.values()):
        raise InputError(f"{paths[0]} has no rows; give a table with at least one query.")
    if not rows and (choose or format == "csv"):
        raise InputError(f"{paths[0]} holds query times and no runs; leave out --only and --format csv.")
    tell(source)
    if choose:
        rows = choose(rows)
    if single:
        report = one_run.document(paths[0], rows[0], title, data_dir, source)
    else:
        # Nobody knows which of the unfinished runs would have been chosen.
        unfinished = 0 if choose else collect.count_unfinished(paths)
        query_times = [row for table in queries.values() for row in table]
        report = many_runs.document(rows, title, command, unfinished, notices, source, query_times)
    if figures:
        report = figure_files.write(report, figures, figure_type or ("pdf" if format == "latex" else "svg"))
    if format == "csv":
        text = means_csv(make_groups(rows))
    elif format == "html":
        text = page.render(report)
    else:
        text = {"md": markdown, "latex": latex}[format].render(report, out.parent)
    write_text(out, text)
    return out


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
        raise InputError(f"{out} is no file for {name}; end its name in .{' or .'.join(wanted)}.")
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
        raise InputError("a figure type without a folder for figures; give --figures too.")
    if figures and figures.exists() and not figures.is_dir():
        raise InputError(f"{figures} is a file; give a folder for the figures.")
    if figure_type == "svg" and format == "latex":
        raise InputError("LaTeX includes no SVG; give --figure-type pdf or png.")
    if figures and format == "latex" and set(markdown.link(figures, out.parent)) & set("%#{}~\\ "):
        raise InputError(f"LaTeX cannot include files of {figures}; give --figures without blanks and signs in it.")
