"""`accuacl project new`, `add` and `relocate`: the data of a project."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.cli.options import OptionWords, Plugin, TextColumn, with_settings
from accuacl.cli.project import LEFT_OUT_SHOWN, Directory, command, print_left_out, printable
from accuacl.cli.screen import console, drawn
from accuacl.experiments import data
from accuacl.labeling import project as projects
from accuacl.labeling.store import alike_pairs
from accuacl.strategies import load_plugins, split_options

ALIKE_SHOWN = 10  # pairs of classes with similar names
MISSING_SHOWN = 3  # names of images that are missing
# Settings that follow from others, or have an option elsewhere.
NO_OPTION = ("kind", "digest", "ridge_by", "options", "plugins")
# Settings whose default depends on the data, which their help says after "Unset:".
UNSET_SAYS = tuple(
    name for name, field in projects.ProjectSettings.model_fields.items() if "Unset:" in str(field.description)
)

Images = Annotated[Path | None, typer.Option(help="A folder of images, or one subfolder per task: task-1, task-2, ...")]
Files = Annotated[
    Path | None,
    typer.Option(
        help="A folder of files of any kind, such as sounds; needs --model FILE.py:FUNCTION, which turns a path into a "
        "vector."
    ),
]
TaskColumn = Annotated[
    str | None,
    typer.Option(help="The column that names the task of each row. Unset: `task`, if there is one; '': none."),
]
Vectors = Annotated[
    Path | None, typer.Option(help="A Parquet file: `id`, and lists in `embedding` or columns of numbers.")
]
TableFile = Annotated[
    Path | None,
    typer.Option(help="A table with columns of any kind: .csv, .tsv or Parquet (.csv.xz, .csv.gz and .csv.bz2 too)."),
]
Texts = Annotated[
    Path | None,
    typer.Option(help="Texts: a .txt file with a text in each line, or a .csv, .tsv, .json, .jsonl or Parquet file."),
]
LabelColumn = Annotated[
    str,
    typer.Option(help="A column of existing labels in texts, vectors or tables; learned at once, outside the budget."),
]


@with_settings(projects.ProjectSettings, without=NO_OPTION, varying=UNSET_SAYS)
def new(
    directory: Directory,
    *,
    images: Images = None,
    files: Files = None,
    vectors: Vectors = None,
    texts: Texts = None,
    table: TableFile = None,
    column: TextColumn = "text",
    task_column: TaskColumn = None,
    id_column: Annotated[
        str, typer.Option(help="The table's column that names the rows; the model does not see it. Unset: `id`.")
    ] = "",
    label_column: LabelColumn = "",
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column of the table to leave out; may be repeated.")
    ] = None,
    classes: Annotated[
        str, typer.Option(help="Classes known from the start, such as cat,dog; people can add more.")
    ] = "",
    plugin: Plugin = None,
    option: OptionWords = None,
    **given: Any,
) -> None:
    """Start a project with the pool of its first task."""
    projects.check_free(directory)
    load_plugins(plugin or ())  # before the data are read
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in ("mean", "std"):
        if name in chosen:
            chosen[name] = _numbers(name, chosen[name])
    if plugin:
        chosen["plugins"] = plugin
    if option:
        chosen["options"] = split_options(option)
    names = classes.split(",") if classes.strip() else []
    if not all(name.strip() for name in names):
        raise InputError(f"--classes is {classes!r}, which has a class without a name; give names like cat,dog.")
    with drawn() as draw:
        paths = {"images": images, "files": files, "vectors": vectors, "texts": texts, "tables": table}
        how = projects.TableOptions(id_column, label_column, tuple(ignore or ()), task_column)
        pools = read_pools(paths, column, how, draw)
        for source in pools:
            if not source.names:
                raise InputError(source.none_to_label())
        embeddings = pools[0].kind == "vectors" and pools[0].columns is None
        settings = projects.make(chosen | {"kind": pools[0].kind}, embeddings)
        _warn_of_similar([*names, *(label for pool in pools for label in pool.labels or () if label)])
        for task, pool in zip(projects.Project.begin(directory, settings, names, *pools), pools, strict=True):
            print_added(task, pool, directory)
    if pools[0].kind == "tables":
        schema = projects.Tasks(directory).schema()
        for line in schema.summary():
            console.print(escape(line), soft_wrap=True)
        _warn_of_answers(schema.inputs(), "give --ignore {}")
    if pools[0].kind == "vectors":
        console.print(f"taken: {escape(pools[0].describe_columns())}", soft_wrap=True)
        _warn_of_answers(pools[0].columns or [], "leave it out of the file")
    console.print(f"next: {command('serve', directory)}", soft_wrap=True)


def add(
    directory: Directory,
    images: Images = None,
    files: Files = None,
    vectors: Vectors = None,
    texts: Texts = None,
    table: TableFile = None,
    column: TextColumn = "text",
    task_column: TaskColumn = None,
    label_column: LabelColumn = "",
) -> None:
    """Add the next task's pool; at any time, also while people label.

    Images and texts that the project has already are left out. A table needs the columns of the first task's.
    """
    with projects.Project.open(directory) as project, drawn() as draw:
        paths = {"images": images, "files": files, "vectors": vectors, "texts": texts, "tables": table}
        how = projects.TableOptions(label=label_column, task=task_column)
        pools = read_pools(paths, column, how, draw, project)
        added = project.add_each(pools)
        for task, items in added:
            print_added(task, items, directory)
        status = project.state().status
    if status is not None and status.open:
        console.print(f"{'it begins' if len(added) == 1 else 'they begin'} when the earlier tasks are done")
    else:
        console.print(f"next: {command('serve', directory)}", soft_wrap=True)


def relocate(
    directory: Directory,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The folder or file that the data were in.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Where it is now.")],
) -> None:
    """Tell the project where moved data are now: a folder of images, or one with those of several tasks.

    Names below the folder must be unchanged. A running server continues with the new location. What was uploaded on
    the page is in the project's directory and moves with it.
    """
    with projects.Project.open(directory) as project:
        for moved in projects.relocate_data(project.tasks, old, new):
            console.print(f"task {moved.task + 1}: {escape(moved.place)}", soft_wrap=True)
            if moved.missing:
                more = ", ..." if len(moved.missing) > MISSING_SHOWN else ""
                names = escape(printable(", ".join(moved.missing[:MISSING_SHOWN]))) + more
                console.print(f"[yellow]missing there:[/yellow] {len(moved.missing)} images: {names}", soft_wrap=True)


def read_pools(
    paths: Mapping[str, Path | None],
    column: str,
    options: projects.TableOptions,
    on_progress: OnProgress,
    project: projects.Project | None = None,
) -> list[projects.NewItems]:
    """The items of each task, from the one path that was given.

    paths: by kind of data. column: of texts. project: the one that the items are added to.
    """
    given = [(kind, path) for kind, path in paths.items() if path is not None]
    if len(given) != 1:
        raise InputError(
            "give one of --images FOLDER, --vectors FILE.parquet, --texts FILE, --table FILE and --files FOLDER."
        )
    kind, path = given[0]
    if kind != "tables" and (options.id or options.ignored):
        raise InputError("--id-column and --ignore go with --table; leave them out.")
    named = [name for name in (options.id, options.label, options.task) if name]
    if len(set(named)) < len(named):
        raise InputError("--id-column, --label-column and --task-column must be different columns; name each once.")
    folder = kind in ("images", "files")
    if folder and options.label:
        raise InputError(
            f"{kind} have no column of labels; import their labels with `accuacl project label --from FILE`."
        )
    if folder and options.task:
        raise InputError(
            f"{kind} have no columns; leave out --task-column, and put each task into a folder: task-1, task-2."
        )
    pools: list[projects.NewItems] = []
    for part in projects.task_paths(path, images=folder):
        pools += projects.split_by_task(_read(kind, part, column, options, on_progress, project))
    return pools


def _read(
    kind: str,
    path: Path,
    column: str,
    options: projects.TableOptions,
    on_progress: OnProgress,
    project: projects.Project | None,
) -> projects.NewItems:
    if project is not None and project.settings.kind == kind:
        if kind == "tables" and options.label not in ("", first := project.tasks.schema().options.label):
            raise InputError(f"the first table has its labels in {first or 'no column'!r}; give that --label-column.")
        return projects.read_like(project.tasks, kind, path, column, options, on_progress)
    if kind == "images":
        return projects.read_images(path, on_progress)
    if kind == "files":
        return projects.read_files(path)
    if kind == "vectors":
        return projects.read_vectors(path, options.task, options.label)
    if kind == "texts":
        return projects.read_texts(path, column, options.task, options.label)
    return projects.read_table(path, options)


def print_added(task: projects.TaskInfo, items: projects.NewItems, directory: Path) -> None:
    """Say what the task has, what a column calls it, and which files were left out."""
    called = f" ({escape(str(items.arrived[0]))})" if items.arrived else ""
    console.print(f"task {task.index + 1}{called}: {task.count} {'rows' if task.kind == 'tables' else task.kind}")
    print_left_out(list(task.bad.items())[:LEFT_OUT_SHOWN])
    if len(task.bad) > LEFT_OUT_SHOWN:
        more, file = len(task.bad) - LEFT_OUT_SHOWN, projects.Tasks(directory).folder_of(task.index)
        console.print(f"[yellow]left out:[/yellow] {more} more, named in {escape(str(file))}")


def _warn_of_similar(names: list[str]) -> None:
    """Warn of classes whose names may mean one class."""
    for first, other in alike_pairs(names)[:ALIKE_SHOWN]:
        text = f"the classes {first!r} and {other!r} look alike; did you mean one class?"
        console.print(f"[yellow]warning:[/yellow] {escape(text)}", soft_wrap=True)


def _warn_of_answers(columns: list[str], otherwise: str) -> None:
    """Warn of columns that the model learns from but that may hold the answer."""
    for name in columns:
        if name.lower() in data.LABELS:
            typed = shlex.quote(name)
            text = f"the model learns from the column {name!r}, which looks like the answers; start again with"
            text += f" --label-column {typed} to take them as labels, or {otherwise.format(typed)}."
            console.print(f"[yellow]warning:[/yellow] {escape(text)}", soft_wrap=True)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"--{name} is {text!r}; give numbers like 0.485,0.456,0.406.") from None
