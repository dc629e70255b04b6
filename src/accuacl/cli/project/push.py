"""`accuacl project push`."""

from __future__ import annotations

import os

from rich.markup import escape

from accuacl.cli.project.options import Directory, Server
from accuacl.cli.screen import console
from accuacl.labeling import label_studio as studio, project as projects


def push(directory: Directory, label_studio: Server) -> None:
    """Let people label the open round in Label Studio.

    Makes the project there if it is missing, and adds the tasks that it does not have.
    """
    with projects.Project.open(directory) as project:
        push_round(project, label_studio)


def push_round(project: projects.Project, url: str) -> None:
    """Push the open round, and say what was added."""
    pushed = studio.push(project, url, os.environ.get(studio.TOKEN, ""))
    address = f"{url.rstrip('/')}/projects/{pushed.project}"
    console.print(f"{escape(address)}: {pushed.added} tasks added, {pushed.there} were there", soft_wrap=True)
