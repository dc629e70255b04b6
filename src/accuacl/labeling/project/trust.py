"""A user's own Python files in a project, its model and its plugins: the files that it began with, trusted before run.

A project's files may come from somebody else. What a user names in `project new` is trusted from then on; any other
file is run only after the user has said `--trust-code` once, on this machine, for the file as it is now.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, reading, reason, writing
from accuacl.strategies import load_plugins

if TYPE_CHECKING:
    from accuacl.labeling.project.settings import ProjectSettings


def named_plugins(paths: Iterable[str | Path]) -> dict[str, str]:
    """Run the Python files that the user names; return {whole path: digest}."""
    files = [Path(path).expanduser().resolve() for path in paths]
    load_plugins(files)
    return {str(path): digest_of(path) for path in files}


def load_project_plugins(settings: ProjectSettings) -> None:
    """Run the project's own Python files, once in a process; they must be trusted, and be those that it began with."""
    if settings.plugins_loaded:
        return
    check_trusted(settings)
    load_plugins(map(Path, settings.plugins))
    type(settings)(**settings.model_dump())  # only now can names that the plugins register be checked


def trust_code(settings: ProjectSettings) -> None:
    """Let the project's own model and plugins run on this machine, for this user, now and later."""
    if new := [line for line in _lines(settings).values() if line not in _trusted()]:
        make_folder(_trust_file().parent)
        with writing(_trust_file()), _trust_file().open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in new)


def check_trusted(settings: ProjectSettings) -> None:
    """Refuse a model or a plugin whose Python file the user has not trusted, and a plugin that has changed."""
    for path, digest in settings.plugins.items():
        if digest_of(Path(path)) != digest:
            raise InputError(f"{path} has changed since this project began; restore it.")
    for path, line in _lines(settings).items():
        if line not in _trusted():
            what = f"this project runs the Python file {path}, which you have not trusted on this machine"
            raise InputError(f"{what}; read it, and then give --trust-code once.")


def digest_of(*paths: Path) -> str:
    """Return a hash of files: a project goes on only with those that it began with."""
    total = hashlib.sha256()
    for path in paths:
        try:
            total.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            why = f"{path} cannot be read: {reason(error)}"
            raise InputError(f"{why}; restore it, or give a model that exists.") from None
    return total.hexdigest()


def _lines(settings: ProjectSettings) -> dict[str, str]:
    """Return {Python file: the line that records trust in it, a hash of its path and digest}."""
    parts = {path: f"plugin\0{path}\0{digest}" for path, digest in settings.plugins.items()}
    if settings.own:
        parts[settings.model.rpartition(":")[0]] = f"{settings.model}\0{settings.weights}\0{settings.digest}"
    return {path: hashlib.sha256(part.encode()).hexdigest() for path, part in parts.items()}


def _trusted() -> set[str]:
    with reading(_trust_file()):
        return set(_trust_file().read_text(encoding="utf-8").split()) if _trust_file().exists() else set()


def _trust_file() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "accuacl" / "trusted"
