"""The export of a project: what people answered, the model with a file that loads it, predictions for new data."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import accuacl
from accuacl import strategies
from accuacl.base.errors import InputError, install
from accuacl.base.files import filling, reading, write_bytes, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments import Handle, checkpoints, read_steps
from accuacl.experiments.heads import KERNELS
from accuacl.labeling.project import loader, table_encoder, tables
from accuacl.labeling.project.encoders import load_backbone, token_table, word_weights
from accuacl.labeling.project.erasing import forgotten_rows, usable_items
from accuacl.labeling.project.estimates import interval_text
from accuacl.labeling.project.exported_tables import write_answers, write_csv
from accuacl.labeling.project.images import read_images
from accuacl.labeling.project.learned import Networks
from accuacl.labeling.project.new_items import NewItems
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE, WORD_VECTORS
from accuacl.labeling.project.task_inputs import LIMIT, SCALE, load_scale
from accuacl.labeling.project.tasks import read_like
from accuacl.labeling.store import counts_as

LARGEST_ERROR = 1e-3  # the most that a probability may differ in model.onnx or in half precision
TRIED = 1000  # how many items of the pools half precision is tried on
BLOCK = 4096  # how many items are predicted at a time
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
    """Write labels, model, and predictions for items without a label to a new folder; return the files.

    predict: new data to write predictions for too. column: the column of texts, if these are in a table. onnx: write
    the model as an ONNX file too. whole_places: write the sources of data as whole paths, not as names alone.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; give a new folder for the labels and the model.")
    with reading(out):
        if out.exists() and any(out.iterdir()):
            raise InputError(f"{out} is not empty; choose another folder.")
    learned = bool(read_steps(project.journal, "train"))
    if (predict is not None or onnx) and not learned:
        raise InputError("nothing has been learned yet, so there is no model to predict with; label a round first.")
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
            written += [out / "MODEL_CARD.md", _write_unlabelled(project, out, on_progress, whole_places)]
        if onnx:
            written.append(write_onnx(out))
        if items is not None:
            written.append(_predictions(items, out, on_progress))
    return written


def _write_unlabelled(project: Project, out: Path, on_progress: OnProgress, whole_places: bool) -> Path:
    """Write predictions for every unlabelled item of the embedded tasks, the least certain first; return the file."""
    networks = Networks.with_all(project)
    handle = read_steps(project.journal, "train")[-1].result
    model, seen = networks.model(handle), np.array(handle["seen"], np.int64)
    names, columns = class_columns(project, handle["seen"])
    merge = np.eye(len(names), dtype=np.float32)[columns]
    labelled, text = project.store.labels(), ("text",) if project.settings.kind == "texts" else ()
    rows: list[list[Any]] = []
    for task in project.tasks.all()[: len(networks.opened)]:
        ids = np.setdiff1d(usable_items(project.tasks, task), list(labelled))
        table, source = project.tasks.table(task.index), task.source(whole_places)
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


# The model


def write_model(project: Project, out: Path) -> list[Path]:
    """Write the model after its last training; return the files."""
    s = project.settings
    handle = read_steps(project.journal, "train")[-1].result
    trained = checkpoints.load_tensors(project.weights, handle)
    names, columns = class_columns(project, handle["seen"])
    about: dict[str, Any] = {"kind": s.kind, "classes": names, "columns": columns, "limit": LIMIT}
    about |= {"network": NONE, "layer": ""}
    outputs = {key: trained[key][handle["seen"]] for key in ("head.weight", "head.bias") if key in trained}
    state = {f"head.{key}": value for key, value in outputs.items()}
    if s.frozen:
        state |= {f"head.{key}": value for key, value in trained.items() if key.startswith("embed.")}
    if "head.support" in trained:
        which, blocks, shares = (trained[f"head.{name}"].tolist() for name in ("kernels", "columns", "shares"))
        terms = zip(which, blocks, shares, strict=True)
        about["kernel"] = [(KERNELS[kernel], *block, share) for kernel, block, share in terms]
        kept = _in_half_precision(about["kernel"], trained | outputs, _sample(project, handle), columns)
        state |= {f"head.{name}": value for name, value in kept.items()}
    if s.has_network:
        backbone = load_backbone(s)
        network = {f"embed.{key}": value for key, value in backbone.embed.state_dict().items()} if s.frozen else trained
        state |= {f"network.{k.removeprefix('embed.')}": v for k, v in network.items() if k.startswith("embed.")}
        about |= {"network": "own" if s.own else s.model, "layer": getattr(backbone.embed, "name", ""), "side": s.side}
        about |= {"mean": backbone.transform.mean, "std": backbone.transform.std}
    first, copies = project.tasks.folder_of(0), {"model.py": Path(loader.__file__)}
    if s.own:
        own, _, about["function"] = s.model.rpartition(":")
        copies["own_model.py"] = Path(own)
    if (first / SCALE).exists():
        scale = load_scale(project.tasks)
        state |= {f"scale.{key}": torch.from_numpy(np.array(value)) for key, value in scale.items()}
    if s.kind == "files":
        about["length"] = len(state["scale.mean"])
    if s.kind == "texts":
        about |= {"texts": "own" if s.own else "onnx" if s.sentence_model else s.model, "words": s.words}
    if s.sentence_model:
        copies |= {loader.SENTENCES: s.files[0], "tokenizer.json": s.files[1]}
    elif s.kind == "texts" and not s.own:
        state["idf"] = torch.from_numpy(word_weights(first / "words.json"))
    if s.model == WORD_VECTORS:
        state["tokens"] = torch.from_numpy(token_table(s))
        copies["tokenizer.json"] = s.files[1]
    if s.kind == "vectors":
        about["length"] = project.tasks.width()
    if s.kind == "tables":
        copies |= {"table.json": first / tables.FILE, "table_encoder.py": Path(table_encoder.__file__)}
    checkpoints.save_tensors(out / "model.safetensors", state)
    write_text(out / "model.json", json.dumps(about, indent=1) + "\n")
    for name, file in copies.items():
        with reading(file):
            data = file.read_bytes()
        write_bytes(out / name, data)
    return [out / name for name in ("model.safetensors", "model.json", *copies)]


