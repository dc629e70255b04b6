"""`accuacl project person`."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from accuacl.base.errors import InputError
from accuacl.cli.project.options import Directory
from accuacl.labeling import project as projects

ACTIONS = ("add", "link", "revoke", "lead", "annotator")


def person(
    directory: Directory,
    action: Annotated[str, typer.Argument(metavar="|".join(ACTIONS), help="What to do.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person's name.")],
) -> None:
    """Let someone label, or end their access.

    `add` and `link` print a token to log in with, which works once, within a week: `add` for someone new, `link` for
    someone who has access. `revoke` ends their access; their labels stay. `lead` and `annotator` set their role: leads
    may also change classes, add data and invite people; the first person of a project is one.
    """
    if action not in ACTIONS:
        raise InputError(f"{action!r} is nothing that can be done with a person; give {', '.join(ACTIONS)}.")
    with projects.Project.open(directory) as project:
        store = project.store
        if action in ("add", "link"):
            print(store.add_person(name) if action == "add" else store.invite(name), flush=True)
            where = f"the page that `accuacl project serve {shlex.quote(str(directory))}` prints the address of"
            print(f"{name} can log in with this token once, within a week, on {where}.", file=sys.stderr)
        elif action == "revoke":
            store.revoke(name)
            print(f"{name} has no access any more; their labels stay.")
            if not any(person.lead and not person.revoked for person in store.people()):
                print("nobody leads the project now; make somebody a lead with `lead NAME`, or `add` someone.")
        else:
            store.set_role(name, lead=action == "lead")
            print(f"{name} is {'a lead' if action == 'lead' else 'an annotator'} now.")
