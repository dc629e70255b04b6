"""What `new` and `add` share: read a task's pool, and say what was added."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.cli.screen import console
from accuacl.labeling.project import NewItems, TaskInfo, Tasks, read_images, read_texts, read_vectors

SHOWN = 20  # files that could not be read, by name


def read_pool(
    images: Path | None, vectors: Path | None, texts: Path | None, column: str, on_progress: OnProgress
) -> NewItems:
    """What one of --images, --vectors and --texts names."""
    if sum(given is not None for given in (images, vectors, texts)) != 1:
        raise InputError("give one of --images FOLDER, --vectors FILE.parquet and --texts FILE.")
    if images is not None:
        return read_images(images, on_progress)
    return read_vectors(vectors) if vectors is not None else read_texts(texts or Path(), column)


def print_added(task: TaskInfo, directory: Path) -> None:
    """Say what the task has, and which files were left out."""
    console.print(f"task {task.index + 1}: {task.count} {task.kind}")
    for name, why in list(task.bad.items())[:SHOWN]:
        console.print(f"[yellow]left out:[/yellow] {escape(name)}: {escape(why)}", soft_wrap=True)
    if len(task.bad) > SHOWN:
        more, file = len(task.bad) - SHOWN, Tasks(directory).folder_of(task.index)
        console.print(f"[yellow]left out:[/yellow] {more} more, named in {escape(str(file))}")
