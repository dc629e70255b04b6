"""From paths to a report on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import write_text
from accuacl.report import many_runs as sweep
from accuacl.report import one_run as run
from accuacl.report.figures import plates
from accuacl.report.formats import latex, markdown, page, tidy
from accuacl.report.statistics.collect import Row, collect, is_run, unfinished

FORMATS = {"html": "html", "md": "md", "latex": "tex", "csv": "csv"}  # and how their files end
KEPT = ("results.csv", "result.json", "config.json", "journal.sqlite")


def write(
    paths: Sequence[Path],
    out: Path | None = None,
    format: str = "html",
    title: str = "",
    data_dir: Path | None = None,
    command: str = "",
    figures: Path | None = None,
    figure_type: str = "",
    choose: Callable[[list[Row]], list[Row]] | None = None,
    notices: Sequence[str] = (),
) -> Path:
    """Write the report of the runs and tables at `paths`; where it is.

    One run has a report of its own, beside it unless `out` says otherwise; several have one of their means, by default
    report.html here. `data_dir`: where the images of a single run lie. `command`: what made all runs, to be shown.
    `figures`: a folder for all plots as files of their own, of `figure_type` (svg, pdf or png; svg by default, in LaTeX
    pdf); Markdown and LaTeX then show them. `choose`: which of the runs found are shown. `notices`: what must be said
    first.
    """
    if format not in FORMATS:
        raise InputError(f"format is {format!r}; give one of {', '.join(FORMATS)}.")
    if not paths:
        raise InputError("no path was given; give a results.csv, a run's directory or one that holds runs.")
    single = len(paths) == 1 and is_run(paths[0])
    out = out or (paths[0] if single else Path()) / f"report.{FORMATS[format]}"
    if out.is_dir():
        raise InputError(f"{out} is a folder; give the name of a file in it.")
    if not out.resolve().parent.is_dir():
        raise InputError(f"there is no folder {out.resolve().parent} to write {out.name} to; make it first.")
    if out.resolve() in {path.resolve() for path in paths}:
        raise InputError(f"{out} is what the report is made from and would be lost; give another --out.")
    if out.name in KEPT and any(path.resolve() in out.resolve().parents for path in paths):
        raise InputError(f"{out} has the name of a file that runs keep; give another --out.")
    if figure_type and not figures:
        raise InputError("a figure type without a folder for figures; give --figures too.")
    if figures and figures.exists() and not figures.is_dir():
        raise InputError(f"{figures} is a file; give a folder for the figures.")
    if figure_type == "svg" and format == "latex":
        raise InputError("LaTeX includes no SVG; give --figure-type pdf or png.")
    if figures and format == "latex" and set(markdown.link(figures, out.parent)) & set("%#{}~\\ "):
        raise InputError(f"LaTeX cannot include files of {figures}; give --figures without blanks and signs in it.")
    rows = collect(paths)
    if choose:
        rows = choose(rows)
    if single:
        report = run.document(paths[0], rows[0], title, data_dir)
    else:
        missing = 0 if choose else unfinished(paths)  # of which it is not known whether they would have been chosen
        report = sweep.document(rows, title, command, missing, notices)
    if figures:
        report = plates.write(report, figures, figure_type or ("pdf" if format == "latex" else "svg"))
    if format == "csv":
        text = tidy.render(rows)
    elif format == "html":
        text = page.render(report)
    else:
        text = {"md": markdown, "latex": latex}[format].render(report, out.parent)
    write_text(out, text)
    return out
