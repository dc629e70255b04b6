"""`accuacl project pull`."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.markup import escape

from accuacl.base.progress import Progress
from accuacl.cli.options import TrustCode
from accuacl.cli.project.options import Directory, Server, next_step, open_project
from accuacl.cli.project.push import push_round
from accuacl.cli.screen import console, drawn
from accuacl.labeling import label_studio as studio


def pull(
    directory: Directory,
    label_studio: Server,
    watch: Annotated[bool, typer.Option("--watch", help="Ask again until the round is complete.")] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Train when the round is complete, and push the next; with --watch, go on.")
    ] = False,
    every: Annotated[float, typer.Option(min=1, help="With --watch: seconds from one question to the next.")] = 10.0,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="Make a class of every choice that the project does not know.")
    ] = False,
    trust_code: TrustCode = False,
) -> None:
    """Take what people have answered in Label Studio: labels, corrections, and skips, which cost nothing.

    Exit code 2: something was refused; the rest was taken.
    """
    shown: set[str] = set()
    with open_project(directory, trust_code) as project, drawn() as draw:

        def tell(pulled: studio.Pulled) -> None:
            _print_pulled(pulled, shown, always=not watch)
            draw(Progress(0.0, 1.0, f"waiting for labels; {project.state().text}"))

        while True:
            token = os.environ.get(studio.TOKEN, "")
            pulled = studio.pull(project, label_studio, token, watch, new_classes=new_classes, every=every, tell=tell)
            state = project.state()
            if not train or not state.ready:
                break
            state = project.advance(draw)
            if state.waiting != "labels":
                break
            push_round(project, label_studio)
            if not watch:
                break
    console.print(escape(state.text) + (next_step(directory) if state.ready else ""), soft_wrap=True)
    if pulled.refused:
        raise typer.Exit(2)


def _print_pulled(pulled: studio.Pulled, shown: set[str], always: bool) -> None:
    """Say what came; each refusal once (`shown` has those of before). always: also when nothing came."""
    for title, sentences in (("refused", pulled.refused), ("left", pulled.left)):
        for text in dict.fromkeys(sentences):
            if text not in shown:
                console.print(f"[yellow]{title}:[/yellow] {escape(text)}", soft_wrap=True)
        shown.update(sentences)
    if pulled.labelled or pulled.skipped or pulled.corrected or always:
        console.print(f"{pulled.labelled} labelled, {pulled.skipped} skipped, {pulled.corrected} corrected")
