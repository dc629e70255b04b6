"""`accuacl project`: people label, a model learns. The group, and what its commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from accuacl.base.machine import one_heap
from accuacl.cli import lazy_group, screen
from accuacl.cli.screen import console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accuacl.base.progress import OnProgress
    from accuacl.labeling.project import Project, ProjectState

DATA, LABELS, PEOPLE, STATE = (f"accuacl.cli.project_{part}" for part in ("data", "labels", "people", "state"))
COMMANDS = {  # by name: its module, and the line that the group's help shows
    "new": (DATA, "Start a project with the pool of its first task."),
    "add": (DATA, "Add the next task's pool; at any time, also while people label."),
    "serve": (PEOPLE, "Serve the page on which people label, and train whenever a round is complete."),
    "person": (PEOPLE, "Let someone label, or end their access."),
    "gold": (LABELS, "Name items whose answers are known, to see how often people are right."),
    "status": (STATE, "Show what the project is waiting for, what people have done, and how good the model is."),
    "train": (STATE, "Do what can be done now: close a complete round, train, choose the next batch."),
    "label": (
        LABELS,
        "Import existing labels from a file. Labels that no round asked for do not count against the budget.",
    ),
    "forget": (STATE, "Remove items, their labels and what was learned from them."),
    "relocate": (
        DATA,
        "Tell the project where moved data are now: a folder of images, or one with those of several tasks.",
    ),
    "backup": (STATE, "Copy the project to a new directory while people continue to label."),
    "export": (STATE, "Write the labels, the model with a file that loads it, and predictions for new data."),
    "push": (LABELS, "Let people label the open round in Label Studio."),
    "pull": (LABELS, "Take what people have answered in Label Studio: labels, corrections and skips."),
}

project = lazy_group(COMMANDS, "Let people label while a model learns: labelling projects.")

LEFT_OUT_SHOWN = 20  # files that could not be read, by name
Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]


def command(name: str, directory: Path) -> str:
    """A command for a project, to be printed, which a shell takes as it stands."""
    return screen.command("project", name, directory)


def next_step(directory: Path) -> str:
    """What to do with a round that has all its labels, to be printed.

    >>> next_step(Path("my photos"))
    " Next: [bold]accuacl project train 'my photos'[/bold]"
    """
    return f" Next: {command('train', directory)}"


def open_project(directory: Path, trust_code: bool) -> Project:
    """The project in a directory, to train; trust_code: from now on this user runs its model's Python file."""
    from accuacl.labeling import project as projects

    one_heap()  # before there are threads
    opened = projects.Project.open(directory)
    if trust_code:
        projects.trust_code(opened.settings)
    return opened


def advance(project: Project, directory: Path, draw: OnProgress) -> ProjectState:
    """Do what can be done now, and print what was learned and chosen."""
    from accuacl.labeling.project import LearningLog

    done = LearningLog(project.journal)
    state = project.advance(draw)
    for sentence in done.learned():
        console.print(sentence, soft_wrap=True)
    if state.waiting == "labels" and (count := done.chosen(state.task, state.round)):
        where = f"task {state.task + 1}, round {state.round + 1}"
        console.print(f"{where}: {count} are chosen to be labelled: {command('serve', directory)}", soft_wrap=True)
    return state


def print_left_out(files: Sequence[tuple[str, str]]) -> None:
    """Name files that could not be read, each with the reason."""
    for name, why in files:
        console.print(f"[yellow]left out:[/yellow] {escape(printable(name))}: {escape(printable(why))}", soft_wrap=True)


def printable(text: str) -> str:
    r"""A name that somebody else chose, without characters by which a terminal could be controlled.

    >>> printable("a\x1b[2Jb\u202ec ü.png")
    'a\\x1b[2Jb\\u202ec ü.png'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def print_state(state: ProjectState, directory: Path) -> None:
    """What the project waits for, and the command that continues it."""
    console.print(escape(state.text) + (next_step(directory) if state.ready else ""), soft_wrap=True)
