"""`accuacl project relocate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.project.options import Directory
from accuacl.cli.screen import console
from accuacl.labeling import project as projects

SHOWN = 3  # names of images that are missing


def relocate(
    directory: Directory,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The folder or file that the data were in.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Where it is now.")],
) -> None:
    """Say where data lie that were moved: a folder of images, or one that has those of several tasks.

    Names below the folder must be as they were. A server that is running goes on with the new place. What was uploaded
    on the page is in the project's directory and moves with it.
    """
    with projects.Project.open(directory) as project:
        for moved in projects.relocate_data(project.tasks, old, new):
            console.print(f"task {moved.task + 1}: {escape(moved.place)}", soft_wrap=True)
            if moved.missing:
                more = ", ..." if len(moved.missing) > SHOWN else ""
                names = escape(", ".join(moved.missing[:SHOWN])) + more
                console.print(f"[yellow]missing there:[/yellow] {len(moved.missing)} images: {names}", soft_wrap=True)
