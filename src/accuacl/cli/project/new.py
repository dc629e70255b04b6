"""`accuacl project new`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import typer
from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.cli.options import TextColumn, with_settings
from accuacl.cli.project.options import Directory, Images, LabelColumn, TableFile, TaskColumn, Texts, Vectors, command
from accuacl.cli.project.pools import Given, print_added, read_pools
from accuacl.cli.screen import console, drawn
from accuacl.experiments import data
from accuacl.labeling import project as projects
from accuacl.labeling.store import alike_pairs

SHOWN = 10  # pairs of classes that look alike
NO_OPTION = ("kind", "digest", "ridge_by")  # settings that follow from others, or are of earlier versions


@with_settings(projects.ProjectSettings, without=NO_OPTION, defaults=True, varying=("head", "epochs", "lr"))
def new(
    directory: Directory,
    *,
    images: Images = None,
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
    **given: Any,
) -> None:
    """Start a project with the pool of its first task."""
    chosen = {name: value for name, value in given.items() if value is not None}
    for name in ("mean", "std"):
        if name in chosen:
            chosen[name] = _numbers(name, chosen[name])
    names = classes.split(",") if classes.strip() else []
    if not all(name.strip() for name in names):
        raise InputError(f"--classes is {classes!r}, which has a class without a name; give names like cat,dog.")
    with drawn() as draw:
        how = projects.TableOptions(id_column, label_column, tuple(ignore or ()))
        pools = read_pools(Given(images, vectors, texts, table, column, task_column, how), draw)
        for source in pools:
            if not source.names:
                raise InputError(source.none_to_label())
        embeddings = pools[0].kind == "vectors" and pools[0].columns is None
        settings = projects.make(chosen | {"kind": pools[0].kind}, embeddings)
        _name_alike([*names, *(label for pool in pools for label in pool.labels or () if label)])
        for task, pool in zip(projects.Project.begin(directory, settings, names, *pools), pools, strict=True):
            print_added(task, pool, directory)
    if pools[0].kind == "tables":
        schema = projects.Tasks(directory).schema()
        for line in schema.summary():
            console.print(escape(line), soft_wrap=True)
        _name_answers(schema.inputs(), "give --ignore {}")
    if pools[0].kind == "vectors":
        console.print(f"taken: {escape(pools[0].describe_columns())}", soft_wrap=True)
        _name_answers(pools[0].columns or [], "leave it out of the file")
    console.print(f"next: {command('serve', directory)}", soft_wrap=True)


def _name_alike(names: list[str]) -> None:
    for first, other in alike_pairs(names)[:SHOWN]:
        said = f"the classes {first!r} and {other!r} look alike; did you mean one class?"
        console.print(f"[yellow]warning:[/yellow] {escape(said)}", soft_wrap=True)


def _name_answers(columns: list[str], otherwise: str) -> None:
    """Warn of columns that the model learns from and that may have what people shall answer."""
    for name in columns:
        if name.lower() in data.LABELS:
            typed = shlex.quote(name)
            said = f"the model learns from the column {name!r}, which looks like the answers; start again with"
            said += f" --label-column {typed} to take them as labels, or {otherwise.format(typed)}."
            console.print(f"[yellow]warning:[/yellow] {escape(said)}", soft_wrap=True)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"--{name} is {text!r}; give numbers like 0.485,0.456,0.406.") from None
