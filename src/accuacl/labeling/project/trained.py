"""What a project has learned so far, for data that it does not hold: raw images, vectors or texts to embeddings."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accuacl import learners, models
from accuacl.base.errors import InputError
from accuacl.experiment.tensors import load_tensors
from accuacl.labeling.project import backbones, words
from accuacl.labeling.project.estimates import recorded
from accuacl.labeling.project.inputs import LIMIT
from accuacl.labeling.project.project import Project
from accuacl.labeling.project.settings import NONE
from accuacl.labeling.project.tables import read_texts


@dataclass(frozen=True)
class Trained:
    """The model from raw inputs on, how they are normalised, and which columns of its head count."""

    model: models.Classifier
    transform: learners.Transform
    seen: list[int]
    side: int  # of its images; 0: it takes vectors
    fingerprint: str


def trained(project: Project) -> Trained:
    """The model after the last training, its embedding what the project's own strategy chooses by."""
    s = project.settings
    steps = recorded(project.journal, "train")
    if not steps:
        raise InputError(f"the project in {project.directory} has learned nothing yet; label a round first.")
    handle = steps[max(steps)]
    state = load_tensors(project.directory / "weights", handle)
    classes, backbone = len(state["head.weight"]), backbones.load(s) if s.model != NONE else None
    transform, known = backbone.transform if backbone else learners.Transform(), [handle["sha256"], s.model_dump_json()]
    if s.frozen:
        data = (project.tasks.place(0) / "scale.safetensors").read_bytes()
        known.append(hashlib.sha256(data).hexdigest())
        scale = _Scale(safetensors.torch.load(data))
        head = models.build(s.head, classes, seed=s.seed, input_shape=(len(scale.mean),), width=s.width)
        head.load_state_dict(state)
        before = backbone.embed if backbone else nn.Identity()
        model = models.Classifier(nn.Sequential(before, scale, head.embed), head.head)
    else:
        model = backbones.tuned(s, classes)
        model.load_state_dict(state)
    side = s.side if s.kind == "images" else 0
    return Trained(model, transform, handle["seen"], side, f"{' '.join(known)} {handle['seen']}")


class Texts:
    """Texts of a .csv file or JSON lines as the vectors of words that a project of texts takes."""

    def __init__(self, project: Project, file: Path, column: str) -> None:
        if not file.is_file():
            raise InputError(f"{file} is no file; this project labels texts, so give a .csv file or JSON lines.")
        source = read_texts(file, column)
        self.names, self.texts = source.names, source.texts or []
        self.words = project.tasks.place(0) / "words.json"
        self.files: list[str] = [str(file), str(self.words)]
        self.reading: list[Any] = [column]

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, start: int, stop: int) -> tuple[list[Any], NDArray[np.float32]]:
        return list(self.names[start:stop]), words.vectors(self.texts[start:stop], self.words)

    def where(self, row: int) -> str:
        return f"{self.files[0]}, row {row}"


class _Scale(nn.Module):
    """As `inputs.scaled`."""

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
