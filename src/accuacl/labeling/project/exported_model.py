"""An exported model: its weights, what they mean, a file that loads them without this package, and model.onnx."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from accuacl import strategies
from accuacl.base.errors import InputError, install
from accuacl.base.files import reading, write_bytes, write_text
from accuacl.experiments import Handle, checkpoints, read_steps
from accuacl.experiments.heads import KERNELS
from accuacl.labeling.project import loader, table_encoder, tables
from accuacl.labeling.project.encoders import load_backbone, token_table, word_weights
from accuacl.labeling.project.erasing import erased_rows
from accuacl.labeling.project.learned import Networks, prepared_tasks
from accuacl.labeling.project.settings import NONE, WORD_VECTORS
from accuacl.labeling.project.task_inputs import LIMIT, SCALE, load_scale
from accuacl.labeling.store import counts_as

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

LARGEST_ERROR = 1e-3  # of a probability in model.onnx, and in half precision
TRIED = 1000  # items of the pools on which half precision is tried


def write_model(project: Project, out: Path) -> list[Path]:
    """Write the model after its last training; the files."""
    s, written = project.settings, [out / "model.safetensors", out / "model.json", out / "model.py"]
    handle = read_steps(project.journal, "train")[-1].result
    trained = checkpoints.load_tensors(project.weights, handle)
    seen, names, columns = handle["seen"], *class_columns(project, handle["seen"])
    trained |= {key: trained[key][seen] for key in ("head.weight", "head.bias") if key in trained}
    head = {f"head.{key}": value for key, value in trained.items() if not s.frozen or key.startswith("embed.")}
    head |= {f"head.{key}": trained[key] for key in ("head.weight", "head.bias") if key in trained}
    state: dict[str, torch.Tensor] = {k: v for k, v in head.items() if s.frozen or not k.startswith("head.embed.")}
    about: dict[str, Any] = {"kind": s.kind, "classes": names, "columns": columns, "limit": LIMIT}
    about |= {"network": NONE, "layer": ""}
    if "head.support" in trained:
        about["kernel"], tensors = _kernel_head(trained, _sample(project, handle), columns)
        state |= {f"head.{key}": value for key, value in tensors.items()}
    if s.has_network:
        backbone = load_backbone(s)
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
    if (first / SCALE).exists():
        scale = load_scale(project.tasks)
        state |= {f"scale.{key}": torch.from_numpy(np.array(value)) for key, value in scale.items()}
    if s.kind == "files":
        about["length"] = len(state["scale.mean"])
    if s.kind == "texts":
        about |= {"texts": "own" if s.own else "onnx" if s.sentence_model else s.model, "words": s.words}
    if s.sentence_model:
        _copy(s.files[0], out / loader.SENTENCES)
        _copy(s.files[1], out / "tokenizer.json")
        written += [out / loader.SENTENCES, out / "tokenizer.json"]
    elif s.kind == "texts" and not s.own:
        state["idf"] = torch.from_numpy(word_weights(first / "words.json"))
    if s.model == WORD_VECTORS:
        state["tokens"] = torch.from_numpy(token_table(s))
        _copy(s.files[1], out / "tokenizer.json")
        written.append(out / "tokenizer.json")
    if s.kind == "vectors":
        about["length"] = project.tasks.width()
    if s.kind == "tables":
        _copy(first / tables.FILE, out / "table.json")
        _copy(Path(table_encoder.__file__), out / "table_encoder.py")
        written += [out / "table.json", out / "table_encoder.py"]
    checkpoints.save_tensors(out / "model.safetensors", state)
    write_text(out / "model.json", json.dumps(about, indent=1) + "\n")
    _copy(Path(loader.__file__), out / "model.py")
    return written


def _kernel_head(
    trained: dict[str, Tensor], sample: Tensor, merged: list[int]
) -> tuple[list[tuple[str, int, int, float]], dict[str, Tensor]]:
    """The terms of a kernel head and its rows, in half precision where that changes no probability noticeably.

    That is tried on the support rows and on a sample of embeddings: a head that moves a probability of theirs by more
    than LARGEST_ERROR, or takes one for another class, keeps float32. merged: the class of each of the head's columns.
    """
    parts = (trained[f"head.{name}"].tolist() for name in ("kernels", "columns", "shares"))
    terms = [(KERNELS[which], *columns, share) for which, columns, share in zip(*parts, strict=True)]
    tensors = {"head.support": trained["head.support"]}
    if len(trained["head.reference"]):
        tensors["head.reference"] = trained["head.reference"]
    rows, classes = torch.cat([trained["head.support"], sample]), torch.eye(max(merged) + 1)[merged]
    halves = {name: value.half() for name, value in tensors.items()}
    before, after = (
        nn.functional.linear(
            loader.kernel_features(terms, rows, each["head.support"].float(), each.get("head.reference")),
            trained["head.weight"],
            trained["head.bias"],
        ).softmax(1)
        @ classes
        for each in (tensors, halves)
    )
    alike = float((before - after).abs().max()) <= LARGEST_ERROR and torch.equal(before.argmax(1), after.argmax(1))
    return terms, halves if alike else tensors


def _sample(project: Project, handle: Handle) -> Tensor:
    """Embeddings of up to TRIED items of all pools, as the head sees them."""
    networks, items = Networks(project.settings, project.weights, project.tasks), list[int]()
    for task, made in zip(project.tasks.all(), prepared_tasks(project.tasks), strict=False):
        networks.open(made)
        items += np.delete(task.ids, sorted(erased_rows(project.tasks, task).union(made["bad"]))).tolist()
    chosen = strategies.in_sample_order(np.array(items, np.int64), project.settings.seed)[:TRIED]
    seen = np.array(handle["seen"], np.int64)
    return torch.from_numpy(networks.features(networks.model(handle), chosen, seen).embeddings)


def _copy(file: Path, to: Path) -> None:
    with reading(file):
        data = file.read_bytes()
    write_bytes(to, data)


def class_columns(project: Project, seen: list[int]) -> tuple[list[str], list[int]]:
    """Names of the classes that the model knows, and for each column of its head which of them it counts as."""
    classes = project.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    kept = sorted({final[id] for id in seen})
    return [names[id] for id in kept], [kept.index(final[id]) for id in seen]


def write_onnx(folder: Path) -> Path:
    """Make model.onnx of the model that was exported to the folder.

    Its input `inputs` has a row for each item: pixels in [0, 1] (3 x side x side), the numbers of a vector, or the
    vector of a text, as `model.py` makes it. Its output is `probabilities`; its metadata have the `classes` as JSON.
    """
    try:
        import onnxruntime
        import onnxscript  # noqa: F401 - torch's exporter needs it
    except ImportError as error:
        raise InputError(f"--onnx needs the extra `onnx` ({error}); {install('onnx')}.") from None
    model = loader.load(folder)
    example = _example(model)
    whole = _Whole(model).eval()
    with _silence():
        program: Any = torch.onnx.export(
            whole,
            (example,),
            dynamo=True,
            input_names=["inputs"],
            output_names=["probabilities"],
            dynamic_shapes=({0: torch.export.Dim("items", min=1)},),
            verbose=False,
        )
    proto = program.model_proto
    proto.metadata_props.add(key="classes", value=json.dumps(model.classes, ensure_ascii=False))
    data = proto.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for rows in (example, example[:1]):
        (probabilities,) = session.run(None, {"inputs": rows.numpy()})
        with torch.inference_mode():
            off = float(np.abs(probabilities - whole(rows).numpy()).max())
        if not off < LARGEST_ERROR:
            raise InputError(f"the ONNX model gives other probabilities (by {off:.2g}); export it without --onnx.")
    write_bytes(folder / "model.onnx", data)
    return folder / "model.onnx"


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Suppress what torch's exporter prints about its work, and about packages that it does not need."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _example(model: loader.Model) -> Tensor:
    """Three items of the shape that the model takes, to trace and to check it with."""
    about = model.about
    if about["kind"] == "images":
        shape: tuple[int, ...] = (3, about["side"], about["side"])
    elif "length" in about:
        shape = (about["length"],)
    else:
        shape = tuple(model.state["scale.mean"].shape)
    return torch.from_numpy(np.random.default_rng(0).random((3, *shape), np.float32))


class _Whole(nn.Module):
    """The model as a module, from inputs to probabilities."""

    def __init__(self, model: loader.Model) -> None:
        super().__init__()
        self.network = model.embed
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward(x)
