"""Dark experience replay ++ (Buzzega et al., 2020), as in the paper's experiments."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import Round
from accuacl.experiments.memory import Memory, class_balanced, reservoir


class DERpp(Learner):
    """CE(new) + alpha MSE(logits of replayed, those stored) + beta CE(replayed).

    One memory batch, full or the whole of a smaller memory, serves both terms, in one pass with the new examples. After
    the task its labels enter a class-balanced memory, with the logits that the trained model gives in eval mode.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.stored = stored_logits(self.buffer, np.arange(len(self.buffer))).to(round.training.device)

    def start_epoch(self, epoch: int) -> None:
        self.replay = self.round.replay(torch.arange(len(self.buffer)), epoch, full=True)

    def observe(self, rows: Tensor) -> Tensor:
        training, n, inside = self.round.training, len(rows), next(self.replay, rows[:0])
        # One pass for both, as the paper's code has it: BatchNorm then sees in training what it will see in testing.
        x, y = self.round.augmented(torch.cat([rows, self.round.memory_rows[inside]]))
        z = self.round.logits(x)
        loss = cross_entropy(z[:n], y[:n])
        if len(inside):
            error = logit_error(z[n:], self.stored[inside.to(z.device)])
            loss = loss + training.alpha * error + training.beta * cross_entropy(z[n:], y[n:])
        return self.round.step(loss)

    def remember(self) -> Memory:
        return self.keep(class_balanced, self.round.evaluated(self.round.model, self.round.new_rows))


def stored_logits(memory: Memory, inside: NDArray[np.int64]) -> Tensor:
    """The logits that the memory has for these of its rows."""
    return torch.from_numpy(memory.logits[inside] if memory.logits is not None else np.empty((0, 0), np.float32))


def logit_error(z: Tensor, stored: Tensor) -> Tensor:
    """Mean squared error over the logits that existed when they were stored.

    >>> logit_error(torch.tensor([[1.0, 2.0, 9.0]]), torch.tensor([[0.0, torch.nan]]))
    tensor(1.)
    """
    known = ~stored.isnan()
    error = torch.where(known, z[:, : stored.shape[1]] - stored.nan_to_num(), 0.0)
    return error.square().sum() / known.sum()


class OriginalDERpp(Learner):
    """CE(new) + alpha MSE(logits of replayed, those stored) + beta CE(replayed).

    Each of the two terms has a batch of its own, drawn from a reservoir, which is then offered the step's new examples
    with the logits that training just gave.
    """

    def start_epoch(self, epoch: int) -> None:
        self.draws = self.round.drawn(epoch, "replay")
        self.memory_seed = derive(*self.round.seed, epoch, "memory")

    def observe(self, rows: Tensor) -> Tensor:
        training = self.round.training
        x, y = self.round.augmented(rows)
        z = self.round.logits(x)
        loss = cross_entropy(z, y)
        if len(self.buffer):
            x, y, stored = self._replayed()
            loss = loss + training.alpha * logit_error(self.round.logits(x), stored)
            x, y, stored = self._replayed()
            loss = loss + training.beta * cross_entropy(self.round.logits(x), y)
        loss = self.round.step(loss)
        ids, labels = self.round.ids_and_labels(rows)
        logits = z.detach().cpu().numpy()
        self.buffer = reservoir(self.buffer, ids, labels, training.capacity, self.memory_seed, logits)
        return loss

    def _replayed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, labels and stored logits of a batch drawn from the memory."""
        inside, rows = self.draw_from_buffer(self.draws)
        x, y = self.round.augmented(rows)
        return x, y, stored_logits(self.buffer, inside).to(y.device)
