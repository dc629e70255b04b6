"""`accuacl project`: people label, a model learns."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import typer
from rich.markup import escape
from rich.table import Table

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.cli.app import app, console, progress
from accuacl.experiment import LabelsPending
from accuacl.labeling.label_studio.answers import Pulled
from accuacl.labeling.label_studio.link import TOKEN
from accuacl.labeling.label_studio.sync import pull as pull_from
from accuacl.labeling.label_studio.sync import push as push_to
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.intervals import Estimate
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import Settings, make
from accuacl.labeling.project.source import Source
from accuacl.labeling.project.tables import read_texts, read_vectors
from accuacl.labeling.project.tasks import TaskInfo, Tasks

commands = typer.Typer(no_args_is_help=True, help="People label, a model learns: projects.")
app.add_typer(commands, name="project")

Dir = Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")]
Images = Annotated[Path | None, typer.Option(help="A folder of images.")]
Vectors = Annotated[Path | None, typer.Option(help="A Parquet file: `id`, and `embedding` or columns of numbers.")]
Texts = Annotated[Path | None, typer.Option(help="A .csv file or JSON lines.")]
Column = Annotated[str, typer.Option(help="The column with the texts.")]
Server = Annotated[
    str, typer.Option("--label-studio", metavar="URL", help=f"The server; the token is taken from {TOKEN}.")
]
NOT_ASKED = ("kind", "digest")  # settings that follow from others


def new(
    directory: Path,
    *,
    images: Path | None,
    vectors: Path | None,
    texts: Path | None,
    column: str,
    classes: str,
    **given: Any,
) -> None:
    """Start a project with the pool of its first task."""
    chosen = {key: value for key, value in given.items() if value is not None}
    for name in ("mean", "std"):
        if name in chosen:
            chosen[name] = _numbers(name, chosen[name])
    names = [name for name in classes.split(",") if name.strip()]
    with _noting() as tell:
        source = _read(images, vectors, texts, column, tell)
        if not source.names:
            raise InputError(f"{source.place} has nothing to label; {len(source.bad)} files could not be read.")
        task = Project.begin(directory, make(chosen | {"kind": source.kind}), names, source)
        _tell_added(task, directory)
    console.print(f"next: [bold]accuacl project serve {escape(str(directory))}[/bold]", soft_wrap=True)


def _options() -> inspect.Signature:
    """The command's options: its own, and one for every setting."""

    def option(name: str, annotation: Any, default: Any) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    known = "Classes known from the start, like cat,dog; people can add more."
    options = [
        inspect.Parameter("directory", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Dir),
        option("images", Images, None),
        option("vectors", Vectors, None),
        option("texts", Texts, None),
        option("column", Column, "text"),
        option("classes", Annotated[str, typer.Option(help=known)], ""),
    ]
    for name, field in Settings.model_fields.items():
        if name in NOT_ASKED:
            continue
        kind = field.annotation if field.annotation in (int, float, bool) else str
        flags = ("--finetune",) if kind is bool else ()
        shown = "" if get_origin(field.annotation) is tuple or field.default == "" else f" [{field.default}]"
        about = typer.Option(*flags, help=f"{field.description}{'' if kind is bool else escape(shown)}")
        options.append(option(name, Annotated[kind | None, about], None))
    return inspect.Signature(options)


new.__signature__ = _options()  # type: ignore[attr-defined]
new.__annotations__ = {p.name: p.annotation for p in new.__signature__.parameters.values()}  # type: ignore[attr-defined]
commands.command()(new)


@commands.command()
def add(
    directory: Dir, images: Images = None, vectors: Vectors = None, texts: Texts = None, column: Column = "text"
) -> None:
    """Add the next task's pool; at any time, also while people label. Images that are known already are left out."""
    with Project.open(directory) as project, _noting() as tell:
        _tell_added(project.add(_read(images, vectors, texts, column, tell)), directory)


@commands.command()
def train(directory: Dir) -> None:
    """Do what can be done now: close a complete round, train, choose the next batch.

    Exit code 75: labels are missing, so there is nothing to do yet.
    """
    with Project.open(directory) as project, _noting() as tell:
        state = project.advance(tell)
    if state.waiting == "labels":
        raise LabelsPending(state.text)
    console.print(escape(state.text))


@commands.command()
def status(directory: Dir) -> None:
    """What the project is waiting for, what people have done, and how good the model is."""
    with Project.open(directory) as project:
        state, estimates = project.state(), project.estimates()
        names = {one.id: one.name for one in project.store.classes()}
        people = {one.id: one.name for one in project.store.people()}
    console.print(escape(state.text))
    if state.tasks:
        console.print(f"labels of task {state.task + 1}: {state.used} of {state.budget}; {state.tasks} tasks")
    if estimates.tasks:
        table = Table("task", "held out", "accuracy when learned", "now", "forgetting", title="Estimates (%), 95 %")
        for one in estimates.tasks:
            table.add_row(str(one.task + 1), str(one.now.count), *map(_shown, (one.learned, one.now, one.forgetting)))
        table.add_row("mean", "", "", _shown(estimates.accuracy), _shown(estimates.forgetting))
        console.print(table)
    for title, counts, called in (
        ("class", estimates.labels_by_class, names),
        ("person", estimates.labels_by_person, people),
    ):
        if counts:
            said = ", ".join(f"{escape(called[id])} {count}" for id, count in counts.items())
            console.print(f"labels by {title}: {said}")


