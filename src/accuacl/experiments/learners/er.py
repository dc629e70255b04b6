"""Experience replay (Rolnick et al., 2019; Chaudhry et al., 2019), as in the paper's experiments, and the two bounds
that every learner is compared with: fine-tuning, which replays nothing, and joint training.
"""

from __future__ import annotations

import torch
from torch import Tensor

from accuacl.base.randomness import derive
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import evenly, once
from accuacl.experiments.memory import Memory, reservoir


class ER(Learner):
    """Cross entropy over new and replayed examples in one mean; after the task its labels enter a reservoir.

    Each epoch goes through the memory once, so only the first steps replay (`cycled`: all do). A memory of 0 is naive
    fine-tuning.
    """

    def start_epoch(self, epoch: int) -> None:
        past, training = self.round.memory_rows, self.round.training
        if training.cycled:
            self.replay = self.round.replay(past, epoch)
        else:
            self.replay = once(past, training.batch, self.round.drawn(epoch, "replay"))

    def observe(self, rows: Tensor) -> Tensor:
        return self.round.learn(torch.cat([rows, next(self.replay, rows[:0])]))

    def remember(self) -> Memory:
        return self.keep(reservoir)


class OriginalER(Learner):
    """Cross entropy over new and replayed examples in one mean.

    Every step replays a batch drawn from a reservoir, which is then offered the step's new examples. A memory of 0 is
    naive fine-tuning.
    """

    def start_epoch(self, epoch: int) -> None:
        self.draws = self.round.drawn(epoch, "replay")
        self.memory_seed = derive(*self.round.seed, epoch, "memory")

    def observe(self, rows: Tensor) -> Tensor:
        loss = self.round.learn(torch.cat([rows, self.draw_from_buffer(self.draws)[1]]))
        ids, labels = self.round.ids_and_labels(rows)
        self.buffer = reservoir(self.buffer, ids, labels, self.round.training.capacity, self.memory_seed)
        return loss


class Finetune(Learner):
    """Lower bound: cross entropy over the new examples alone; nothing is kept. Equals ER with a memory of 0."""

    def observe(self, rows: Tensor) -> Tensor:
        return self.round.learn(rows)

    def remember(self) -> Memory:
        return Memory.empty()


class Joint(Learner):
    """Upper bound: cross entropy over all labels so far; every labelled example is kept, whatever the capacity.

    An epoch goes through all of them, from the weights that the last task left. With `--strategy full` it is what a
    model could learn if nothing had to be chosen and nothing could be forgotten.
    """

    def epoch_rows(self, generator: torch.Generator) -> Tensor:
        labels = self.round.labels.cpu()
        return evenly(labels, generator) if self.round.training.balanced else torch.arange(len(labels))

    def observe(self, rows: Tensor) -> Tensor:
        return self.round.learn(rows)

    def remember(self) -> Memory:
        return self.keep_all()
