"""`accuacl report`: tables and plots of finished runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.options import Only, Plugin, narrow
from accuacl.cli.screen import console
from accuacl.experiments import report as reports
from accuacl.strategies import load_plugins


def report(
    path: Annotated[
        list[Path],
        typer.Argument(
            help="Tables of results (results.csv) or query times (efficiency.csv), runs, or directories of these."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The file to write (default: report.html; for a single run, in its directory).")
    ] = None,
    format: Annotated[
        str, typer.Option(help=f"One of {', '.join(reports.FORMATS)} (default: by the suffix of --out, or html).")
    ] = "",
    only: Only = None,
    baseline: Annotated[
        str,
        typer.Option(
            help="What everything else is compared with, paired by seed: a strategy, learner, memory policy, path, or "
            "a setting such as labels=100, or several separated by commas (default: what the first of several "
            "paths has, else uniform)."
        ),
    ] = "",
    plugin: Plugin = None,
    title: Annotated[str, typer.Option(help="The report's title.")] = "",
    data_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="For a single run's picked images: the folder with the data sets; default: ACCUACL_DATA.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(help="Also write every plot to a file in this folder; Markdown and LaTeX then show them."),
    ] = None,
    figure_type: Annotated[
        str, typer.Option(help="With --figures: svg, pdf or png (default: svg, for LaTeX pdf).")
    ] = "",
) -> None:
    """Show finished runs: tables with standard deviations, plots, tests, the paper's figures beside ours.

    Runs that differ only in their seed are averaged, and all are compared with a baseline; two directories are
    compared with each other. A single run has its accuracy matrix, curves, confusion matrix and picked images. One
    self-contained HTML file, or Markdown, LaTeX or CSV. Nothing is run again.
    """
    load_plugins(plugin or ())
    read: list[str] = []
    written = reports.write(
        path,
        out,
        format=format,
        title=title,
        data_dir=data_dir,
        figures=figures,
        figure_type=figure_type,
        choose=(lambda rows: narrow(rows, only, dict.__getitem__)) if only else None,
        baseline=baseline,
        on_read=read.append,
    )
    console.print(escape(" ".join(read)), soft_wrap=True)
    console.print(f"written: {escape(str(written))}", soft_wrap=True)
    if figures:
        console.print(f"figures: {escape(str(figures))}", soft_wrap=True)