@commands.command()
def serve(
    directory: Dir,
    host: Annotated[str, typer.Option(help="Address to listen on; anything but this machine's is said loudly.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: any that is free.")] = 8765,
    person: Annotated[
        list[str] | None, typer.Option(help="Print a new login link for this person; an old one ends. May be repeated.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Another name the page may be opened by; may be repeated.")
    ] = None,
    cert: Annotated[Path | None, typer.Option(help="Certificate, for HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="Its key.")] = None,
) -> None:
    """Serve the page on which people label, and train whenever a round is complete."""
    try:
        from accuacl.labeling.web.serve import serve as run
    except ModuleNotFoundError as error:
        raise InputError(f"the page needs the extra `web` ({error}); install accuacl[web].") from None
    with Project.open(directory) as project:
        run(project, host=host, port=port, people=person or (), allow_host=allow_host or (), cert=cert, key=key)


@commands.command()
def person(
    directory: Dir,
    action: Annotated[Literal["add", "revoke"], typer.Argument(metavar="add|revoke", help="What to do.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="With whom.")],
) -> None:
    """Let someone label: prints their token, this once. Or revoke it: it opens nothing any more, their labels stay."""
    with Project.open(directory) as project:
        if action == "add":
            print(project.store.add_person(name))
        else:
            project.store.revoke(name)


@commands.command()
def export(
    directory: Dir,
    out: Annotated[Path, typer.Option(help="A new folder: labels, the model and a file that loads it.")],
    predict: Annotated[
        Path | None, typer.Option(help="Also the model's predictions for these images, vectors or texts.")
    ] = None,
    column: Column = "text",
) -> None:
    """Write out the labels (CSV and Parquet), the model (safetensors and a loader), and predictions for new data."""
    from accuacl.labeling.project.export import export as write

    with Project.open(directory) as project, _noting() as tell:
        written = write(project, out, predict, column, tell)
    for path in written:
        console.print(f"written: {escape(str(path))}", soft_wrap=True)


@commands.command()
def push(directory: Dir, label_studio: Server) -> None:
    """Let people label the open round in Label Studio: makes the project there, and adds the tasks it does not have."""
    with Project.open(directory) as project:
        _push(project, label_studio)


@commands.command()
def pull(
    directory: Dir,
    label_studio: Server,
    watch: Annotated[bool, typer.Option("--watch", help="Ask again until the round is complete.")] = False,
    train: Annotated[
        bool, typer.Option("--train", help="Train when the round is complete, and push the next; with --watch, go on.")
    ] = False,
    every: Annotated[float, typer.Option(min=1, help="Seconds between questions.")] = 10.0,
    new_classes: Annotated[
        bool, typer.Option("--new-classes", help="A choice that is not known becomes a class.")
    ] = False,
) -> None:
    """Take what people have said in Label Studio since: labels, corrections, and skips, which cost nothing.

    Exit code 2: something was refused; the rest was taken.
    """
    told: set[str] = set()
    with Project.open(directory) as project, _noting() as bar:

        def tell(pulled: Pulled) -> None:
            for title, said in (("refused", pulled.refused), ("left", pulled.left)):
                for text in dict.fromkeys(said):
                    if text not in told:
                        console.print(f"[yellow]{title}:[/yellow] {escape(text)}", soft_wrap=True)
                told.update(said)
            if pulled.labelled or pulled.skipped or pulled.corrected or not watch:
                console.print(f"{pulled.labelled} labelled, {pulled.skipped} skipped, {pulled.corrected} corrected")
            bar(Progress(0.0, 1.0, f"waiting for labels; {project.state().text}"))

        while True:
            token = os.environ.get(TOKEN, "")
            pulled = pull_from(project, label_studio, token, watch, new_classes=new_classes, every=every, tell=tell)
            state = project.state()
            if not train or not state.ready:
                break
            state = project.advance(bar)
            if state.waiting != "labels":
                break
            _push(project, label_studio)
            if not watch:
                break
    console.print(escape(state.text) + (" Next: [bold]accuacl project train[/bold]" if state.ready else ""))
    if pulled.refused:
        raise typer.Exit(2)


def _push(project: Project, url: str) -> None:
    pushed = push_to(project, url, os.environ.get(TOKEN, ""))
    place = f"{url.rstrip('/')}/projects/{pushed.project}"
    console.print(f"{escape(place)}: {pushed.added} tasks added, {pushed.there} were there", soft_wrap=True)


def _read(images: Path | None, vectors: Path | None, texts: Path | None, column: str, tell: OnProgress) -> Source:
    if sum(given is not None for given in (images, vectors, texts)) != 1:
        raise InputError("give one of --images FOLDER, --vectors FILE.parquet and --texts FILE.")
    if images is not None:
        return read_images(images, tell)
    return read_vectors(vectors) if vectors is not None else read_texts(texts or Path(), column)


def _tell_added(task: TaskInfo, directory: Path) -> None:
    console.print(f"task {task.index + 1}: {task.count} {task.kind}")
    for name, why in list(task.bad.items())[:20]:
        console.print(f"[yellow]left out:[/yellow] {escape(name)}: {escape(why)}", soft_wrap=True)
    if len(task.bad) > 20:
        console.print(
            f"[yellow]left out:[/yellow] {len(task.bad) - 20} more, named in {Tasks(directory).place(task.index)}"
        )


@contextmanager
def _noting() -> Iterator[OnProgress]:
    """Progress drawn, warnings as notes."""
    with warnings.catch_warnings(), progress() as bar:
        warnings.showwarning = lambda message, *_, **__: bar.console.print(
            f"[yellow]note:[/yellow] {escape(str(message))}"
        )
        job = bar.add_task("starting", total=1.0)
        yield lambda progress: bar.update(job, completed=progress.share, description=escape(progress.text))


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--{name} is {text!r}; give numbers like 0.485,0.456,0.406.") from None


def _shown(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"
