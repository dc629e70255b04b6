"""The export of a project: what people answered, the model with a file that loads it, predictions for new data."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import accuacl
from accuacl.base.errors import InputError
from accuacl.base.files import filling, reading, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments import read_steps
from accuacl.labeling.project import loader
from accuacl.labeling.project.erasing import erased_rows, forgotten_rows
from accuacl.labeling.project.estimates import Estimates, interval_text
from accuacl.labeling.project.exported_model import class_columns, write_model, write_onnx
from accuacl.labeling.project.exported_tables import write_answers, write_csv
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.learned import Networks, prepared_tasks
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE
from accuacl.labeling.project.tasks import read_like

BLOCK = 4096  # items whose predictions are made at a time
ITEMS = {
    "images": "a.jpg b.jpg",
    "files": "a.wav b.wav",
    "texts": "'a text' 'another text'",
    "vectors": "new.npy",
    "tables": "new.csv",
}


def export(
    project: Project,
    out: Path,
    predict: Path | None,
    column: str,
    on_progress: OnProgress,
    onnx: bool = False,
    whole_places: bool = True,
) -> list[Path]:
    """Write labels, model, and predictions for items without a label to a new folder; the files written.

    predict: new data for which predictions are written too. column: of texts in a table, the one that has them.
    onnx: the model as an ONNX file too. whole_places: say where data came from by whole paths, not by names alone.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a new folder for the labels and the model.")
    with reading(out):
        if out.exists() and any(out.iterdir()):
            raise InputError(f"{out} is not empty; choose another folder.")
    learned = bool(read_steps(project.journal, "train"))
    if predict is not None and not learned:
        raise InputError("nothing has been learned yet, so nothing can be predicted; label a round first.")
    if onnx and not learned:
        raise InputError("nothing has been learned yet, so there is no model for --onnx; label a round first.")
    items = None
    if predict is not None and project.settings.kind == "images":
        items = read_images(predict, on_progress, whole=True)
    elif predict is not None:
        items = read_like(project.tasks, project.settings.kind, predict, column)
    with filling(out):
        written = write_answers(project, out, whole_places)
        if learned:
            written += write_model(project, out)
            write_text(out / "MODEL_CARD.md", model_card(project, whole_places))
            written.append(out / "MODEL_CARD.md")
            written.append(_write_unlabelled(project, out, on_progress, whole_places))
        if onnx:
            written.append(write_onnx(out))
        if items is not None:
            written.append(_predictions(items, out, on_progress))
    return written


def _write_unlabelled(project: Project, out: Path, on_progress: OnProgress, whole_places: bool) -> Path:
    """Predictions for every unlabelled item of the embedded tasks, the least certain first."""
    prepared, tasks = prepared_tasks(project.tasks), project.tasks.all()
    networks = Networks(project.settings, project.weights, project.tasks)
    for made in prepared:
        networks.open(made)
    handle = read_steps(project.journal, "train")[-1].result
    model, seen = networks.model(handle), np.array(handle["seen"], np.int64)
    names, columns = class_columns(project, handle["seen"])
    merge = np.eye(len(names), dtype=np.float32)[columns]
    labelled, text = project.store.labels(), ("text",) if project.settings.kind == "texts" else ()
    rows: list[list[Any]] = []
    for task, made in zip(tasks, prepared, strict=False):
        left_out = erased_rows(project.tasks, task).union(made["bad"])
        ids = np.array([i for i in task.ids.tolist() if i - task.first not in left_out and i not in labelled], np.int64)
        table, source = project.tasks.table(task.index), task.place if whole_places else Path(task.place).name
        for start in range(0, len(ids), BLOCK):
            block = ids[start : start + BLOCK]
            p = networks.features(model, block, seen).probabilities @ merge
            for item, guess, confidence in zip(block.tolist(), p.argmax(axis=1), p.max(axis=1).tolist(), strict=True):
                row = item - task.first
                cells = [item, task.index + 1, source, table["name"][row], names[guess], round(confidence, 4)]
                rows.append([*cells, *(table[name][row] for name in text)])
            on_progress(Progress(start + len(block), len(ids), f"predicting task {task.index + 1}"))
    rows.sort(key=lambda row: row[5])
    write_csv(out / "unlabelled.csv", [["item", "task", "source", "name", "class", "confidence", *text], *rows])
    return out / "unlabelled.csv"


