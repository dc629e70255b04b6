"""`accuacl project train`."""

from __future__ import annotations

from rich.markup import escape

from accuacl.base.errors import LabelsPending
from accuacl.cli.options import TrustCode
from accuacl.cli.project.options import Directory, open_project
from accuacl.cli.screen import console, drawn


def train(directory: Directory, trust_code: TrustCode = False) -> None:
    """Do what can be done now: close a complete round, train, choose the next batch.

    Exit code 75: labels are missing, so there is nothing to do yet.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        state = project.advance(draw)
    if state.waiting == "labels":
        raise LabelsPending(state.text)
    console.print(escape(state.text))
