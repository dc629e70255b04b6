"""The export of a project: what people said, the model with a file that loads it, predictions for new data."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch

import accuacl
from accuacl.base.errors import InputError
from accuacl.base.files import filling, reading, write_bytes, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments import load_tensors, read_steps, save_tensors
from accuacl.labeling.project import backbones, loader, table_encoder, table_encoder as table_schema, texts as words
from accuacl.labeling.project.erasing import forgotten_rows
from accuacl.labeling.project.estimates import Estimate, Estimates
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.onnx_export import write_onnx
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE, WORD_VECTORS
from accuacl.labeling.project.task_inputs import LIMIT
from accuacl.labeling.project.texts import TokenVectors
from accuacl.labeling.project.uploads import read_like
from accuacl.labeling.store import Person, counts_as


def export(
    project: Project,
    out: Path,
    predict: Path | None,
    column: str,
    tell: OnProgress,
    onnx: bool = False,
    whole_places: bool = True,
) -> list[Path]:
    """Write labels, model and predictions to a new folder; returns the files written.

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
    kind = project.settings.kind
    items = None
    if predict is not None:
        items = (
            read_images(predict, tell, whole=True)
            if kind == "images"
            else read_like(project.tasks, kind, predict, column)
        )
    with filling(out):
        written = write_answers(project, out, whole_places)
        if learned:
            written += _model(project, out)
            write_text(out / "MODEL_CARD.md", model_card(project, whole_places))
            written.append(out / "MODEL_CARD.md")
        if onnx:
            written.append(write_onnx(out))
        if items is not None:
            written.append(_predictions(items, out, tell))
    return written


def _model(project: Project, out: Path) -> list[Path]:
    s, written = project.settings, [out / "model.safetensors", out / "model.json", out / "model.py"]
    handle = read_steps(project.journal, "train")[-1].result
    trained = load_tensors(project.directory / "weights", handle)
    seen, names, columns = handle["seen"], *_classes(project, handle["seen"])
    head = {f"head.{key}": value for key, value in trained.items() if not s.frozen or key.startswith("embed.")}
    head |= {f"head.{key}": trained[key][seen] for key in ("head.weight", "head.bias") if key in trained}
    state: dict[str, torch.Tensor] = {k: v for k, v in head.items() if s.frozen or not k.startswith("head.embed.")}
    about: dict[str, Any] = {"kind": s.kind, "classes": names, "columns": columns, "limit": LIMIT}
    about |= {"network": NONE, "layer": ""}
    if s.has_network:
        backbone = backbones.load(s)
        kept = trained if not s.frozen else {f"embed.{k}": v for k, v in backbone.embed.state_dict().items()}
        state |= {f"network.{k.removeprefix('embed.')}": v for k, v in kept.items() if k.startswith("embed.")}
        mean, std = backbone.transform.mean, backbone.transform.std
        about |= {"network": "own" if s.own else s.model}
        about |= {"layer": getattr(backbone.embed, "name", ""), "side": s.side, "mean": mean, "std": std}
    if s.own:
        about["function"] = s.model.rpartition(":")[2]
        _copy(Path(s.model.rpartition(":")[0]), out / "own_model.py")
        written.append(out / "own_model.py")
    first = project.tasks.folder_of(0)
    if (first / "scale.safetensors").exists():
        with reading(first):
            scale = safetensors.numpy.load((first / "scale.safetensors").read_bytes())
        state |= {f"scale.{key}": torch.from_numpy(np.array(value)) for key, value in scale.items()}
    if s.kind == "texts":
        about["texts"] = "own" if s.own else s.model
    if s.kind == "texts" and not s.own:
        state["idf"] = torch.from_numpy(words.weights(first / "words.json"))
    if s.model == WORD_VECTORS:
        state["tokens"] = torch.from_numpy(TokenVectors().table)
        _copy(s.files[1], out / "tokenizer.json")
        written.append(out / "tokenizer.json")
    if s.kind == "vectors":
        about["length"] = project.tasks.width()
    if s.kind == "tables":
        _copy(first / table_schema.FILE, out / "table.json")
        _copy(Path(table_encoder.__file__), out / "table_encoder.py")
        written += [out / "table.json", out / "table_encoder.py"]
    save_tensors(out / "model.safetensors", state)
    write_text(out / "model.json", json.dumps(about, indent=1) + "\n")
    _copy(Path(loader.__file__), out / "model.py")
    return written


def _copy(file: Path, to: Path) -> None:
    with reading(file):
        data = file.read_bytes()
    write_bytes(to, data)


