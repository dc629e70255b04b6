"""What `new` and `add` share: read a task's pool, and say what was added."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.cli.screen import console
from accuacl.labeling import project as projects

SHOWN = 20  # files that could not be read, by name


@dataclass(frozen=True)
class Given:
    """What was given on the command line: one path of these."""

    images: Path | None
    vectors: Path | None
    texts: Path | None
    table: Path | None
    column: str  # of texts
    task: str | None  # the column that names the task of each row; "": none, None: `task` if it is there
    options: projects.TableOptions


def read_pools(
    given: Given, on_progress: OnProgress, project: projects.Project | None = None
) -> list[projects.NewItems]:
    """What one of --images, --vectors, --texts and --table names, for each task. project: the one it is added to."""
    paths = {"images": given.images, "vectors": given.vectors, "texts": given.texts, "tables": given.table}
    kinds = [kind for kind, path in paths.items() if path is not None]
    if len(kinds) != 1:
        raise InputError("give one of --images FOLDER, --vectors FILE.parquet, --texts FILE and --table FILE.")
    if given.table is None and (given.options.id or given.options.ignored):
        raise InputError("--id-column and --ignore go with --table; leave them out.")
    named = [column for column in (given.options.id, given.options.label, given.task) if column]
    if len(set(named)) < len(named):
        raise InputError("--id-column, --label-column and --task-column must be different columns; name each once.")
    if given.images is not None and given.options.label:
        raise InputError("images have no column of labels; give their labels with `accuacl project label --from FILE`.")
    if given.images is not None and given.task:
        raise InputError("images have no columns; leave out --task-column, and put each task into a folder task-...")
    kind, path = kinds[0], paths[kinds[0]]
    assert path is not None
    pools: list[projects.NewItems] = []
    for part in projects.task_paths(path, images=kind == "images"):
        pools += projects.split_by_task(_read(kind, part, given, on_progress, project))
    return pools


def _read(
    kind: str, path: Path, given: Given, on_progress: OnProgress, project: projects.Project | None
) -> projects.NewItems:
    label = given.options.label
    if project is not None and project.settings.kind == kind:
        if kind == "tables" and label not in ("", first := project.tasks.schema().options.label):
            raise InputError(f"the first table has its labels in {first or 'no column'!r}; give that --label-column.")
        return projects.read_like(project.tasks, kind, path, given.column, on_progress, given.task, label)
    if kind == "images":
        return projects.read_images(path, on_progress)
    if kind == "vectors":
        return projects.read_vectors(path, given.task, label)
    if kind == "texts":
        return projects.read_texts(path, given.column, given.task, label)
    return projects.read_table(path, replace(given.options, task=given.task))


def print_added(task: projects.TaskInfo, items: projects.NewItems, directory: Path) -> None:
    """Say what the task has, what a column calls it, and which files were left out."""
    called = f" ({escape(str(items.arrived[0]))})" if items.arrived else ""
    console.print(f"task {task.index + 1}{called}: {task.count} {'rows' if task.kind == 'tables' else task.kind}")
    _print_left_out(list(task.bad.items())[:SHOWN])
    if len(task.bad) > SHOWN:
        more, file = len(task.bad) - SHOWN, projects.Tasks(directory).folder_of(task.index)
        console.print(f"[yellow]left out:[/yellow] {more} more, named in {escape(str(file))}")


def print_unreadable(tasks: projects.Tasks, task: projects.TaskInfo) -> None:
    """Name the images that were found to be broken when they were embedded."""
    broken = projects.unreadable_images(tasks, task)
    _print_left_out([(name, projects.why_unreadable(task, name)) for name in broken[:SHOWN]])
    if len(broken) > SHOWN:
        console.print(f"[yellow]left out:[/yellow] {len(broken) - SHOWN} more images of task {task.index + 1}")


def _print_left_out(files: Sequence[tuple[str, str]]) -> None:
    for name, why in files:
        console.print(f"[yellow]left out:[/yellow] {escape(name)}: {escape(why)}", soft_wrap=True)
