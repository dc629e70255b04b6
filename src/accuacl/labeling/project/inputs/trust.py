"""Whose Python may run: a project names a Python file as its model, and a project from elsewhere could name any.

A file that the user has given to `project new`, or trusted once with --trust-code, is remembered in the user's own
folder, by its path and what is in it: `$XDG_STATE_HOME/accuacl/trusted`, a line each.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, reading, writing
from accuacl.labeling.project.settings import ProjectSettings


def trust(settings: ProjectSettings) -> None:
    """Let the project's own model run on this machine, for this user."""
    if not settings.own or _line(settings) in _trusted():
        return
    make_folder(_file().parent)
    with writing(_file()), _file().open("a") as file:
        file.write(f"{_line(settings)}\n")


def check(settings: ProjectSettings) -> None:
    """Refuse a model whose Python file the user has not trusted."""
    if settings.own and _line(settings) not in _trusted():
        file = settings.model.rpartition(":")[0]
        raise InputError(
            f"this project runs the Python file {file}, which you have not trusted on this machine; read it, and then "
            "give --trust-code once."
        )


def _line(settings: ProjectSettings) -> str:
    """The file by its path and its digest, which `backbones` compares with what is in it."""
    return hashlib.sha256(f"{settings.model}\0{settings.weights}\0{settings.digest}".encode()).hexdigest()


def _trusted() -> set[str]:
    with reading(_file()):
        return set(_file().read_text().split()) if _file().exists() else set()


def _file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "accuacl" / "trusted"
