"""One round of training: its settings, its examples and their transformation, batches, and SGD."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.errors import InputError
from accuacl.base.randomness import torch_generator
from accuacl.experiments.learners.registry import PAPER
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import Classifier
from accuacl.torch import evaluating

Ids = NDArray[np.int64]
Fetch = Callable[[Ids], Tensor]  # raw inputs by id
TRANSFORMS = {  # mean, standard deviation, crop
    "cifar10": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 4),
    "cifar100": ((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762), 4),
    "tiny-imagenet": ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010), 0),
}
EVALUATED = 256  # examples that are evaluated at a time


@dataclass(frozen=True)
class Training:
    """The settings of a round of training."""

    epochs: int
    batch: int
    lr: float
    momentum: float
    weight_decay: float
    capacity: int  # of the memory
    device: str = "cpu"
    cycled: bool = False  # ER: replay at every step, not only until an epoch has replayed the memory once
    alpha: float = 0.1  # DER++: weight of the squared error to the stored logits
    beta: float = 0.5  # DER++: weight of the cross entropy of replayed examples
    balanced: bool = False  # as many examples of each class in an epoch, instead of every example once
    repeated: bool = False  # every epoch repeats the first: its batches, crops and flips
    policy: str = PAPER  # what the memory keeps: as the learner has it in the paper, or a policy of `memory`
    pool_learning: str = "off"  # kernel: how the head learns from the pool
    kind: str = "vectors"  # kernel: the kind of data, which decides its kernels
    blocks: tuple[tuple[int, int], ...] = ()  # kernel: columns of embeddings that belong together; none: all do


@dataclass(frozen=True)
class TaskData:
    """The examples of this task that have labels so far."""

    ids: Ids
    labels: Ids
    inputs: Tensor  # uint8 (n, H, W, C) or float32 (n, d)


@dataclass(frozen=True)
class Transform:
    """Images come as uint8 (n, H, W, C) and leave as float32 (n, C, H, W), channels last; vectors stay (n, d).

    mean, std: of pixels in [0, 1] per channel, or of a vector's entries. crop: zero padding around the image, out of
    which one of its own size is cut. flip: left to right for half of the images.

    >>> Transform(mean=(0.5,), std=(0.5,)).plain(torch.full((1, 2, 2, 1), 255, dtype=torch.uint8)).unique()
    tensor([1.])
    """

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    crop: int = 0
    flip: bool = False

    def plain(self, x: Tensor) -> Tensor:
        """Normalised, nothing else."""
        if x.ndim == 4 and x.dtype == torch.uint8:
            scale, shift = self._scale(x.shape[3], 255.0, x.device)
            # A view, already channels last; the copy to float keeps that order.
            return x.permute(0, 3, 1, 2).float().mul_(scale[:, None, None]).add_(shift[:, None, None])
        if x.ndim == 2 and x.is_floating_point():
            if self.mean is None and self.std is None:
                return x.float()
            scale, shift = self._scale(x.shape[1], 1.0, x.device)
            return x.float() * scale + shift
        raise InputError(
            f"inputs are {x.dtype} of shape {tuple(x.shape)}; give images as uint8 (n, H, W, channels) "
            "or vectors as floats (n, d)."
        )

    def augmented(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Each image cropped and flipped on its own, then normalised. Vectors are only normalised."""
        if x.ndim == 4 and (self.crop or self.flip):
            x = self._crop_and_flip(x, generator)
        return self.plain(x)

    def _crop_and_flip(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, height, width, channels = x.shape
        pad = self.crop
        # Drawn on the CPU whatever the device, so that the same seed gives the same crops everywhere.
        top, left = torch.randint(0, 2 * pad + 1, (2, n, 1), generator=generator)
        mirrored = (torch.rand(n, 1, generator=generator) < 0.5) & self.flip
        rows = top + torch.arange(height)
        columns = left + torch.where(mirrored, torch.arange(width - 1, -1, -1), torch.arange(width))
        if pad:
            padded = x.new_zeros(n, height + 2 * pad, width + 2 * pad, channels)
            padded[:, pad : pad + height, pad : pad + width] = x
            x = padded
        # One gather of whole pixels from the flattened batch.
        first = torch.arange(n)[:, None] * x.shape[1]
        pixels = (first + rows)[:, :, None] * x.shape[2] + columns[:, None, :]
        return x.reshape(-1, channels)[pixels.flatten().to(x.device)].view(n, height, width, channels)

    def _scale(self, channels: int, top: float, device: torch.device) -> tuple[Tensor, Tensor]:
        """scale and shift such that x * scale + shift = (x / top - mean) / std."""
        mean, std = torch.tensor(self.mean or (0.0,)), torch.tensor(self.std or (1.0,))
        return (1 / (top * std)).expand(channels).to(device), (-mean / std).expand(channels).to(device)


def transform_of(name: str, inputs: NDArray[Any]) -> Transform:
    """Normalisation and augmentation: crop and flip at 32x32, flip only on larger images, none on vectors."""
    if inputs.ndim == 2:
        return Transform(None, None)
    mean, std, crop = TRANSFORMS.get(name, (*TRANSFORMS["cifar10"][:2], 4 if inputs.shape[1] <= 32 else 0))
    return Transform(mean, std, crop, flip=True)


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
        seen_before: Ids | None = None,
        pools: Sequence[Tensor] = (),
    ) -> None:
        """Bring the model and all examples to the device.

        task: all its labels so far, at least one. memory: as it was when the task began; `fetch(ids)` gives its inputs.
        seed: of this run, task and round. last_round: of the task. seen: classes seen before or in this task.
        seen_before: those seen when the task began; None: those that have no label in this task. pools: inputs without
        labels, a sample of each task's pool.
        """
        device = torch.device(training.device)
        self.model, self.memory = model.to(device), memory
        self.training, self.transform = training, transform
        self.seed, self.last_round, self.pools = seed, last_round, list(pools)
        labels = np.concatenate([task.labels, memory.labels]).astype(np.int64)
        self.seen = torch.from_numpy(np.unique(np.concatenate([np.asarray(seen, np.int64), labels]))).to(device)
        before = np.setdiff1d(self.seen.cpu().numpy(), task.labels) if seen_before is None else np.unique(seen_before)
        self.seen_before = torch.from_numpy(before.astype(np.int64)).to(device)
        self.new = len(task.ids)  # the task's examples are the rows below this
        self.ids = np.concatenate([task.ids, memory.ids]).astype(np.int64)
        self.labels = torch.from_numpy(labels).to(device)
        inputs = torch.cat([task.inputs, fetch(memory.ids)]) if len(memory) else task.inputs
        self.inputs = inputs.to(device)
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
        """Outputs of the network (the model or a part of it) in eval mode, for examples without augmentation."""
        return self.evaluated_inputs(network, self.inputs[rows.to(self.inputs.device)])

    def evaluated_inputs(self, network: Callable[[Tensor], Tensor], inputs: Tensor) -> NDArray[np.float32]:
        """Outputs of the network for inputs as they are stored."""
        with torch.no_grad(), evaluating(self.model):
            parts = torch.split(inputs, EVALUATED)
            return torch.cat([network(self.transform.plain(x.to(self.training.device))).cpu() for x in parts]).numpy()

    def drawn(self, epoch: int, purpose: str) -> torch.Generator:
        """The generator of an epoch for a purpose; where epochs are repeated, that of the first."""
        return torch_generator(*self.seed, 0 if self.training.repeated else epoch, purpose)

    def replay(self, rows: Tensor, epoch: int, full: bool = False) -> Iterator[Tensor]:
        """Batches of the rows to replay in an epoch, without end, as `cycle` makes them."""
        return cycle(rows, self.training.batch, self.drawn(epoch, "replay"), full)

    def logits(self, x: Tensor) -> Tensor:
        """The model's logits in training. One example has no variance: BatchNorm then uses its running one."""
        if len(x) > 1:
            return self.model(x)
        self.model.eval()
        logits = self.model(x)
        self.model.train()
        return logits

    def learn(self, rows: Tensor) -> Tensor:
        """One step on the mean cross entropy of these examples; returns the loss before the step."""
        x, y = self.augmented(rows)
        return self.step(cross_entropy(self.logits(x), y))

    def step(self, loss: Tensor) -> Tensor:
        """One step of SGD against the gradient of the loss; returns the loss, detached from its graph."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step(self.lr)
        return loss.detach()


class SGD:
    """torch.optim.SGD bit for bit, without the second or two that torch takes to import its optimisers' machinery."""

    def __init__(self, parameters: Iterable[Tensor], momentum: float, weight_decay: float) -> None:
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocity: list[Tensor | None] = [None] * len(self.parameters)

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self, lr: float) -> None:
        """One step against the gradients."""
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters):
                gradient = parameter.grad
                if gradient is None:
                    continue
                if self.weight_decay:
                    gradient.add_(parameter, alpha=self.weight_decay)  # in place: a new tensor costs 7 % of a step
                if self.momentum:
                    velocity = self.velocity[i]
                    if velocity is None:
                        velocity = self.velocity[i] = gradient.clone()
                    else:
                        velocity.mul_(self.momentum).add_(gradient)
                    gradient = velocity
                parameter.add_(gradient, alpha=-lr)


