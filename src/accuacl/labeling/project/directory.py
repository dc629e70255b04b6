"""A project's directory: created completely or not at all, and checked for missing files."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite, make_folder, reading, writing
from accuacl.labeling.project.tasks import Tasks
from accuacl.labeling.store import Store

LABELS = "labels.sqlite"


def check_free(directory: Path) -> None:
    """Raise InputError if the directory holds anything."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory} is a file; choose a directory for the project.")
    with reading(directory):
        empty = not directory.exists() or not any(directory.iterdir())
    if all((directory / name).exists() for name in ("config.json", LABELS)):
        typed = shlex.quote(str(directory))
        raise InputError(
            f"{directory} is already a project; add data with `accuacl project add {typed}`, label with "
            f"`accuacl project serve {typed}`, or choose another directory."
        )
    if not empty:
        raise InputError(f"{directory} is not empty; choose another directory for the project.")


@contextlib.contextmanager
def whole_or_not_at_all(directory: Path) -> Iterator[Path]:
    """A directory beside this one, which takes its place if nothing fails and vanishes otherwise."""
    check_free(directory)
    directory = directory.resolve()
    make_folder(directory.parent)
    aside = directory.parent / f".{directory.name}.new-{secrets.token_hex(4)}"
    try:
        yield aside
        check_free(directory)
        with writing(directory):
            os.rename(aside, directory)
    except CannotWrite as error:
        raise error.at(directory) if error.path.is_relative_to(aside) else error from error.__cause__
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def check_tasks(tasks: Tasks, store: Store) -> None:
    """Refuse a project that has lost tasks, or their whole folder."""
    status, count, lost = store.status(), len(tasks.all()), tasks.folder
    if lost.is_dir():
        if status is None or status.task < count:
            return
        lost = tasks.folder_of(count) / "task.json"
    elif status is None and store.people():  # made on the page by accuacl 0.2, and still without data
        return
    raise InputError(f"{lost} is missing; restore it from a copy.")


def copied_labels(directory: Path) -> tempfile.TemporaryDirectory[str]:
    """A copy of the label store, because SQLite needs to write next to a file even to read it."""
    folder = tempfile.TemporaryDirectory()
    with reading(directory / LABELS):
        for path in directory.glob(f"{LABELS}*"):
            shutil.copyfile(path, Path(folder.name) / path.name)
    return folder
