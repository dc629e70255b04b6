"""The directory of a new project."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite, make_folder, reading, writing


def check_empty(directory: Path) -> None:
    """InputError: something is there already."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; choose a directory for the project.")
    with reading(directory):
        empty = not directory.exists() or not any(directory.iterdir())
    if all((directory / name).exists() for name in ("config.json", "labels.sqlite")):
        typed = shlex.quote(str(directory))
        raise InputError(
            f"{directory} is a project already; add data with `accuacl project add {typed}`, label with "
            f"`accuacl project serve {typed}`, or choose another directory."
        )
    if not empty:
        raise InputError(f"{directory} is not empty; choose another directory for the project.")


@contextlib.contextmanager
def whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """A directory beside this one, which takes its place if nothing fails and vanishes otherwise."""
    check_empty(directory)
    directory = directory.resolve()
    make_folder(directory.parent)
    aside = directory.parent / f".{directory.name}.new-{secrets.token_hex(4)}"
    try:
        yield aside
        check_empty(directory)
        with writing(directory):
            os.rename(aside, directory)
    except CannotWrite as error:
        raise error.at(directory) if error.path.is_relative_to(aside) else error from error.__cause__
    finally:
        shutil.rmtree(aside, ignore_errors=True)
