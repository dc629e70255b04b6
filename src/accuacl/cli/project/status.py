"""`accuacl project status`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.columns import Columns
from rich.markup import escape
from rich.table import Table

from accuacl.cli.project.options import Directory, command, next_step
from accuacl.cli.project.pools import print_unreadable
from accuacl.cli.screen import console
from accuacl.labeling import project as projects

IN_A_LINE = 12  # classes or people that one line may name
LONGEST_SHOWN = 24  # characters of a name in columns


def status(directory: Directory) -> None:
    """Show what the project is waiting for, what people have done, and how good the model is."""
    with projects.Project.open(directory) as project:
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
            print_unreadable(project.tasks, pool)
    if state.tasks:
        of = f"{state.used} of {state.budget}" if state.rounds else str(used)
        console.print(f"labels of task {state.task + 1}: {of}; {state.tasks} task{'s' if state.tasks > 1 else ''}")
    for sentence in given:
        console.print(sentence, soft_wrap=True)
    if estimates.tasks:
        title = "Estimates in %, with 95 % intervals"
        table = Table("task", "held out", "accuracy when learned", "now", "forgetting", title=title)
        for task in estimates.tasks:
            numbers = map(_with_interval, (task.learned, task.now, task.forgetting))
            table.add_row(str(task.task + 1), str(task.now.count), *numbers)
        if len(estimates.tasks) > 1:  # one number has one interval
            table.add_row("mean", "", "", _with_interval(estimates.accuracy), _with_interval(estimates.forgetting))
        console.print(table)
    if estimates.calibration:
        console.print(estimates.calibration, soft_wrap=True)
    if estimates.forecast:
        console.print(f"task {state.task + 1}: {estimates.forecast.text}")
    for sentence in budget:
        console.print(sentence, soft_wrap=True)
    _print_counts("labels by class", {name: estimates.labels_by_class.get(id, 0) for id, name in classes.items()})
    _print_counts("labels by person", {people[id]: count for id, count in estimates.labels_by_person.items()})
    _print_quality(checked, people)


def _next(state: projects.ProjectState, directory: Path) -> str:
    """The command that goes on, to be printed; "" if the project waits for data."""
    if state.waiting == "labels":
        return f" Next: {command('serve', directory)}"
    return next_step(directory) if state.ready else ""


def _print_quality(checked: projects.Quality, people: Mapping[int, str]) -> None:
    """Whether people agree, and how often each is right on gold items."""
    if checked.text:
        console.print(checked.text, soft_wrap=True)
    for (a, b), kappa in checked.pairs.items() if len(checked.pairs) > 1 else ():
        names = f"{escape(people[a])} and {escape(people[b])}"
        console.print(f"  {names}: Cohen's kappa {kappa.text} on {kappa.count}", soft_wrap=True)
    for person, right in checked.gold.items():
        console.print(f"gold items: {escape(people[person])} {_with_interval(right)} % right of {right.count}")


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


def _with_interval(estimate: projects.Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"
