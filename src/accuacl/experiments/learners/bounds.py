"""The two bounds that every learner is compared with: fine-tuning, which rehearses nothing, and joint training."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import evenly
from accuacl.experiments.memory import Memory


class Finetune(Learner):
    """Lower bound: cross entropy over the new examples alone; nothing is kept. The same as ER with a memory of 0."""

    def observe(self, rows: Tensor) -> Tensor:
        x, y = self.round.augmented(rows)
        return self.round.step(cross_entropy(self.round.logits(x), y))

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
        x, y = self.round.augmented(rows)
        return self.round.step(cross_entropy(self.round.logits(x), y))

    def remember(self) -> Memory:
        return self.keep_all()
