"""One round of training: the model, the examples that it may see, and a step of SGD."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.learners.augment import Transform
from accuacl.learners.sgd import SGD
from accuacl.learners.training import Fetch, Ids, TaskData, Training
from accuacl.memory import Memory
from accuacl.models import Classifier, evaluating

EVALUATED = 256  # examples at a time


class Round:
    """The state of one round. `inputs` hold the task's examples first, then the memory's: a *row* is a row of these."""

    lr: float  # of this epoch
    draws: torch.Generator  # this epoch's crops and flips

    def __init__(
        self,
        model: Classifier,
        task: TaskData,
        memory: Memory,
        fetch: Fetch,
        training: Training,
        transform: Transform,
        *,
        seed: tuple[int, ...],
        last_round: bool,
        seen: Ids,
    ) -> None:
        """Check what is given, and bring the model and all examples to the device.

        task: all its labels so far. memory: as it was when the task began; `fetch(ids)` gives its inputs. seed: of
        this run, task and round. last_round: of the task. seen: classes seen before or in this task.
        """
        labels = _check(model, task, memory, training)
        device = torch.device(training.device)
        self.model, self.memory = model.to(device), memory
        self.training, self.transform = training, transform
        self.seed, self.last_round = seed, last_round
        self.seen = torch.from_numpy(np.unique(np.concatenate([np.asarray(seen, np.int64), labels]))).to(device)
        self.new = len(task.ids)  # the task's examples are the rows below this
        self.ids = np.concatenate([task.ids, memory.ids]).astype(np.int64)
        self.labels = torch.from_numpy(labels).to(device)
        self.inputs = _inputs(task, memory, fetch).to(device)
        self.optimiser = SGD(self.model.parameters(), training.momentum, training.weight_decay)
        self.lr, self.draws = training.lr, torch.Generator()

    @property
    def new_rows(self) -> Tensor:
        """The rows of the task's examples."""
        return torch.arange(self.new)

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

    def outside(self, memory: Memory, rows: Tensor) -> Tensor:
        """Those of the rows whose examples are not in the memory, each once."""
        first = np.zeros(len(rows), bool)
        first[np.unique(rows.numpy(), return_index=True)[1]] = True
        return rows[torch.from_numpy(first & ~np.isin(self.ids[rows.numpy()], memory.ids))]

    def ids_and_labels(self, rows: Tensor) -> tuple[Ids, Ids]:
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

    def evaluated(self, network: Callable[[Tensor], Tensor], rows: Tensor) -> NDArray[np.float32]:
        """What the network, which is the model or a part of it, gives for examples in eval mode, un-augmented."""
        with torch.no_grad(), evaluating(self.model):
            parts = [network(self.plain(part)[0]) for part in torch.split(rows, EVALUATED)]
        return torch.cat(parts).cpu().numpy()

    def logits(self, x: Tensor) -> Tensor:
        """The model's logits in training. One example has no variance: BatchNorm then uses its running one."""
        if len(x) > 1:
            return self.model(x)
        self.model.eval()
        logits = self.model(x)
        self.model.train()
        return logits

    def step(self, loss: Tensor) -> Tensor:
        """One step of SGD against the gradient of the loss; the loss, without its graph."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step(self.lr)
        return loss.detach()


def _check(model: Classifier, task: TaskData, memory: Memory, training: Training) -> Ids:
    """All labels, the task's first, if they and the head fit together."""
    n, classes = len(task.ids), model.head.out_features
    if not n == len(task.labels) == len(task.inputs):
        raise InputError(
            f"the task has {n} ids, {len(task.labels)} labels and {len(task.inputs)} inputs; give as many of each."
        )
    if n == 0:
        raise InputError("the task has no labelled example; label at least one before training.")
    if classes < training.classes:
        raise InputError(f"the head has {classes} classes, the settings {training.classes}; grow the model first.")
    labels = np.concatenate([task.labels, memory.labels]).astype(np.int64)
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"labels run from {labels.min()} to {labels.max()}, the head has {classes} classes; grow it.")
    return labels


def _inputs(task: TaskData, memory: Memory, fetch: Fetch) -> Tensor:
    """The task's inputs, then the memory's."""
    if not len(memory):
        return task.inputs
    past = fetch(memory.ids)
    if past.shape != (len(memory), *task.inputs.shape[1:]) or past.dtype != task.inputs.dtype:
        raise InputError(
            f"the memory's inputs are {past.dtype} {tuple(past.shape)}, the task's {task.inputs.dtype} "
            f"{tuple(task.inputs.shape)}; fetch must give {len(memory)} of the same kind."
        )
    return torch.cat([task.inputs, past])
