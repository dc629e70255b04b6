"""Options that the commands of projects share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accuacl.base.machine import one_heap
from accuacl.cli import screen
from accuacl.labeling import project as projects
from accuacl.labeling.label_studio import TOKEN

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]
Images = Annotated[
    Path | None, typer.Option(help="A folder of images, or with a folder of them for each task: task-1, task-2, ...")
]
TaskColumn = Annotated[
    str | None,
    typer.Option(help="The column that names the task of each row. Unset: `task`, if there is one; '': none."),
]
Vectors = Annotated[
    Path | None, typer.Option(help="A Parquet file: `id`, and lists in `embedding` or columns of numbers.")
]
TableFile = Annotated[
    Path | None,
    typer.Option(help="A table with columns of any kind: .csv, .tsv or Parquet (.csv.xz, .csv.gz and .csv.bz2 too)."),
]
Texts = Annotated[
    Path | None,
    typer.Option(help="Texts: a .txt file with a text in each line, or a .csv, .tsv, .json, .jsonl or Parquet file."),
]
LabelColumn = Annotated[
    str,
    typer.Option(help="A column with labels that texts, vectors or tables have already; learned at once, and free."),
]
Server = Annotated[
    str,
    typer.Option(
        "--label-studio",
        metavar="URL",
        help=f"The Label Studio server; the environment variable {TOKEN} holds the access token.",
    ),
]


def command(name: str, directory: Path) -> str:
    """A command for a project, to be printed, which a shell takes as it stands."""
    return screen.command("project", name, directory)


def next_step(directory: Path) -> str:
    """What to do with a round that has all its labels, to be printed.

    >>> next_step(Path("my photos"))
    " Next: [bold]accuacl project train 'my photos'[/bold]"
    """
    return f" Next: {command('train', directory)}"


def open_project(directory: Path, trust_code: bool) -> projects.Project:
    """The project in a directory, to train; trust_code: from now on this user runs its model's Python file."""
    one_heap()  # before there are threads
    project = projects.Project.open(directory)
    if trust_code:
        projects.trust_code(project.settings)
    return project
