"""What a project's model has learned from: rows of items as the head sees them, and a fit of the labels as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.experiment import read_steps
from accuacl.labeling.project.inputs import task_inputs as inputs
from accuacl.labeling.project.inputs.texts import text_encoder
from accuacl.labeling.project.items.sources import read_like
from accuacl.labeling.project.items.tasks import Tasks
from accuacl.labeling.project.learning.networks import Networks
from accuacl.labeling.project.learning.taught import taught_by
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.ridge import fit


def rows(settings: ProjectSettings, tasks: Tasks, items: list[int]) -> NDArray[Any]:
    """Items as the head sees them."""
    return inputs.open_task_inputs(tasks, _made(tasks), settings)[np.array(items, np.int64)]


def row_again(settings: ProjectSettings, tasks: Tasks, item: int, column: str) -> NDArray[np.float32]:
    """The same of an item that the project has erased, from the file that it came from."""
    task = tasks.find(item)
    number, folder = item - task.first, tasks.folder_of(0)
    name = tasks.table(task.index)["name"][number]
    if task.kind == "images":
        encoded, bad = inputs.encoder(tasks, task, settings)(slice(number, number + 1))
        if bad:
            raise InputError(f"{name} cannot be read in {task.place} any more; bring it back to take its share out.")
    else:
        place = Path(task.place)
        if not place.exists():
            raise InputError(f"{place} does not exist any more; bring it back to take the share of {name!r} out.")
        source = read_like(tasks, task.kind, place, column)
        if name not in source.names:
            raise InputError(f"{place} has no row {name!r} any more; bring it back to take its share out.")
        where = source.names.index(name)
        if task.kind == "texts":
            assert source.texts is not None
            encoded = text_encoder(settings, tasks)([source.texts[where]])
        elif task.kind == "tables":
            assert source.shown is not None
            encoded = tasks.schema().encode([source.shown[where]])
        else:
            assert source.vectors is not None
            encoded = inputs.embedded(settings, source.vectors[[where]])
    return inputs.scaled(encoded, inputs._load(folder / "scale.safetensors"))[0]


def difference(directory: Path, settings: ProjectSettings, tasks: Tasks) -> float:
    """By how much the model's weights differ from a fit of the labels that it was taught; relative, 0 without labels.

    What was labelled or corrected since the last training, the next one learns.
    """
    journal = directory / "journal.sqlite"
    handle, labels = read_steps(journal, "train")[-1].result, taught_by(read_steps(journal, "label"))
    if not labels:
        return 0.0
    ids, seen = sorted(labels), handle["seen"]
    networks = Networks(settings, directory / "weights", tasks)
    for made in _made(tasks):
        networks.open(made)
    model = networks.model(handle)
    x = networks.features(model, np.array(ids, np.int64), np.array(seen)).embeddings
    head = fit(torch.from_numpy(np.array(x)), torch.tensor([labels[item] for item in ids]), model.head.out_features)
    weight = model.head.weight.detach().cpu().double()
    off, largest = (weight[seen] - head.weight[seen]).abs().max(), head.weight.abs().max()
    return float(off / largest) if largest else float(off)  # with a single class all weights are 0


def _made(tasks: Tasks) -> list[dict[str, Any]]:
    """What `prepare` has said of the tasks whose inputs are there."""
    made = []
    for task in tasks.all():
        path = tasks.folder_of(task.index) / "inputs.json"
        if not path.exists():
            break
        made.append(json.loads(path.read_text()))
    return made
