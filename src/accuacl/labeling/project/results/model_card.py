"""The model card of an export: what the model was taught, how good it is as far as that is known, how to use it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import accuacl
from accuacl.labeling.project.items.erasing import forgotten_rows
from accuacl.labeling.project.measuring.estimates import Estimates
from accuacl.labeling.project.measuring.intervals import Estimate
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE

ITEMS = {"images": "a.jpg b.jpg", "texts": "'a text' 'another text'", "vectors": "new.npy", "tables": "new.csv"}


def model_card(project: Project, whole_places: bool = True) -> str:
    """In Markdown. whole_places: sources are whole paths, not names alone."""
    s, estimates = project.settings, project.estimates()
    names = {label.id: label.name for label in project.store.classes()}
    network = "none: the data are their own embedding" if s.model == NONE else Path(s.model).name
    counts = sorted(estimates.labels_by_class.items(), key=lambda pair: -pair[1])
    parts = [
        f"# Model card\n\nMade by accuacl {accuacl.__version__} on {time.strftime('%Y-%m-%d', time.gmtime())}.",
        "## Data",
        _table(("task", "kind", "items", "labels", "source"), _tasks(project, whole_places)),
        "## Classes",
        _table(("class", "labels"), [(names[id], str(count)) for id, count in counts]),
        "## Model",
        f"- network: {network}{'' if s.frozen else ', trained as a whole'}\n- head: {s.head}\n- learner: {s.learner}\n"
        f"- items to label were chosen by: {s.strategy}\n- seed: {s.seed}",
        "## How good it is",
        *_quality(estimates),
        "## Limits",
        "The estimates hold for data like the pools above, labelled by the same people. Classes with few labels are "
        "known badly; an item of no known class gets one of these classes nevertheless.",
        "## Use",
        f"`python model.py {ITEMS[s.kind]}`, or `import model; model.load(FOLDER).predict(items)`.",
    ]
    return "\n\n".join(parts) + "\n"


def _quality(estimates: Estimates) -> list[str]:
    calibration = [estimates.calibration] if estimates.calibration else []
    if not estimates.tasks:
        return ["Nothing was held out, so nothing is known about its accuracy on new data.", *calibration]
    columns = ("task", "held out", "when learned", "now", "forgetting")
    rows = [(str(t.task + 1), str(t.now.count), *map(_said, (t.learned, t.now, t.forgetting))) for t in estimates.tasks]
    said = [
        "Percent of held-out items that are right, with 95 % intervals. They were drawn at random from each task's "
        "pool and never used for training.",
        _table(columns, rows),
    ]
    return said + calibration


def _tasks(project: Project, whole_places: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for task in project.tasks.all():
        source = task.place if whole_places else Path(task.place).name
        count = task.count - len(forgotten_rows(project.tasks, task))
        rows.append((str(task.index + 1), task.kind, str(count), str(project.store.used(task.index)), source))
    return rows


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_inside(cell) for cell in line)} |" for line in lines)


def _inside(cell: str) -> str:
    """What people typed, so that it stays in its cell and is not taken for markup."""
    return "".join(f"\\{letter}" if letter in "|\\`<>*_[]" else letter for letter in " ".join(cell.split()))


def _said(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"
