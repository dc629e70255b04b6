"""`accuacl project label`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.cli.options import TrustCode
from accuacl.cli.project.options import Directory, next_step, open_project
from accuacl.cli.screen import console, drawn

SHOWN = 20  # refused rows, by a sentence each


def label(
    directory: Directory,
    file: Annotated[
        Path,
        typer.Option(
            "--from", help="A table (CSV, TSV, JSON, JSON lines, Parquet) with `name` (texts: `text`) and `class`."
        ),
    ],
    by: Annotated[str, typer.Option(help="Whose labels they are, where no column `person` says it.")] = "imported",
    label_column: Annotated[str, typer.Option(help="The column of classes (default: class or label).")] = "",
    new_classes: Annotated[bool, typer.Option("--new-classes", help="Add classes that the project has not.")] = False,
    train: Annotated[bool, typer.Option("--train", help="Then learn from them and choose what to label next.")] = False,
    trust_code: TrustCode = False,
) -> None:
    """Take labels that you have already from a file; those of items that nobody was asked for cost nothing.

    Rows that cannot be taken are named and the others taken; the same file again changes nothing. Labels of items that
    the open round asks for are answers to it, and count in the budget; those of items that nobody has been asked for
    are learned with the present round; those of later tasks wait for theirs. Exit code 2: some rows were refused.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        from accuacl.labeling.project import take_label_file

        taken = take_label_file(project, file, by, new_classes, label_column)
        for sentence in taken.refused[:SHOWN]:
            console.print(f"[yellow]refused:[/yellow] {escape(sentence)}", soft_wrap=True)
        if len(taken.refused) > SHOWN:
            console.print(f"[yellow]refused:[/yellow] {len(taken.refused) - SHOWN} more rows")
        waiting = f", {taken.waiting} wait for their task to begin" if taken.waiting else ""
        console.print(f"{taken.labels} labels taken, {taken.known} were there already{waiting}")
        state = project.state()
        if train and state.ready:
            state = project.advance(draw)
    console.print(escape(state.text) + (next_step(directory) if state.ready else ""), soft_wrap=True)
    if taken.refused:
        raise typer.Exit(2)
