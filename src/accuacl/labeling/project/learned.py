"""What a project's model learns from and what it has learned: networks, rows of items as the head sees them, and sums.

Where only statistics are kept (`--keep statistics`), the sums of each class replace the examples of finished tasks.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.machine import device_of
from accuacl.experiments import Handle, Ids, checkpoints, learners, models, read_steps
from accuacl.experiments.data import InputRows
from accuacl.experiments.heads import (
    Sums,
    candidates_of_kind,
    examples_of,
    fit_ridge,
    fit_with_pool,
    from_tensors,
    merged,
    sample_ids,
    sums_of,
    to_tensors,
    together,
)
from accuacl.experiments.memory import Memory
from accuacl.features import Features
from accuacl.labeling.project.encoders import load_backbone, text_encoder, trainable_network
from accuacl.labeling.project.erasing import usable_items
from accuacl.labeling.project.rounds import labels_of, taught_by
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.task_inputs import TaskInputs, embedded, encoder, load_scale, open_task_inputs, scaled
from accuacl.labeling.project.tasks import FOLDERS, Tasks, read_like

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project


class Networks:
    """Networks with the weights of any step. `opened` names the tasks whose items they can see."""

    def __init__(self, settings: ProjectSettings, folder: Path, tasks: Tasks) -> None:
        self.settings, self.folder, self.tasks = settings, folder, tasks
        self.device = device_of(settings.device)
        self.transform = learners.Transform() if settings.frozen else load_backbone(settings).transform
        self.opened: list[dict[str, Any]] = []  # one description by `prepare` for each task that is visible
        self._inputs: TaskInputs | None = None
        self._read = ("", dict[str, torch.Tensor]())  # the last weights read or written, with their hash
        self._predicting: tuple[str, models.Classifier] | None = None  # the last network that predicted, with its hash

    @classmethod
    def with_all(cls, project: Project) -> Networks:
        """Networks that see the items of all tasks whose inputs are made."""
        networks = cls(project.settings, project.weights, project.tasks)
        for made in prepared_tasks(project.tasks):
            networks.open(made)
        return networks

    def open(self, prepared: dict[str, Any]) -> None:
        """Make the items of the next task, which is prepared, visible."""
        self.opened.append(prepared)
        self._inputs = open_task_inputs(self.tasks, self.opened, self.settings)

    @property
    def inputs(self) -> TaskInputs:
        assert self._inputs is not None, "no task is opened yet"
        return self._inputs

    def rows(self, ids: Ids) -> torch.Tensor:
        """Return the network's inputs of these items, one row each."""
        return torch.from_numpy(self.inputs[ids])

    def unreadable(self) -> set[int]:
        """Return the items that could not be embedded; nothing is learned from their labels."""
        tasks = self.tasks.all()
        return {int(tasks[task].ids[row]) for task, made in enumerate(self.opened) for row in made["bad"]}

    def model(self, weights: Handle | None, classes: int = 0) -> models.Classifier:
        """Return the network at the start, or with the weights of a handle, whose head has at least `classes` rows."""
        if weights and weights["sha256"] != self._read[0]:
            self._read = (weights["sha256"], checkpoints.load_tensors(self.folder, weights))
        model = self._new(len(self._read[1]["head.weight"]) if weights else max(1, classes))
        if weights:
            model.load_state_dict(self._read[1])
        model.grow(classes, self.settings.seed)
        return model.to(self.device)

    def predicting(self, weights: Handle) -> models.Classifier:
        """Return the network with the weights of a handle, for predictions only; cached."""
        if self._predicting is None or self._predicting[0] != weights["sha256"]:
            self._predicting = (weights["sha256"], self.model(weights))
        return self._predicting[1]

    def keep(self, weights: Handle, model: models.Classifier) -> None:
        """Cache the weights that were just written, which are needed next; the model must not be changed."""
        self._read = (weights["sha256"], model.state_dict())
        if self.settings.frozen:
            self._predicting = (weights["sha256"], model)

    def _new(self, classes: int) -> models.Classifier:
        s = self.settings
        if not s.frozen:
            return trainable_network(s, classes)
        return models.build(s.head, classes, seed=s.seed, input_shape=(self.inputs.shape[1],), width=s.width)

    def features(self, model: models.Classifier, ids: Ids, seen: Ids) -> Features:
        """Return the embeddings of items and their probabilities over the classes seen so far."""
        model.grow(int(seen.max()) + 1, self.settings.seed)  # a correction may have named a class not yet trained on
        rows: Any = InputRows(self.inputs, ids)  # type: ignore[arg-type]
        return Features(*models.predict(model, rows, self.transform, seen, device=self.device))

    def frozen_features(self, ids: Ids) -> Features:
        """Return the embeddings of items by a frozen network, before anything is learned."""
        return Features(self.inputs[ids], np.ones((len(ids), 1), np.float32))


def rows_of(settings: ProjectSettings, tasks: Tasks, items: list[int]) -> NDArray[Any]:
    """Return the inputs of the head for these items, one row each."""
    return open_task_inputs(tasks, prepared_tasks(tasks), settings)[np.array(items, np.int64)]


