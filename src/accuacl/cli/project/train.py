"""`accuacl project train`."""

from __future__ import annotations

from rich.markup import escape

from accuacl.base.errors import LabelsPending
from accuacl.cli.options import TrustCode
from accuacl.cli.project.options import Directory, command, open_project
from accuacl.cli.screen import console, drawn
from accuacl.labeling import project as projects


def train(directory: Directory, trust_code: TrustCode = False) -> None:
    """Do what can be done now: close a complete round, train, choose the next batch.

    It says what it has done. Exit code 75: labels are missing now, so that nothing more can be done.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        done = projects.LearningLog(project.journal)
        state = project.advance(draw)
    for sentence in done.learned():
        console.print(sentence, soft_wrap=True)
    if state.waiting == "labels":
        if count := done.chosen(state.task, state.round):
            where = f"task {state.task + 1}, round {state.round + 1}"
            console.print(f"{where}: {count} are chosen to be labelled: {command('serve', directory)}", soft_wrap=True)
        raise LabelsPending(state.text)
    console.print(escape(state.text))