def every(rows: Tensor, batch: int, generator: torch.Generator) -> list[Tensor]:
    """All rows once, shuffled. A last batch of one joins the one before.

    >>> [len(rows) for rows in every(torch.arange(9), 4, torch.Generator())]
    [4, 5]
    """
    parts = list(torch.split(_shuffled(rows, generator), batch))
    if len(parts) > 1 and len(parts[-1]) == 1 and batch > 1:
        parts[-2:] = [torch.cat(parts[-2:])]
    return parts


def evenly(labels: Tensor, generator: torch.Generator) -> Tensor:
    """As many rows as given, equally many of each class, give or take one.

    Of a class with too many examples some are drawn; those of a class with too few are repeated.

    >>> labels = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1])
    >>> sorted(labels[evenly(labels, torch.Generator())].bincount().tolist())
    [4, 5]
    """
    classes = labels.unique()  # type: ignore[no-untyped-call]
    room, odd = divmod(len(labels), len(classes))
    parts = []
    for position, which in enumerate(torch.randperm(len(classes), generator=generator).tolist()):
        rows, count = (labels == classes[which]).nonzero()[:, 0], room + (position < odd)
        turns = [_shuffled(rows, generator) for _ in range(math.ceil(count / len(rows)))]
        parts.append(torch.cat(turns)[:count])
    return torch.cat(parts)


def once(rows: Tensor, batch: int, generator: torch.Generator) -> Iterator[Tensor]:
    """The rows shuffled, in batches as they come, and then no more."""
    if len(rows):
        yield from torch.split(_shuffled(rows, generator), batch)


def cycle(rows: Tensor, batch: int, generator: torch.Generator, full: bool) -> Iterator[Tensor]:
    """The rows again and again, shuffled afresh each time; fewer rows than a batch are one batch.

    full: a last batch that is smaller than the others is left out.
    """
    size = min(batch, len(rows))
    while size:
        for part in torch.split(_shuffled(rows, generator), size):
            if len(part) == size or not full:
                yield part


def draw(count: int, batch: int, generator: torch.Generator) -> Tensor:
    """At most `batch` different numbers below `count`: a batch from a memory that changes at every step."""
    return torch.randperm(count, generator=generator)[:batch]


def _shuffled(rows: Tensor, generator: torch.Generator) -> Tensor:
    return rows[torch.randperm(len(rows), generator=generator)]
