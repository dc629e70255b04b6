"""`accuacl project label`, `gold`, `push` and `pull`: labels from files and from Label Studio."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.base.progress import Progress
from accuacl.cli.options import TrustCode
from accuacl.cli.project import Directory, advance, open_project, print_state
from accuacl.cli.screen import console, drawn, errors
from accuacl.labeling import label_studio as studio, project as projects
from accuacl.labeling.label_studio import TOKEN

REFUSED_SHOWN = 20  # refused rows, by a sentence each
Server = Annotated[
    str,
    typer.Option(
        "--label-studio",
        metavar="URL",
        help=f"The Label Studio server; the environment variable {TOKEN} holds the access token.",
    ),
]


def label(
    directory: Directory,
    file: Annotated[
        Path,
        typer.Option(
            "--from", help="A table (CSV, TSV, JSON, JSON lines, Parquet) with `name` (texts: `text`) and `class`."
        ),
    ],
    by: Annotated[str, typer.Option(help="Whose labels they are, unless a column `person` says so.")] = "imported",
    label_column: Annotated[str, typer.Option(help="The column of classes (default: class or label).")] = "",
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Add classes that the project does not have.")
    ] = False,
    train: Annotated[bool, typer.Option("--train", help="Then learn from them and choose what to label next.")] = False,
    trust_code: TrustCode = False,
) -> None:
    """Import existing labels from a file. Labels that no round asked for do not count against the budget.

    Rows that cannot be imported are named and skipped; importing the same file again changes nothing. Labels of items
    that the open round asks for answer it and count against the budget; those of items that nobody has been asked for
    are learned with the current round; those of later tasks wait for theirs. Exit code 2: some rows were refused.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        taken = projects.take_label_file(project, file, by, new_classes, label_column)
        for sentence in taken.refused[:REFUSED_SHOWN]:
            errors.print(f"[yellow]refused:[/yellow] {escape(sentence)}", soft_wrap=True)
        if len(taken.refused) > REFUSED_SHOWN:
            errors.print(f"[yellow]refused:[/yellow] {len(taken.refused) - REFUSED_SHOWN} more rows")
        waiting = f", {taken.waiting} wait for their task to begin" if taken.waiting else ""
        console.print(f"{taken.labels} labels taken, {taken.known} were there already{waiting}")
        state = project.state()
        if train and state.ready:
            state = advance(project, directory, draw)
    print_state(state, directory)
    if taken.refused:
        raise typer.Exit(2)


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

    Whoever labels such an item is compared with the known answer. Once it has a label, everyone else is asked too; one
    in ten of their examples is gold. This changes no label. `project status` shows how often each person is right.
    """
    with projects.Project.open(directory) as project:
        count, labelled = projects.add_gold(project, file)
        total = len(project.store.gold())
    console.print(f"{count} gold items, of which {labelled} are labelled so far; {total} in all")


def push(directory: Directory, label_studio: Server) -> None:
    """Let people label the open round in Label Studio.

    Makes the project there if it is missing, and adds the tasks that it does not have.
    """
    with projects.Project.open(directory) as project:
        _push_round(project, label_studio)


def pull(
    directory: Directory,
    label_studio: Server,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat until the round is complete.")] = False,
    train: Annotated[
        bool,
        typer.Option("--train", help="Train when the round is complete, then push the next; with --watch, repeat."),
    ] = False,
    every: Annotated[float, typer.Option(min=1, help="With --watch: seconds between requests.")] = 10.0,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Make a class of every choice that the project does not know.")
    ] = False,
    trust_code: TrustCode = False,
) -> None:
    """Take what people have answered in Label Studio: labels, corrections and skips.

    Skips cost nothing. Exit code 2: something was refused; the rest was taken.
    """
    shown: set[str] = set()
    with open_project(directory, trust_code) as project, drawn() as draw:

        def report(pulled: studio.Pulled) -> None:
            _print_pulled(pulled, shown, always=not watch)
            draw(Progress(0.0, 1.0, f"waiting for labels; {project.state().text}"))

        while True:
            token = os.environ.get(studio.TOKEN, "")
            pulled = studio.pull(project, label_studio, token, watch, new_classes=new_classes, every=every, tell=report)
            state = project.state()
            if not train or not state.ready:
                break
            state = advance(project, directory, draw)
            if state.waiting != "labels":
                break
            _push_round(project, label_studio)
            if not watch:
                break
    print_state(state, directory)
    if pulled.refused:
        raise typer.Exit(2)


def _push_round(project: projects.Project, url: str) -> None:
    """Push the open round, and say what was added."""
    pushed = studio.push(project, url, os.environ.get(studio.TOKEN, ""))
    address = f"{url.rstrip('/')}/projects/{pushed.project}"
    console.print(f"{escape(address)}: {pushed.added} tasks added, {pushed.there} were there", soft_wrap=True)


def _print_pulled(pulled: studio.Pulled, shown: set[str], always: bool) -> None:
    """Say what came; each refusal once (`shown` has those of before). always: also when nothing came."""
    for title, sentences in (("refused", pulled.refused), ("left", pulled.left)):
        for text in dict.fromkeys(sentences):
            if text not in shown:
                errors.print(f"[yellow]{title}:[/yellow] {escape(text)}", soft_wrap=True)
        shown.update(sentences)
    if pulled.labelled or pulled.skipped or pulled.corrected or always:
        console.print(f"{pulled.labelled} labelled, {pulled.skipped} skipped, {pulled.corrected} corrected")