def _predictions(items: NewItems, out: Path, on_progress: OnProgress) -> Path:
    model = loader.load(out)
    inputs: list[Any] = [Path(items.place) / name for name in items.names]
    if items.kind not in ("images", "files"):
        inputs = list(items.vectors if items.vectors is not None else items.texts or items.shown or ())
    texts = items.texts or []
    rows: list[list[str]] = [["name", "class", "confidence", *(["text"] if texts else [])]]
    for start in range(0, len(inputs), 256):
        classes, confidences = model.predict(inputs[start : start + 256])
        for row, (label, confidence) in enumerate(zip(classes, confidences, strict=True), start):
            rows.append([items.names[row], label, f"{confidence:.4f}", *([texts[row]] if texts else [])])
        on_progress(Progress(min(start + 256, len(inputs)), len(inputs), "predicting"))
    rows += [[name, "", ""] for name in items.bad]
    write_csv(out / "predictions.csv", rows)
    return out / "predictions.csv"


def model_card(project: Project, whole_places: bool = True) -> str:
    """What the model is, was made from and is good for, in Markdown. whole_places: as in `export`."""
    s, estimates = project.settings, project.estimates()
    names = {label.id: label.name for label in project.store.classes()}
    network = "none: the data are their own embedding" if s.model == NONE else Path(s.model).name
    counts = sorted(estimates.labels_by_class.items(), key=lambda pair: -pair[1])
    blocks = [
        f"# Model card\n\nMade by accuacl {accuacl.__version__} on {time.strftime('%Y-%m-%d', time.gmtime())}.",
        "## Data",
        _table(("task", "kind", "items", "labels", "source"), _tasks(project, whole_places)),
        "## Classes",
        _table(("class", "labels"), [(names[id], str(count)) for id, count in counts]),
        "## Model",
        f"- network: {network}{'' if s.frozen else ', trained as a whole'}\n"
        f"- head: {'kernel' if s.learner == 'kernel' else s.head}\n- learner: {s.learner}\n"
        f"- items to label were chosen by: {s.strategy}\n- seed: {s.seed}",
        "## How good it is",
        *_quality(estimates),
        "## Limits",
        "The estimates hold for data like the pools above, labelled by the same people. Classes with few labels are "
        "known badly; an item of no known class gets one of these classes nevertheless.",
        "## Use",
        f"`python model.py {ITEMS[s.kind]}`, or `import model; model.load(FOLDER).predict(items)`.",
    ]
    return "\n\n".join(blocks) + "\n"


def _quality(estimates: Estimates) -> list[str]:
    calibration = [estimates.calibration] if estimates.calibration else []
    if not estimates.tasks:
        return ["Nothing was held out, so nothing is known about its accuracy on new data.", *calibration]
    columns = ("task", "held out", "when learned", "now", "forgetting")
    rows = [
        (str(t.task + 1), str(t.now.count), *map(interval_text, (t.learned, t.now, t.forgetting)))
        for t in estimates.tasks
    ]
    return [
        "Percent of held-out items that are right, with 95 % intervals. They were drawn at random from each task's "
        "pool and never used for training.",
        _table(columns, rows),
        *calibration,
    ]


def _tasks(project: Project, whole_places: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for task in project.tasks.all():
        source = task.place if whole_places else Path(task.place).name
        count = task.count - len(forgotten_rows(project.tasks, task))
        rows.append((str(task.index + 1), task.kind, str(count), str(project.store.used(task.index)), source))
    return rows


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines)


def _escaped(cell: str) -> str:
    """What people typed, so that it stays in its cell and is not read as markup."""
    return "".join(f"\\{letter}" if letter in "|\\`<>*_[]" else letter for letter in " ".join(cell.split()))
