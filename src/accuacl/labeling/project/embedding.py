"""A project's model for `accuacl embed`: it turns data that the project does not hold into a pool."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.experiments import checkpoints, learners, models, read_steps
from accuacl.experiments.data import LISTS
from accuacl.experiments.embed import Checkpoint, Inputs, ReadOptions, open_inputs
from accuacl.experiments.networks import TORCH
from accuacl.labeling.project.encoders import (
    frozen_network,
    load_backbone,
    recorded_runtime,
    text_encoder,
    trainable_network,
)
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.tables import FILE
from accuacl.labeling.project.task_inputs import LIMIT, SCALE, load_scale
from accuacl.labeling.project.tasks import read_like
from accuacl.labeling.project.trust import trust_code as trust_settings


def open_for_embedding(
    directory: Path, data: str, options: ReadOptions, trust_code: bool = False
) -> tuple[Inputs, Checkpoint]:
    """Return the data, opened as the project's model takes it, and that model, for `embed`."""
    with Project.open(directory) as project:
        if trust_code:
            trust_settings(project.settings)
        if project.settings.kind == "files":
            raise InputError("embed cannot use a project of files; write their vectors to a .npy file, and embed that.")
        kind, checkpoint = project.settings.kind, checkpoint_of(project)
        if kind in ("texts", "tables"):
            return RowInputs(project, Path(data), options.column or "text"), checkpoint
        numbers = project.tasks.all()[0].columns or ()
        usual = LISTS if kind == "vectors" and not numbers else ()
        options = replace(options, image_size=options.image_size or checkpoint.size, usual=usual)
        return open_inputs(data, options, numbers), checkpoint


def checkpoint_of(project: Project) -> Checkpoint:
    """Return the model after the last training; from raw inputs it makes the embeddings that the strategy sees."""
    s = project.settings
    steps = read_steps(project.journal, "train")
    if not steps:
        raise InputError(f"the project in {project.directory} has learned nothing yet; label a round first.")
    handle = steps[-1].result
    state = checkpoints.load_tensors(project.weights, handle)
    classes, backbone = len(state["head.weight"]), load_backbone(s) if s.has_network else None
    prepared: dict[str, Any] = {"runtime": TORCH}
    transform, known = backbone.transform if backbone else learners.Transform(), [handle["sha256"], s.model_dump_json()]
    if s.frozen:
        scale = _Scale({name: torch.from_numpy(np.array(value)) for name, value in load_scale(project.tasks).items()})
        known.append(hashlib.sha256((project.tasks.folder_of(0) / SCALE).read_bytes()).hexdigest())
        head = models.build(s.head, classes, seed=s.seed, input_shape=(len(scale.mean),), width=s.width)
        head.load_state_dict(state)
        before = backbone.embed if backbone else nn.Identity()
        model = models.Classifier(nn.Sequential(before, scale, head.embed), head.head)
        if s.kind == "images" and (runtime := recorded_runtime(s, project.tasks)) != TORCH:
            rest = models.Classifier(nn.Sequential(scale, head.embed), head.head)
            prepared = {"network": frozen_network(s), "rest": rest, "runtime": runtime}
    else:
        model = trainable_network(s, classes)
        model.load_state_dict(state)
    side = s.side if s.kind == "images" else 0
    return Checkpoint(model, transform, handle["seen"], side, f"{' '.join(known)} {handle['seen']}", **prepared)


class RowInputs:
    """Texts, or rows of a table, as the vectors that a project of these takes."""

    def __init__(self, project: Project, file: Path, column: str) -> None:
        kind, first = project.settings.kind, project.tasks.folder_of(0)
        if not file.is_file():
            wanted = "a .csv file or JSON lines" if kind == "texts" else "a .csv, .tsv or Parquet file"
            raise InputError(f"{file} is not a file; this project labels {kind}, so give {wanted}.")
        items = read_like(project.tasks, kind, file, column)
        self.names, self.rows = items.names, list[Any](items.texts or items.shown or [])
        self.settings, self.tasks = project.settings, project.tasks
        self.files: list[str] = [str(file), *map(str, project.settings.files)]
        if not project.settings.own and not project.settings.sentence_model:
            self.files.append(str(first / ("words.json" if kind == "texts" else FILE)))
        self.reading: list[Any] = [column]

    @cached_property
    def encode(self) -> Callable[[list[Any]], NDArray[np.float32]]:
        return text_encoder(self.settings, self.tasks) if self.settings.kind == "texts" else self.tasks.schema().encode

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the encoder, which each worker process makes for itself."""
        return {name: value for name, value in self.__dict__.items() if name != "encode"}

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, start: int, stop: int) -> tuple[list[Any], NDArray[np.float32]]:
        return list(self.names[start:stop]), self.encode(self.rows[start:stop])

    def where(self, row: int) -> str:
        return f"{self.files[0]}, row {row}"


class _Scale(nn.Module):
    """`task_inputs.scaled` as a layer."""

    mean: Tensor
    std: Tensor
    each: Tensor

    def __init__(self, scale: dict[str, Tensor]) -> None:
        super().__init__()
        for name, value in scale.items():
            self.register_buffer(name, value)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1:] != self.mean.shape:
            raise InputError(f"{len(self.mean)} numbers each were expected.")
        return torch.clamp((x - self.mean) / self.std, -LIMIT, LIMIT) * self.each
