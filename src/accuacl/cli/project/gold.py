"""`accuacl project gold`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accuacl.cli.project.options import Directory
from accuacl.cli.screen import console
from accuacl.labeling import project as projects


def gold(
    directory: Directory,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A table (CSV, TSV, JSON, JSON lines, Parquet) with `name` (texts: `text`) and `class`.",
        ),
    ],
) -> None:
    """Name items whose answers are known, to see how often people are right.

    Whoever labels such an item is compared with the known answer. Once it has a label, everybody else is asked about it
    too, one in ten of their examples; this changes no label. `project status` shows how often each person is right.
    """
    with projects.Project.open(directory) as project:
        count, labelled = projects.add_gold(project, file)
        total = len(project.store.gold())
    console.print(f"{count} gold items, of which {labelled} are labelled so far; {total} in all")
