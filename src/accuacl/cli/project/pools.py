"""What `new` and `add` share: read a task's pool, and say what was added."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.cli.screen import console
from accuacl.labeling.project import (
    NewItems,
    Project,
    TableOptions,
    TaskInfo,
    Tasks,
    read_images,
    read_like,
    read_table,
    read_texts,
    read_vectors,
)

NO_OPTIONS = TableOptions()
SHOWN = 20  # files that could not be read, by name


@dataclass(frozen=True)
class Given:
    """What was given on the command line: one path of these."""

    images: Path | None
    vectors: Path | None
    texts: Path | None
    table: Path | None
    column: str  # of texts
    options: TableOptions = NO_OPTIONS


def read_pool(given: Given, on_progress: OnProgress, project: Project | None = None) -> NewItems:
    """What one of --images, --vectors, --texts and --table names. project: the one that it is added to."""
    if sum(path is not None for path in (given.images, given.vectors, given.texts, given.table)) != 1:
        raise InputError("give one of --images FOLDER, --vectors FILE.parquet, --texts FILE and --table FILE.")
    if given.table is None and given.options != NO_OPTIONS:
        raise InputError("--id-column, --label-column and --ignore go with --table; leave them out.")
    if given.images is not None:
        return read_images(given.images, on_progress)
    if given.vectors is not None:
        return read_vectors(given.vectors)
    if given.texts is not None:
        return read_texts(given.texts, given.column)
    assert given.table is not None
    if project is not None and project.settings.kind == "tables":
        return read_like(project.tasks, "tables", given.table, given.column)
    return read_table(given.table, given.options)


def print_added(task: TaskInfo, directory: Path) -> None:
    """Say what the task has, and which files were left out."""
    console.print(f"task {task.index + 1}: {task.count} {'rows' if task.kind == 'tables' else task.kind}")
    for name, why in list(task.bad.items())[:SHOWN]:
        console.print(f"[yellow]left out:[/yellow] {escape(name)}: {escape(why)}", soft_wrap=True)
    if len(task.bad) > SHOWN:
        more, file = len(task.bad) - SHOWN, Tasks(directory).folder_of(task.index)
        console.print(f"[yellow]left out:[/yellow] {more} more, named in {escape(str(file))}")