def row_from_source(settings: ProjectSettings, tasks: Tasks, item: int, column: str) -> NDArray[np.float32]:
    """Return the head's input of an erased item, made again from the file that the item came from."""
    task = tasks.find(item)
    row, place = item - task.first, Path(task.place)
    name = tasks.table(task.index)["name"][row]
    lost = InputError(f"{place} no longer has {name!r}; restore it, so that what was learned from it can be removed.")
    if task.kind in FOLDERS:
        encoded, bad = encoder(tasks, task, settings)([row])
        if bad:
            raise lost
        return scaled(encoded, load_scale(tasks))[0]
    if not place.exists():
        raise lost
    source = read_like(tasks, task.kind, place, column)
    if name not in source.names:
        raise lost
    items = source.only([source.names.index(name)])
    if items.texts is not None:
        encoded = text_encoder(settings, tasks)(items.texts)
    elif items.vectors is not None:
        encoded = embedded(settings, items.vectors)
    else:
        encoded = tasks.schema().encode(items.shown or [])
    return scaled(encoded, load_scale(tasks))[0]


def difference_from_fit(project: Project) -> float:
    """Return how much the model differs from a new fit of the labels that it was taught; 0 without labels.

    Weights are compared, for a kernel head the logits of the taught items; relative to the largest. What was labelled
    or corrected since the last training, the next one learns.
    """
    settings, tasks, journal = project.settings, project.tasks, project.journal
    last, labels = read_steps(journal, "train")[-1], taught_by(read_steps(journal, "label"))
    if not labels:
        return 0.0
    networks = Networks.with_all(project)
    model, seen = networks.model(last.result), np.array(last.result["seen"], np.int64)

    def rows(ids: Ids) -> NDArray[np.float32]:
        return np.array(networks.features(model, ids, seen).embeddings)

    ids = np.array(sorted(labels), np.int64)
    x, y, count = rows(ids), labels_of(ids, labels), model.head.out_features
    if settings.learner != "kernel":
        expected = fit_ridge(torch.from_numpy(x), torch.from_numpy(y), count).weight.numpy()[seen]
        return _relative(model.head.weight.detach().cpu().double().numpy()[seen], expected)
    known, pools = set(labels), list[Ids]()
    for step in read_steps(journal, "label"):
        known |= {item for item, _ in step.result["labels"]} | set(step.result["skipped"])
    for task in tasks.all()[: (last.task or 0) + 1] if settings.pool_learning != "off" else ():
        pools.append(np.setdiff1d(usable_items(tasks, task), list(known)))
    blocks = settings.blocks or ((0, x.shape[1]),)
    head = fit_with_pool(
        x,
        y,
        [rows(sample_ids(items, len(pools), settings.seed)) for items in pools if len(items)],
        count,
        mode=settings.pool_learning,
        candidates=candidates_of_kind("texts" if settings.blocks else "vectors", blocks),
        blocks=blocks,
        ids=ids,
    )
    device = networks.device
    with torch.inference_mode():  # both models in float32, so that rounding of large weights does not count
        given = torch.from_numpy(x).to(device)
        logits, expected = (layer(given).cpu().numpy() for layer in (model.head, models.KernelLayer.of(head, device)))
    return _relative(logits, expected)


def _relative(values: NDArray[Any], expected: NDArray[Any]) -> float:
    off, largest = np.abs(values - expected).max(), np.abs(expected).max()
    return float(off / largest) if largest else float(off)  # with a single class all weights are 0


def prepared_tasks(tasks: Tasks) -> list[dict[str, Any]]:
    """Return the descriptions by `prepare` of the tasks whose inputs are made."""
    prepared: list[dict[str, Any]] = []
    while (made := tasks.inputs(len(prepared))) is not None:
        prepared.append(made)
    return prepared


# Sums in place of examples


def load_sums(folder: Path, handle: Handle | None) -> Sums:
    """Return the sums of all finished tasks."""
    tensors = checkpoints.load_tensors(folder, handle) if handle else None
    return from_tensors(tensors) if tensors and len(tensors["classes"]) else {}


def save_sums(path: Path, sums: Sums) -> Handle:
    empty = {name: torch.empty(0) for name in ("classes", "counts", "ranks", "means", "scatters")}
    return dict(checkpoints.save_tensors(path, to_tensors(sums) if sums else empty))


def as_memory(sums: Sums, into: dict[int, int]) -> tuple[Memory, NDArray[np.float32]]:
    """Return a memory of rows that have these sums, with merges applied; row i has the id -1 - i."""
    if not sums:
        return Memory.empty(), np.empty((0, 0), np.float32)
    rows, labels = examples_of(merged(sums, into))
    return Memory(-1 - np.arange(len(rows)), labels.numpy()), rows.float().numpy()


def with_task(sums: Sums, rows: NDArray[Any], labels: Ids, into: dict[int, int]) -> Sums:
    """Return the sums with the examples of a task that has ended added to them."""
    return together(merged(sums, into), sums_of(torch.from_numpy(rows), torch.from_numpy(labels)))
