"""The export of a project: what people answered, the model with a file that loads it, predictions for new data.

labels.csv and labels.parquet have the labels that count, skipped.csv what was skipped, comments.csv the comments.
answers.csv has every answer of every person: second opinions, what was corrected since and what was taken back. In a
CSV file a cell that a spreadsheet would take for a formula has a ' before it.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import accuacl
from accuacl.base.errors import InputError
from accuacl.base.files import filling, reading, write_bytes, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments import read_steps
from accuacl.labeling.project import loader
from accuacl.labeling.project.erasing import erased_rows, forgotten_rows
from accuacl.labeling.project.estimates import Estimate, Estimates
from accuacl.labeling.project.exported_model import class_columns, write_model, write_onnx
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.learned import Networks, prepared_tasks
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE
from accuacl.labeling.project.tasks import read_like
from accuacl.labeling.store import Person

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

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
    """Predictions for every item without a label, of the tasks that have been embedded, the least certain first."""
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
        (str(t.task + 1), str(t.now.count), *map(_with_interval, (t.learned, t.now, t.forgetting)))
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


def _with_interval(estimate: Estimate | None) -> str:
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"


WHICH = ("item", "task", "round", "source", "name")
COLUMNS = (*WHICH, "class", "person", "time", "held_out", "guess_shown")
SKIPPED = (*WHICH, "person", "time", "reason")
ANSWERS = (*WHICH, "kind", "class", "person", "time", "seconds", "guess_shown", "undone", "reason")
COMMENTS = (*WHICH, "kind", "comment", "person", "time")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what begins a formula

Rows = list[dict[str, Any]]
Which = Callable[[int], dict[str, Any]]  # the columns that identify an item


def write_answers(project: Project, out: Path, whole_places: bool = True) -> list[Path]:
    """Write labels.csv, labels.parquet, skipped.csv, answers.csv and comments.csv; of texts with the text.

    whole_places: sources are whole paths, not names alone.
    """
    text = ("text",) if project.settings.kind == "texts" else ()
    which = partial(_which, project, project.store.rounds_of_items(), whole_places)
    labels, skips = _answers(project, which)
    _write_csv(out / "labels.csv", (*COLUMNS, *text), labels)
    _write_parquet(out / "labels.parquet", labels, text)
    _write_csv(out / "skipped.csv", (*SKIPPED, *text), skips)
    _write_csv(out / "answers.csv", (*ANSWERS, *text), _every_answer(project, which))
    _write_csv(out / "comments.csv", (*COMMENTS, *text), _comments(project, which))
    return [out / name for name in ("labels.csv", "labels.parquet", "skipped.csv", "answers.csv", "comments.csv")]


def _answers(project: Project, which: Which) -> tuple[Rows, Rows]:
    """The present labels, and what is skipped."""
    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    classes = {c.id: c.name for c in project.store.classes()}
    people = {person.id: person for person in project.store.people()}
    shown = project.store.guesses_shown()
    reasons = {(one.item, one.time): one.reason for one in project.store.every_answer() if one.reason}
    labels: Rows = []
    skips: Rows = []
    for answer in project.store.answers():
        row = which(answer.item) | _who(people, answer.person, answer.time)
        if answer.class_id is None:
            skips.append(row | {"reason": reasons.get((answer.item, answer.time))})
            continue
        guess = classes[shown[answer.item]] if answer.item in shown else None  # as it was shown, merged since or not
        labelled = {"class": classes[answer.class_id], "held_out": answer.item in held, "guess_shown": guess}
        labels.append(row | labelled)
    return labels, skips


def _every_answer(project: Project, which: Which) -> Rows:
    """Labels, skips, opinions and corrections, first to last."""
    classes = {c.id: c.name for c in project.store.classes()}
    people = {person.id: person for person in project.store.people()}
    return [
        which(answer.item)
        | _who(people, answer.person, answer.time)
        | {
            "kind": answer.kind,
            "class": None if answer.class_id is None else classes[answer.class_id],
            "seconds": None if answer.seconds is None else round(answer.seconds, 1),
            "guess_shown": None if answer.shown is None else classes[answer.shown],
            "undone": answer.undone,
            "reason": answer.reason,
        }
        for answer in project.store.every_answer()
    ]


def _comments(project: Project, which: Which) -> Rows:
    """What people wrote, and what they flagged, first to last."""
    people = {person.id: person for person in project.store.people()}
    return [
        which(event.item) | _who(people, event.person, event.time) | {"kind": event.kind, "comment": event.text or ""}
        for event in project.store.comments()
        if event.item is not None
    ]


def _which(project: Project, rounds: dict[int, int], whole_places: bool, item: int) -> dict[str, Any]:
    shown, task = project.item(item), project.tasks.find(item)
    source = task.place if whole_places else Path(task.place).name
    which = dict(zip(WHICH, (item, task.index + 1, rounds[item] + 1, source, shown.name), strict=True))
    return which | ({"text": shown.text} if project.settings.kind == "texts" else {})


def _who(people: dict[int, Person], person: int | None, when: float) -> dict[str, Any]:
    name = people[person].name if person in people else None
    return {"person": name, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))}


def _write_parquet(path: Path, rows: Rows, text: tuple[str, ...]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = (*[pa.int64()] * 3, *[pa.string()] * 5, pa.bool_(), *[pa.string()] * (1 + len(text)))
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(zip((*COLUMNS, *text), kinds, strict=True)))), sink)
    write_bytes(path, sink.getvalue())


def _write_csv(path: Path, columns: Sequence[str], rows: Rows) -> None:
    write_csv(path, [columns, *([row.get(name) for name in columns] for row in rows)])


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, the header first, with cells escaped."""
    text = io.StringIO()
    usual = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)  # the usual one does not quote \r
    for row in rows:
        cells = [with_escape(value) for value in row]
        writer = quoted if any("\r" in cell for cell in cells if isinstance(cell, str)) else usual
        writer.writerow(cells)
    write_text(path, text.getvalue())


def with_escape(value: Any) -> Any:
    """A cell with a ' before it where a spreadsheet would take it for a formula; numbers stay.

    What looks like that already gets another ', so that `without_escape` gives everything back.

    >>> with_escape("=1+1"), with_escape("'=1+1"), with_escape("-1.5"), with_escape("'tis")
    ("'=1+1", "''=1+1", '-1.5', "'tis")
    """
    if not isinstance(value, str) or not value.lstrip("'").startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def without_escape(cell: str) -> str:
    """The text that `with_escape` was given.

    >>> without_escape("'=1+1"), without_escape("''=1+1"), without_escape("-1.5"), without_escape("'tis")
    ('=1+1', "'=1+1", '-1.5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell
