"""`accuacl project person`."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from accuacl.cli.project.options import Directory
from accuacl.labeling.project import Project


def person(
    directory: Directory,
    action: Annotated[Literal["add", "revoke"], typer.Argument(metavar="add|revoke", help="What to do.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")],
) -> None:
    """Let someone label, or end their access.

    `add` prints the person's access token, which is not shown again. `revoke` ends it; their labels stay.
    """
    with Project.open(directory) as project:
        if action == "add":
            print(project.store.add_person(name))
        else:
            project.store.revoke(name)
