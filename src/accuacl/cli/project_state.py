"""`accuacl project status`, `train`, `export` and `forget`: what a project has learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer
from rich.columns import Columns
from rich.markup import escape
from rich.table import Table

from accuacl.base.errors import LabelsPending
from accuacl.cli.options import TextColumn, TrustCode
from accuacl.cli.project import (
    LEFT_OUT_SHOWN,
    Directory,
    advance,
    command,
    next_step,
    open_project,
    print_left_out,
)
from accuacl.cli.screen import console, drawn
from accuacl.labeling import project as projects

IN_A_LINE = 12  # classes or people that one line may name
LONGEST_SHOWN = 24  # characters of a name in columns
ITEM = "Names of items, their numbers, or, where these could mean several, '#NUMBER' (in quotes) or TASK:NAME."


def status(directory: Directory) -> None:
    """Show what the project is waiting for, what people have done, and how good the model is."""
    with projects.Project.open(directory, view=True) as project:
        state, estimates = project.state(), project.estimates()
        classes = {label.id: label.name for label in project.store.classes()}
        people = {person.id: person.name for person in project.store.people()}
        checked = projects.measure_quality(project.store)
        budget = projects.describe_budget(project.settings, project.store, state.tasks)
        used = project.store.used(state.task)
        given = projects.describe_given(project.store, project.tasks, state.task)
        console.print(escape(state.text) + _next(state, directory), soft_wrap=True)
        if sample := projects.describe_sample(project.journal):
            console.print(sample, soft_wrap=True)
        for pool in project.tasks.all():
            _print_unreadable(project.tasks, pool)
    if state.tasks:
        of = f"{state.used} of {state.budget}" if state.rounds else str(used)
        console.print(f"labels of task {state.task + 1}: {of}; {state.tasks} task{'s' if state.tasks > 1 else ''}")
    for sentence in given:
        console.print(sentence, soft_wrap=True)
    if estimates.tasks:
        title = "Estimates in %, with 95 % intervals"
        table = Table("task", "held out", "accuracy when learned", "now", "forgetting", title=title)
        for task in estimates.tasks:
            numbers = map(projects.interval_text, (task.learned, task.now, task.forgetting))
            table.add_row(str(task.task + 1), str(task.now.count), *numbers)
        if len(estimates.tasks) > 1:  # one number has one interval
            table.add_row(
                "mean", "", "", projects.interval_text(estimates.accuracy), projects.interval_text(estimates.forgetting)
            )
        console.print(table)
    if estimates.calibration:
        console.print(estimates.calibration, soft_wrap=True)
    if estimates.forecast:
        console.print(f"task {estimates.tasks[-1].task + 1}: {estimates.forecast.text}", soft_wrap=True)
    for sentence in budget:
        console.print(sentence, soft_wrap=True)
    _print_counts("labels by class", {name: estimates.labels_by_class.get(id, 0) for id, name in classes.items()})
    _print_counts("labels by person", {people[id]: count for id, count in estimates.labels_by_person.items()})
    _print_quality(checked, people)


def train(directory: Directory, trust_code: TrustCode = False) -> None:
    """Do what can be done now: close a complete round, train, choose the next batch.

    It says what it has done. Exit code 75: waiting for labels.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        state = advance(project, directory, draw)
    if state.waiting == "labels":
        raise LabelsPending(state.text)
    console.print(escape(state.text))


def export(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="A new folder for the labels, the model and a file that loads it.")],
    predict: Annotated[
        Path | None, typer.Option(help="Also write the model's predictions for these images, vectors, texts or rows.")
    ] = None,
    column: TextColumn = "text",
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Also write model.onnx (extra `onnx`), checked with onnxruntime."),
    ] = False,
    trust_code: TrustCode = False,
) -> None:
    """Write the labels, the model with a file that loads it, and predictions for new data.

    Labels are written as CSV and Parquet, the model as safetensors.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        from accuacl.labeling.project import export as write  # loads torch

        written = write(project, out, predict, column, draw, onnx)
    for path in written:
        console.print(f"written: {escape(str(path))}", soft_wrap=True)
    if out / "model.safetensors" not in written:
        console.print("[yellow]note:[/yellow] nothing has been learned yet, so there is no model; label a round first.")


def backup(
    directory: Directory,
    to: Annotated[Path, typer.Argument(metavar="TO", help="A new directory for the copy, which is a project itself.")],
) -> None:
    """Copy the project to a new directory while people continue to label.

    Waits for a training process. Data outside the project's directory are not copied.
    """
    with projects.Project.open(directory) as project:
        project.backup(to)
    console.print(f"copied to {escape(str(to))}", soft_wrap=True)


def forget(
    directory: Directory,
    items: Annotated[list[str], typer.Argument(metavar="ITEM", help=ITEM)],
    column: TextColumn = "text",
    trust_code: TrustCode = False,
) -> None:
    """Remove items, their labels and what was learned from them.

    For projects with --learner ridge or kernel. The model is then that of a project without the items. Of a task whose
    examples are erased (--keep statistics) an item is read again from where it came from, so that its share can be
    subtracted from the sums. Your own files are not touched: delete them yourself.
    """
    with open_project(directory, trust_code) as project, drawn() as draw:
        forgot = project.forget(items, column, draw)
    for item in forgot.items:
        console.print(f"forgotten: item {item.id} ({escape(projects.describe_item(item))})", soft_wrap=True)
    for sentence in forgot.sentences:
        console.print(escape(sentence), soft_wrap=True)


def _next(state: projects.ProjectState, directory: Path) -> str:
    """The command that continues, to be printed; "" if the project waits for data."""
    if state.waiting == "labels":
        return f" Next: {command('serve', directory)}"
    return next_step(directory) if state.ready else ""


def _print_unreadable(tasks: projects.Tasks, task: projects.TaskInfo) -> None:
    """Name the images that were found to be broken when they were embedded."""
    broken = projects.unreadable_images(tasks, task)
    print_left_out([(name, projects.why_unreadable(task, name)) for name in broken[:LEFT_OUT_SHOWN]])
    if len(broken) > LEFT_OUT_SHOWN:
        console.print(f"[yellow]left out:[/yellow] {len(broken) - LEFT_OUT_SHOWN} more images of task {task.index + 1}")


def _print_quality(checked: projects.Quality, people: Mapping[int, str]) -> None:
    """Whether people agree, and how often each is right on gold items."""
    if checked.text:
        console.print(checked.text, soft_wrap=True)
    for (a, b), kappa in checked.pairs.items() if len(checked.pairs) > 1 else ():
        names = f"{escape(people[a])} and {escape(people[b])}"
        console.print(f"  {names}: Cohen's kappa {kappa.text} on {kappa.count}", soft_wrap=True)
    for person, right in checked.gold.items():
        console.print(f"gold items: {escape(people[person])} {projects.interval_text(right)} % right of {right.count}")


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    """A line if there are few, else columns; those with most labels first."""
    if not sum(counts.values()):
        return
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    if len(ordered) <= IN_A_LINE:
        console.print(f"{title}: " + ", ".join(f"{escape(name)} {count}" for name, count in ordered), soft_wrap=True)
        return
    widest = max(len(str(count)) for count in counts.values())
    cells = [f"{count:>{widest}} {escape(_cut(name))}" for name, count in ordered]
    console.print(f"{title} ({sum(counts.values())} labels, {len(counts)} names):")
    console.print(Columns(cells, equal=True, column_first=True, padding=(0, 2)))


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_SHOWN else f"{name[: LONGEST_SHOWN - 1]}…"
