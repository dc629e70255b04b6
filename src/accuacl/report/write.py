"""From paths to a report on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from accuacl.experiment.files import write_text
from accuacl.report import latex, markdown, page, run, sweep, tidy
from accuacl.report.collect import collect, is_run, unfinished

FORMATS = {"html": "html", "md": "md", "latex": "tex", "csv": "csv"}  # and how their files end


def write(
    paths: Sequence[Path],
    out: Path | None = None,
    format: str = "html",
    title: str = "",
    data_dir: Path | None = None,
    command: str = "",
) -> Path:
    """Write the report of the runs and tables at `paths`; where it is.

    One run has a report of its own, beside it unless `out` says otherwise; several have one of their means, by default
    report.html here. `data_dir`: where the images of a single run lie. `command`: what made all runs, to be shown.
    """
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; give one of {', '.join(FORMATS)}.")
    if not paths:
        raise ValueError("no path was given; give a results.csv, a run's directory or one that holds runs.")
    single = len(paths) == 1 and is_run(paths[0])
    out = out or (paths[0] if single else Path()) / f"report.{FORMATS[format]}"
    if out.is_dir():
        raise ValueError(f"{out} is a folder; give the name of a file in it.")
    if not out.resolve().parent.is_dir():
        raise ValueError(f"there is no folder {out.resolve().parent} to write {out.name} to; make it first.")
    if out.resolve() in {path.resolve() for path in paths}:
        raise ValueError(f"{out} is what the report is made from and would be lost; give another --out.")
    rows = collect(paths)
    if format == "csv":
        text = tidy.render(rows)
    elif single and format == "html":
        text = page.render(run.document(paths[0], rows[0], title, data_dir))
    else:
        report = sweep.document(rows, title, command, unfinished(paths))
        text = {"html": page, "md": markdown, "latex": latex}[format].render(report)
    write_text(out, text)
    return out
