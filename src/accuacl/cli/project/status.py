"""`accuacl project status`."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from accuacl.cli.project.options import Directory
from accuacl.cli.screen import console
from accuacl.labeling.project import Estimate, Project


def status(directory: Directory) -> None:
    """Show what the project is waiting for, what people have done, and how good the model is."""
    with Project.open(directory) as project:
        state, estimates = project.state(), project.estimates()
        classes = {label.id: label.name for label in project.store.classes()}
        people = {person.id: person.name for person in project.store.people()}
    console.print(escape(state.text))
    if state.tasks:
        console.print(f"labels of task {state.task + 1}: {state.used} of {state.budget}; {state.tasks} tasks")
    if estimates.tasks:
        table = Table("task", "held out", "accuracy when learned", "now", "forgetting", title="Estimates (%), 95 %")
        for task in estimates.tasks:
            numbers = map(_with_interval, (task.learned, task.now, task.forgetting))
            table.add_row(str(task.task + 1), str(task.now.count), *numbers)
        table.add_row("mean", "", "", _with_interval(estimates.accuracy), _with_interval(estimates.forgetting))
        console.print(table)
    for title, counts, names in (
        ("class", estimates.labels_by_class, classes),
        ("person", estimates.labels_by_person, people),
    ):
        if counts:
            listed = ", ".join(f"{escape(names[id])} {count}" for id, count in counts.items())
            console.print(f"labels by {title}: {listed}")


def _with_interval(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"
