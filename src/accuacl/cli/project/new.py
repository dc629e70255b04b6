"""`accuacl project new`."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from accuacl.base.errors import InputError
from accuacl.cli.options import TextColumn, with_settings
from accuacl.cli.project.options import Directory, Images, Texts, Vectors
from accuacl.cli.project.pools import print_added, read_pool
from accuacl.cli.screen import console, drawn
from accuacl.labeling.project import Project, ProjectSettings, make

NO_OPTION = ("kind", "digest")  # settings that follow from others


@with_settings(ProjectSettings, without=NO_OPTION, defaults=True)
def new(
    directory: Directory,
    *,
    images: Images = None,
    vectors: Vectors = None,
    texts: Texts = None,
    column: TextColumn = "text",
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
    names = [name for name in classes.split(",") if name.strip()]
    with drawn() as draw:
        source = read_pool(images, vectors, texts, column, draw)
        if not source.names:
            raise InputError(f"{source.place} has nothing to label; {len(source.bad)} files could not be read.")
        task = Project.begin(directory, make(chosen | {"kind": source.kind}), names, source)
        print_added(task, directory)
    console.print(f"next: [bold]accuacl project serve {escape(str(directory))}[/bold]", soft_wrap=True)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise InputError(f"--{name} is {text!r}; give numbers like 0.485,0.456,0.406.") from None
