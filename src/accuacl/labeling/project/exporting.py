"""What leaves a project: the labels, the model with a file that loads it, predictions for new data."""

from __future__ import annotations

import csv
import io
import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import write_bytes, write_text
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.experiment import load_tensors, read_steps, save_tensors
from accuacl.labeling.project import backbones, inputs, loader
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE
from accuacl.labeling.project.tables import read_texts, read_vectors
from accuacl.labeling.store import counts_as

COLUMNS = ("item", "task", "round", "source", "name", "class", "person", "time", "held_out")


def export(project: Project, out: Path, predict: Path | None, column: str, tell: OnProgress) -> list[Path]:
    """Write labels, model and predictions to a new folder; the files written."""
    if out.exists() and any(out.iterdir()):
        raise InputError(f"{out} is not empty; choose another folder.")
    learned = bool(read_steps(project.journal, "train"))
    if predict is not None and not learned:
        raise InputError("nothing has been learned yet, so nothing can be predicted; label a round first.")
    source = _source(project, predict, column) if predict is not None else None
    out.mkdir(parents=True, exist_ok=True)
    written = _labels(project, out)
    if learned:
        written += _model(project, out)
    if source is not None:
        written.append(_predictions(source, out, tell))
    return written


def _labels(project: Project, out: Path) -> list[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
    classes = {one.id: one.name for one in project.store.classes()}
    people = {one.id: one.name for one in project.store.people()}
    rounds = project.store.rounds_of_items()
    rows: list[dict[str, Any]] = []
    for answer in project.store.answers():
        if answer.class_id is None:
            continue
        item, task = project.item(answer.item), project.tasks.find(answer.item)
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(answer.time))
        who = people.get(answer.person) if answer.person is not None else None
        place = (item.id, task.index + 1, rounds[item.id] + 1, task.place, item.name)
        values = (*place, classes[answer.class_id], who, when, item.id in held)
        rows.append(dict(zip(COLUMNS, values, strict=True)))
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(row | {"class": _inert(row["class"]), "person": _inert(row["person"])} for row in rows)
    write_text(out / "labels.csv", text.getvalue())
    kinds = (pa.int64(), pa.int64(), pa.int64(), *[pa.string()] * 5, pa.bool_())
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(zip(COLUMNS, kinds, strict=True)))), sink)
    write_bytes(out / "labels.parquet", sink.getvalue())
    return [out / "labels.csv", out / "labels.parquet"]


def _model(project: Project, out: Path) -> list[Path]:
    s, written = project.settings, [out / "model.safetensors", out / "model.json", out / "model.py"]
    handle = read_steps(project.journal, "train")[-1].result
    trained = load_tensors(project.directory / "weights", handle)
    seen, names, columns = handle["seen"], *_classes(project, handle["seen"])
    head = {f"head.{key}": value for key, value in trained.items() if not s.frozen or key.startswith("embed.")}
    head |= {f"head.{key}": trained[key][seen] for key in ("head.weight", "head.bias") if key in trained}
    state: dict[str, torch.Tensor] = {k: v for k, v in head.items() if s.frozen or not k.startswith("head.embed.")}
    about: dict[str, Any] = {"kind": s.kind, "classes": names, "columns": columns, "limit": inputs.LIMIT}
    about |= {"network": NONE, "layer": ""}
    if s.model != NONE:
        backbone = backbones.load(s)
        kept = trained if not s.frozen else {f"embed.{k}": v for k, v in backbone.embed.state_dict().items()}
        state |= {f"network.{k.removeprefix('embed.')}": v for k, v in kept.items() if k.startswith("embed.")}
        mean, std = backbone.transform.mean, backbone.transform.std
        about |= {"network": "own" if s.own else s.model, "function": s.model.rpartition(":")[2]}
        about |= {"layer": getattr(backbone.embed, "name", ""), "side": s.side, "mean": mean, "std": std}
    if s.own:
        shutil.copyfile(s.model.rpartition(":")[0], out / "own_model.py")
        written.append(out / "own_model.py")
    first = project.tasks.folder_of(0)
    if (first / "scale.safetensors").exists():
        scale = safetensors.numpy.load((first / "scale.safetensors").read_bytes())
        state |= {f"scale.{key}": torch.from_numpy(np.array(value)) for key, value in scale.items()}
    if s.kind == "texts":
        state["idf"] = torch.tensor(json.loads((first / "words.json").read_text())["idf"], dtype=torch.float64)
    save_tensors(out / "model.safetensors", state)
    write_text(out / "model.json", json.dumps(about, indent=1) + "\n")
    shutil.copyfile(loader.__file__, out / "model.py")
    return written


def _classes(project: Project, seen: list[int]) -> tuple[list[str], list[int]]:
    """Names of the classes that the model knows, and which of them each of its columns stands for now."""
    classes = project.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    kept = sorted({final[id] for id in seen})
    return [names[id] for id in kept], [kept.index(final[id]) for id in seen]


def _source(project: Project, given: Path, column: str) -> NewItems:
    """New data of the project's kind."""
    if project.settings.kind == "images":
        return read_images(given, ignore)
    if project.settings.kind == "texts":
        return read_texts(given, column)
    return project.tasks.as_first(read_vectors(given))


def _predictions(source: NewItems, out: Path, tell: OnProgress) -> Path:
    model = loader.load(out)
    items: list[Any] = [Path(source.place) / name for name in source.names]
    if source.kind != "images":
        items = list(source.texts or ()) if source.vectors is None else list(source.vectors)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "class", "confidence"])
    for start in range(0, len(items), 256):
        classes, confidences = model.predict(items[start : start + 256])
        rows = zip(source.names[start : start + 256], classes, confidences, strict=True)
        writer.writerows([name, _inert(label), f"{confidence:.4f}"] for name, label, confidence in rows)
        tell(Progress(min(start + 256, len(items)), len(items), "predicting"))
    writer.writerows([name, "", ""] for name in source.bad)
    write_text(out / "predictions.csv", text.getvalue())
    return out / "predictions.csv"


def _inert(value: Any) -> Any:
    """What annotators typed, so that no spreadsheet takes it for a formula; names of items are left as they are."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value
