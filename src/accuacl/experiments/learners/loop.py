"""The training loop that all learners share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import derive
from accuacl.base.userfile import with_place
from accuacl.experiments.learners.registry import PAPER
from accuacl.experiments.learners.round import Round, Training, draw, evenly, every
from accuacl.experiments.memory import POLICIES, Memory, check_kept

LR_MIN = 0.001  # where the cosine of learning rates ends


class Learner:
    """What a learner adds to the loop. It lives for one round.

    buffer: what it replays. Learners that store examples while they train put another in its place.
    facts: numbers about the training that are worth a record.
    """

    replay: Iterator[Tensor]  # rows, or rows of the memory, a batch at a time; learners that replay set it each epoch

    def __init__(self, round: Round) -> None:
        self.round = round
        self.buffer = round.memory
        self.facts: dict[str, float] = {}

    def start_epoch(self, epoch: int) -> None:
        """Prepare the replay of an epoch."""

    def observe(self, rows: Tensor) -> Tensor:
        """Learn from one batch of new examples and what is replayed with them; returns the loss before the step."""
        raise NotImplementedError

    def epoch_rows(self, generator: torch.Generator) -> Tensor:
        """The rows that an epoch goes through: the task's examples, each once or as many of each class."""
        labels = self.round.labels[: self.round.new].cpu()
        return evenly(labels, generator) if self.round.training.balanced else self.round.new_rows

    def train(self, progress: OnProgress | None = None) -> None:
        """Train the round's model in place, batch by batch, for all epochs. progress: called after every epoch."""
        round, training = self.round, self.round.training
        round.model.train()
        for epoch in range(training.epochs):
            round.lr = learning_rate(training, epoch)
            round.draws = round.drawn(epoch, "augment")
            self.start_epoch(epoch)
            order = round.drawn(epoch, "order")
            batches = every(self.epoch_rows(order), training.batch, order)
            total = torch.zeros((), device=training.device)
            for part in batches:
                loss: Any = self.observe(part)
                if not isinstance(loss, Tensor | float | int) or (isinstance(loss, Tensor) and loss.ndim):
                    raise _gave(self, "observe", loss, "return the mean loss of the batch, one number")
                total += loss
            mean = total.item() / len(batches)  # the only place where the loop waits for the device
            if not math.isfinite(mean):
                raise diverged(training, f"the loss is {mean} after epoch {epoch + 1}")
            if progress:
                done, all_ = epoch + 1, training.epochs
                progress(Progress(done, all_, f"epoch {done} loss {mean:.3f}", "training", (done, all_)))
        if not all(bool(parameter.isfinite().all()) for parameter in round.model.parameters()):
            raise diverged(training, "weights are infinite after the last step")
        round.optimiser.zero_grad()
        round.model.eval()

    def remember(self) -> Memory:
        """The memory after the task, once the model is trained; by default what training has stored."""
        return self.buffer

    def draw_from_buffer(self, generator: torch.Generator) -> tuple[NDArray[np.int64], Tensor]:
        """A batch drawn from the buffer as it is now: rows of the buffer, and of the round."""
        inside = draw(len(self.buffer), self.round.training.batch, generator).numpy()
        return inside, self.round.rows_of(self.buffer.ids[inside])

    def keep_all(self) -> Memory:
        """Every labelled example, of this task and of those before, in order of id."""
        order = np.argsort(self.round.ids, kind="stable")
        return Memory(self.round.ids[order], self.round.labels.cpu().numpy()[order])

    def keep(self, own: Callable[..., Memory], logits: Any = None) -> Memory:
        """The memory with the task's examples offered to it: by the policy in the settings, or else by the learner's.

        logits: of the task's examples, for learners that store them.
        """
        round, training = self.round, self.round.training
        seed, (ids, labels) = derive(*round.seed, "memory"), round.ids_and_labels(round.new_rows)
        if training.policy == PAPER:
            return own(self.buffer, ids, labels, training.capacity, seed, logits)
        rows = torch.cat([round.rows_of(self.buffer.ids), round.new_rows])
        features = round.evaluated(round.model.embed, rows)
        policy, more = POLICIES[training.policy], {}
        if "predicted" in inspect.signature(policy).parameters:
            seen = round.seen.cpu().numpy()
            more = {"predicted": seen[round.evaluated(round.model, rows)[:, seen].argmax(axis=1)]}
        kept = policy(self.buffer, ids, labels, features, training.capacity, seed, logits, **more)
        return check_kept(training.policy, policy, kept, self.buffer, ids, training.capacity)


def remember(learner: Learner) -> Memory:
    """The memory after the task. The learner may be a user's own."""
    kept: Any = learner.remember()
    if not isinstance(kept, Memory):
        raise _gave(learner, "remember", kept, "return a Memory, such as self.buffer")
    return kept


def _gave(learner: Learner, verb: str, gave: Any, to_do: str) -> InputError:
    what = f"tensor of shape {tuple(gave.shape)}" if isinstance(gave, Tensor) else type(gave).__name__
    who = with_place(f"`{verb}` of {type(learner).__name__}", type(learner))
    return InputError(f"{who} gave a {what}; {to_do}.")


class Diverged(InputError):
    """Training produced non-finite values, as it does every time with the same settings."""


def diverged(training: Training, how: str) -> Diverged:
    """The error to raise then. how: what is not finite, as a clause."""
    return Diverged(
        f"training diverged: {how} with --lr {training.lr:g}; give a smaller --lr, or inputs of a smaller scale."
    )


def learning_rate(training: Training, epoch: int) -> float:
    """Half a cosine from `lr` to LR_MIN, stepped per epoch."""
    end = min(LR_MIN, training.lr)
    return end + (training.lr - end) * (1 + math.cos(math.pi * epoch / training.epochs)) / 2
