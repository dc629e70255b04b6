"""The export of a project: what people said, the model with a file that loads it, predictions for new data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch

from accuacl.base.errors import InputError
from accuacl.base.files import filling, reading, write_bytes, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.experiment import load_tensors, read_steps, save_tensors
from accuacl.labeling.project.inputs import backbones, words
from accuacl.labeling.project.inputs.task_inputs import LIMIT
from accuacl.labeling.project.inputs.token_vectors import TokenVectors
from accuacl.labeling.project.items import table_encoder, table_schema
from accuacl.labeling.project.items.images import read_images
from accuacl.labeling.project.items.new_items import NewItems
from accuacl.labeling.project.items.sources import read_like
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.results import loader
from accuacl.labeling.project.results.answer_files import write_answers
from accuacl.labeling.project.results.cells import write_csv
from accuacl.labeling.project.results.model_card import model_card
from accuacl.labeling.project.results.onnx_export import write_onnx
from accuacl.labeling.project.settings import NONE, WORD_VECTORS
from accuacl.labeling.store import counts_as


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
