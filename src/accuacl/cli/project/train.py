"""`accuacl project train`."""

from __future__ import annotations

from rich.markup import escape

from accuacl.base.errors import LabelsPending
from accuacl.cli.project.options import Directory
from accuacl.cli.screen import console, drawn
from accuacl.labeling.project import Project


def train(directory: Directory) -> None:
    """Do what can be done now: close a complete round, train, choose the next batch.

    Exit code 75: labels are missing, so there is nothing to do yet.
    """
    with Project.open(directory) as project, drawn() as draw:
        state = project.advance(draw)
    if state.waiting == "labels":
        raise LabelsPending(state.text)
    console.print(escape(state.text))
