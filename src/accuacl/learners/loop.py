"""The training loop that all learners share."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import torch_generator
from accuacl.learners.batches import every
from accuacl.learners.round import Round, Settings
from accuacl.learners.sgd import SGD
from accuacl.memory import Memory


class Learner:
    """What a learner adds to the loop. It lives for one round."""

    def __init__(self, round: Round) -> None:
        self.round = round

    def start_epoch(self, epoch: int) -> None:
        """Get ready to replay."""

    def loss(self, rows: Tensor) -> Tensor:
        """The loss of one step on the new examples at `rows`, and on what is replayed beside them."""
        raise NotImplementedError

    def after_step(self, epoch: int, rows: Tensor) -> None:
        """The model has learned from `rows`."""

    def memory(self) -> Memory:
        """The memory as the task leaves it."""
        raise NotImplementedError


def fit(round: Round, learner: Learner, progress: OnProgress | None = None) -> None:
    """Train the round's model for all epochs, with a fresh optimiser."""
    model, settings, seed = round.model, round.settings, round.seed
    optimiser = SGD(model.parameters(), settings.momentum, settings.weight_decay)
    model.train()
    for epoch in range(settings.epochs):
        lr = learning_rate(settings, epoch)
        round.draws = torch_generator(*seed, epoch, "augment")
        learner.start_epoch(epoch)
        batches = every(torch.arange(round.new), settings.batch, torch_generator(*seed, epoch, "order"))
        total = torch.zeros((), device=settings.device)
        for rows in batches:
            loss = learner.loss(rows)
            optimiser.forget()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step(lr)
            total += loss.detach()
            learner.after_step(epoch, rows)
        mean = total.item() / len(batches)  # the only time that a device is waited for
        if not math.isfinite(mean):
            raise InputError(f"the loss is {mean} after epoch {epoch}; try a smaller lr than {settings.lr:g}.")
        if progress:
            done, all_ = epoch + 1, settings.epochs
            progress(Progress(done, all_, f"epoch {done} loss {mean:.3f}", "training", (done, all_)))
    optimiser.forget()
    model.eval()


def learning_rate(settings: Settings, epoch: int) -> float:
    """Half a cosine from `lr` to `lr_min`, stepped per epoch."""
    end = min(settings.lr_min, settings.lr)
    return end + (settings.lr - end) * (1 + math.cos(math.pi * epoch / settings.epochs)) / 2
