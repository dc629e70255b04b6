"""One round of training: what it is given, and the examples that it can see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.learners.augment import Transform
from accuacl.memory import Memory
from accuacl.models import Classifier

Ids = NDArray[np.int64]
Fetch = Callable[[Ids], Tensor]


@dataclass(frozen=True)
class Settings:
    """How to train."""

    epochs: int
    batch: int
    lr: float
    momentum: float
    weight_decay: float
    capacity: int  # of the memory
    classes: int  # in the head
    device: str = "cpu"
    lr_min: float = 0.001  # where the cosine ends
    cycled: bool = False  # ER replays at every step, not once an epoch

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 1), ("classes", 1), ("capacity", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; give at least {least}.")
        for name in ("lr", "momentum", "weight_decay", "lr_min"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} is {getattr(self, name)}; give a number of at least 0.")


@dataclass(frozen=True)
class TaskData:
    """The examples of this task that have labels so far."""

    ids: Ids
    labels: Ids
    inputs: Tensor  # uint8 (n, H, W, C) or float32 (n, d)


@dataclass
class Round:
    """The state of one round. `inputs` hold the task's examples first, then the memory's: a *row* is a row of these."""

    model: Classifier
    settings: Settings
    transform: Transform
    seed: tuple[int, ...]
    last: bool  # the task's last round
    seen: Tensor  # classes seen before or in this task
    variant: str
    memory: Memory  # as it was when the task began
    new: int  # the task's examples are the rows below this
    ids: Ids
    labels: Tensor
    inputs: Tensor
    draws: torch.Generator = field(default_factory=torch.Generator)  # this epoch's crops and flips

    @property
    def memory_rows(self) -> Tensor:
        """The rows of the memory as it was when the task began, in its order."""
        return torch.arange(self.new, len(self.ids))

    def rows_of(self, ids: Ids) -> Tensor:
        """The rows of examples by id."""
        return torch.from_numpy(self._order[np.searchsorted(self.ids, ids, sorter=self._order)])

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return np.argsort(self.ids, kind="stable")

    def named(self, rows: Tensor) -> tuple[Ids, Ids]:
        """Ids and labels, as a memory takes them."""
        return self.ids[rows.numpy()], self.labels[rows.to(self.labels.device)].cpu().numpy()

    def augmented(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs, cropped and flipped afresh, and labels."""
        rows = rows.to(self.inputs.device)
        return self.transform.augmented(self.inputs[rows], self.draws), self.labels[rows]

    def plain(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs as they are stored, normalised, and labels."""
        rows = rows.to(self.inputs.device)
        return self.transform.plain(self.inputs[rows]), self.labels[rows]

    def logits(self, x: Tensor) -> Tensor:
        """The model's answer in training. A single example has no variance: BatchNorm then uses its running one."""
        if len(x) > 1:
            return self.model(x)
        self.model.eval()
        answer = self.model(x)
        self.model.train()
        return answer


def begin(
    model: Classifier,
    task: TaskData,
    memory: Memory,
    fetch: Fetch,
    settings: Settings,
    transform: Transform,
    seed: tuple[int, ...],
    last: bool,
    seen: Ids,
    variant: str,
) -> Round:
    """Checks what a round is given and brings all its examples to the device."""
    n, classes = len(task.ids), model.head.out_features
    if not n == len(task.labels) == len(task.inputs):
        raise InputError(
            f"the task has {n} ids, {len(task.labels)} labels and {len(task.inputs)} inputs; give as many of each."
        )
    if n == 0:
        raise InputError("the task has no labelled example; label at least one before training.")
    if classes < settings.classes:
        raise InputError(f"the head has {classes} classes, the settings {settings.classes}; grow the model first.")
    labels = np.concatenate([task.labels, memory.labels]).astype(np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"labels run from {labels.min()} to {labels.max()}, the head has {classes} classes; grow it.")
    inputs = task.inputs
    if len(memory):
        past = fetch(memory.ids)
        if past.shape != (len(memory), *inputs.shape[1:]) or past.dtype != inputs.dtype:
            raise InputError(
                f"the memory's inputs are {past.dtype} {tuple(past.shape)}, the task's {inputs.dtype} "
                f"{tuple(inputs.shape)}; fetch must give {len(memory)} of the same kind."
            )
        inputs = torch.cat([inputs, past])
    device = torch.device(settings.device)
    return Round(
        model.to(device),
        settings,
        transform,
        seed,
        last,
        torch.from_numpy(np.unique(np.concatenate([np.asarray(seen, np.int64), labels]))).to(device),
        variant,
        memory,
        n,
        np.concatenate([task.ids, memory.ids]).astype(np.int64),
        torch.from_numpy(labels).to(device),
        inputs.to(device),
    )