def _classes(project: Project, seen: list[int]) -> tuple[list[str], list[int]]:
    """Names of the classes that the model knows, and for each column of its head which of them it counts as."""
    classes = project.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    kept = sorted({final[id] for id in seen})
    return [names[id] for id in kept], [kept.index(final[id]) for id in seen]


def _predictions(items: NewItems, out: Path, tell: OnProgress) -> Path:
    model = loader.load(out)
    inputs: list[Any] = [Path(items.place) / name for name in items.names]
    if items.kind != "images":
        inputs = list(items.vectors if items.vectors is not None else items.texts or items.shown or ())
    texts = items.texts or []
    rows: list[list[str]] = [["name", "class", "confidence", *(["text"] if texts else [])]]
    for start in range(0, len(inputs), 256):
        classes, confidences = model.predict(inputs[start : start + 256])
        for row, (label, confidence) in enumerate(zip(classes, confidences, strict=True), start):
            rows.append([items.names[row], label, f"{confidence:.4f}", *([texts[row]] if texts else [])])
        tell(Progress(min(start + 256, len(inputs)), len(inputs), "predicting"))
    rows += [[name, "", ""] for name in items.bad]
    write_csv(out / "predictions.csv", rows)
    return out / "predictions.csv"


WHICH = ("item", "task", "round", "source", "name")
COLUMNS = (*WHICH, "class", "person", "time", "held_out", "guess_shown")
SKIPPED = (*WHICH, "person", "time")
COMMENTS = (*WHICH, "kind", "comment", "person", "time")

Rows = list[dict[str, Any]]
Which = Callable[[int], dict[str, Any]]  # what is said of an item


def write_answers(project: Project, out: Path, whole_places: bool = True) -> list[Path]:
    """labels.csv, the same as labels.parquet, skipped.csv and comments.csv; of texts with the text.

    whole_places: sources are whole paths, not names alone.
    """
    text = ("text",) if project.settings.kind == "texts" else ()
    which = partial(_which, project, project.store.rounds_of_items(), whole_places)
    labels, skips = _answers(project, which)
    _write_csv(out / "labels.csv", (*COLUMNS, *text), labels)
    _write_parquet(out / "labels.parquet", labels, text)
    _write_csv(out / "skipped.csv", (*SKIPPED, *text), skips)
    _write_csv(out / "comments.csv", (*COMMENTS, *text), _comments(project, which))
    return [out / name for name in ("labels.csv", "labels.parquet", "skipped.csv", "comments.csv")]


def _answers(project: Project, which: Which) -> tuple[Rows, Rows]:
    """The present labels, and what is skipped."""
    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    classes = {c.id: c.name for c in project.store.classes()}
    people = {person.id: person for person in project.store.people()}
    shown = project.store.guesses_shown()
    labels: Rows = []
    skips: Rows = []
    for answer in project.store.answers():
        row = which(answer.item) | _who(people, answer.person, answer.time)
        if answer.class_id is None:
            skips.append(row)
            continue
        guess = classes[shown[answer.item]] if answer.item in shown else None  # as it was shown, merged since or not
        labelled = {"class": classes[answer.class_id], "held_out": answer.item in held, "guess_shown": guess}
        labels.append(row | labelled)
    return labels, skips


def _comments(project: Project, which: Which) -> Rows:
    """What people wrote, and what they flagged, first to last."""
    people = {person.id: person for person in project.store.people()}
    return [
        which(said.item) | _who(people, said.person, said.time) | {"kind": said.kind, "comment": said.text or ""}
        for said in project.store.comments()
        if said.item is not None
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


FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what begins a formula


def write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows, the header first, with texts made inert."""
    text = io.StringIO()
    usual = csv.writer(text, lineterminator="\n")
    quoted = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)  # the usual one forgets to quote \r
    for row in rows:
        cells = [inert(value) for value in row]
        writer = quoted if any("\r" in cell for cell in cells if isinstance(cell, str)) else usual
        writer.writerow(cells)
    write_text(path, text.getvalue())


def inert(value: Any) -> Any:
    """A cell with a ' before it where a spreadsheet would take it for a formula; numbers stay.

    What looks like that already gets another ', so that `plain` gives everything back.

    >>> inert("=1+1"), inert("'=1+1"), inert("-1.5"), inert("'tis")
    ("'=1+1", "''=1+1", '-1.5', "'tis")
    """
    if not isinstance(value, str) or not value.lstrip("'").startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def plain(cell: str) -> str:
    """The text that was made inert.

    >>> plain("'=1+1"), plain("''=1+1"), plain("-1.5"), plain("'tis")
    ('=1+1', "'=1+1", '-1.5', "'tis")
    """
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(FORMULA) else cell


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
