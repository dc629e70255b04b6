"""Dark experience replay ++ (Buzzega et al., 2020)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import cycle, draw
from accuacl.learners.loop import Learner
from accuacl.learners.round import Round
from accuacl.memory import Memory, class_balanced, reservoir

ALPHA, BETA = 0.1, 0.5
EVALUATED = 256  # examples at a time


class DERpp(Learner):
    """CE(new) + 0.1 MSE(logits of replayed, those stored) + 0.5 CE(replayed).

    paper: one memory batch for both terms, full or none, in one pass with the new; a class-balanced memory, whose
    logits are those after the task in eval mode. original: a batch for each term, from a reservoir that is offered
    every new batch with the logits that training just gave.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.live = round.variant == "original"
        self.buffer = round.memory
        if len(self.buffer) and self.buffer.logits is None:
            raise InputError("the memory has no logits; give der++ a memory that der++ has made.")
        self.stored = self._stored(np.arange(len(self.buffer)))  # of the memory as it was when the task began

    def start_epoch(self, epoch: int) -> None:
        self.draws = torch_generator(*self.round.seed, epoch, "replay")
        inside = torch.arange(len(self.round.memory))
        self.replay = cycle(inside, self.round.settings.batch, self.draws, full=True)

    def loss(self, rows: Tensor) -> Tensor:
        if self.live:
            return self._with_two_batches(rows)
        inside, n = next(self.replay, None), len(rows)
        # One pass for both, as the paper's code had it: BatchNorm then sees in training what it will see in testing.
        x, y = self.round.augmented(rows if inside is None else torch.cat([rows, self.round.memory_rows[inside]]))
        z = self.round.logits(x)
        loss = cross_entropy(z[:n], y[:n])
        if inside is None:
            return loss
        return loss + ALPHA * logit_error(z[n:], self.stored[inside.to(z.device)]) + BETA * cross_entropy(z[n:], y[n:])

    def _with_two_batches(self, rows: Tensor) -> Tensor:
        x, y = self.round.augmented(rows)
        z = self.round.logits(x)
        self.answer = z.detach()
        loss = cross_entropy(z, y)
        if not len(self.buffer):
            return loss
        for term in ("logits", "labels"):
            inside = draw(len(self.buffer), self.round.settings.batch, self.draws).numpy()
            x, y = self.round.augmented(self.round.rows_of(self.buffer.ids[inside]))
            z = self.round.logits(x)
            if term == "logits":
                loss = loss + ALPHA * logit_error(z, self._stored(inside))
            else:
                loss = loss + BETA * cross_entropy(z, y)
        return loss

    def after_step(self, epoch: int, rows: Tensor) -> None:
        if self.live:
            ids, labels = self.round.named(rows)
            seed = derive(*self.round.seed, epoch, "memory")
            logits = self.answer.cpu().numpy()
            self.buffer = reservoir(self.buffer, ids, labels, self.round.settings.capacity, seed, logits)

    def memory(self) -> Memory:
        if self.live:
            return self.buffer
        rows = torch.arange(self.round.new)
        with torch.no_grad():  # the model is in eval mode now
            parts = [self.round.model(self.round.plain(part)[0]) for part in torch.split(rows, EVALUATED)]
        ids, labels = self.round.named(rows)
        seed = derive(*self.round.seed, "memory")
        logits = torch.cat(parts).cpu().numpy()
        return class_balanced(self.buffer, ids, labels, self.round.settings.capacity, seed, logits)

    def _stored(self, inside: NDArray[np.int64]) -> Tensor:
        logits = self.buffer.logits if self.buffer.logits is not None else np.empty((0, 0), np.float32)
        return torch.from_numpy(logits[inside]).to(self.round.settings.device)


def logit_error(z: Tensor, stored: Tensor) -> Tensor:
    """Mean squared error over the logits that were there when they were stored.

    >>> logit_error(torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[0.0, torch.nan]]))
    tensor(1.)
    """
    known = ~stored.isnan()
    error = torch.where(known, z[:, : stored.shape[1]] - stored.nan_to_num(), 0.0)
    return error.square().sum() / known.sum()