def _in_half_precision(
    terms: list[tuple[str, int, int, float]], trained: dict[str, Tensor], sample: Tensor, merged: list[int]
) -> dict[str, Tensor]:
    """Return the rows of a kernel head in half precision, or as they are if that would change what it predicts.

    That is tried on the support rows and on a sample of embeddings: no probability may move by more than LARGEST_ERROR,
    and no predicted class may change. merged: the class of each of the head's columns.
    """
    rows = {name: trained[name] for name in ("head.support", "head.reference") if len(trained[name])}
    halves = {name: value.half() for name, value in rows.items()}
    tried, classes = torch.cat([rows["head.support"], sample]), torch.eye(max(merged) + 1)[merged]

    def probabilities(rows: dict[str, Tensor]) -> Tensor:
        features = loader.kernel_features(terms, tried, rows["head.support"].float(), rows.get("head.reference"))
        return nn.functional.linear(features, trained["head.weight"], trained["head.bias"]).softmax(1) @ classes

    before, after = probabilities(rows), probabilities(halves)
    alike = float((before - after).abs().max()) <= LARGEST_ERROR and torch.equal(before.argmax(1), after.argmax(1))
    return halves if alike else rows


def _sample(project: Project, handle: Handle) -> Tensor:
    """Return embeddings of up to TRIED items of all pools, as the head sees them."""
    networks = Networks.with_all(project)
    tasks = project.tasks.all()[: len(networks.opened)]
    items = np.concatenate([usable_items(project.tasks, task) for task in tasks])
    chosen = strategies.in_sample_order(items, project.settings.seed)[:TRIED]
    seen = np.array(handle["seen"], np.int64)
    return torch.from_numpy(networks.features(networks.model(handle), chosen, seen).embeddings)


def class_columns(project: Project, seen: list[int]) -> tuple[list[str], list[int]]:
    """Return the names of the classes that the model knows, and the index of the one each column of its head means."""
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
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


def _example(model: loader.Model) -> Tensor:
    """Return three rows of the shape that the model takes, to trace and check the ONNX file with."""
    about = model.about
    shape: tuple[int, ...] = (3, about["side"], about["side"]) if about["kind"] == "images" else ()
    shape = shape or (about.get("length") or len(model.state["scale.mean"]),)
    return torch.from_numpy(np.random.default_rng(0).random((3, *shape), np.float32))


class _Whole(nn.Module):
    """The model as a module, from inputs to probabilities."""

    def __init__(self, model: loader.Model) -> None:
        super().__init__()
        self.network = model.embed
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        return self.model.forward(x)


# The model card


def model_card(project: Project, whole_places: bool = True) -> str:
    """Return the model card in Markdown: what the model is, what it learned from and how good it is.

    whole_places: write sources as whole paths, not as names alone.
    """
    s, estimates = project.settings, project.estimates()
    names = {label.id: label.name for label in project.store.classes()}
    network = "none: the data are their own embedding" if s.model == NONE else Path(s.model).name
    tasks = [
        (
            str(task.index + 1),
            task.kind,
            str(task.count - len(forgotten_rows(project.tasks, task))),
            str(project.store.used(task.index)),
            task.source(whole_places),
        )
        for task in project.tasks.all()
    ]
    counts = sorted(estimates.labels_by_class.items(), key=lambda pair: -pair[1])
    measured = [
        (str(t.task + 1), str(t.now.count), *map(interval_text, (t.learned, t.now, t.forgetting)))
        for t in estimates.tasks
    ]
    quality = ["Nothing was held out, so nothing is known about its accuracy on new data."]
    if measured:
        quality = [
            "Percent of held-out items that are right, with 95 % intervals. They were drawn at random from each task's "
            "pool and never used for training.",
            _table(("task", "held out", "when learned", "now", "forgetting"), measured),
        ]
    blocks = [
        f"# Model card\n\nMade by accuacl {accuacl.__version__} on {time.strftime('%Y-%m-%d', time.gmtime())}.",
        "## Data",
        _table(("task", "kind", "items", "labels", "source"), tasks),
        "## Classes",
        _table(("class", "labels"), [(names[id], str(count)) for id, count in counts]),
        "## Model",
        f"- network: {network}{'' if s.frozen else ', trained as a whole'}\n"
        f"- head: {'kernel' if s.learner == 'kernel' else s.head}\n- learner: {s.learner}\n"
        f"- items to label were chosen by: {s.strategy}\n- seed: {s.seed}",
        "## How good it is",
        *quality,
        *([estimates.calibration] if estimates.calibration else []),
        "## Limits",
        "The estimates hold for data like the pools above, labelled by the same people. Classes with few labels are "
        "known badly; an item of no known class gets one of these classes nevertheless.",
        "## Use",
        f"`python model.py {ITEMS[s.kind]}`, or `import model; model.load(FOLDER).predict(items)`.",
    ]
    return "\n\n".join(blocks) + "\n"


def _table(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown; cells are escaped, so that text of people is not read as markup."""
    escaped = str.maketrans({letter: f"\\{letter}" for letter in "|\\`<>*_[]"})
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()).translate(escaped) for cell in line)} |" for line in lines)
