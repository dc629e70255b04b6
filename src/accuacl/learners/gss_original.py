"""Gradient-based sample selection as first published (Aljundi et al., 2019), greedy."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import draw
from accuacl.learners.gradients import similarities, subset_directions
from accuacl.learners.loop import Learner
from accuacl.learners.round import Round
from accuacl.memory import append_scored, replace_scored
from accuacl.models import evaluating


class OriginalGSS(Learner):
    """Cross entropy over new and replayed examples in one mean; a memory whose gradients point in many directions.

    An example's score is the largest cosine of its gradient to those of random examples of the memory, over all
    parameters, in eval mode, un-augmented. Examples are scored after every step. While the memory has room all enter;
    then those whose score is below 0, in slots drawn by score + 1. What is replayed is the memory as it changes.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.buffer.require("scores", "gss")

    def start_epoch(self, epoch: int) -> None:
        self.draws = torch_generator(*self.round.seed, epoch, "replay")
        self.subsets = torch_generator(*self.round.seed, epoch, "subsets")
        self.epoch, self.steps = epoch, 0

    def observe(self, rows: Tensor) -> Tensor:
        inside = draw(len(self.buffer), self.round.training.batch, self.draws).numpy()
        replayed = self.round.rows_of(self.buffer.ids[inside])
        x, y = self.round.augmented(torch.cat([rows, replayed]))
        loss = self.round.step(cross_entropy(self.round.logits(x), y))
        if self.round.training.capacity:
            with evaluating(self.round.model):
                self.offer(self.round.outside(self.buffer, rows))  # an earlier epoch may have let some in
        self.steps += 1
        return loss

    def offer(self, rows: Tensor) -> None:
        """Let the memory choose among the examples at `rows`, none of which is in it."""
        if not len(rows):
            return
        capacity = self.round.training.capacity
        ids, labels = self.round.ids_and_labels(rows)
        others = subset_directions(self.round, self.buffer, 1, self.subsets)
        scores = similarities(self.round.model, *self.round.plain(rows), others)
        if len(self.buffer) < capacity:
            self.buffer = append_scored(self.buffer, ids, labels, scores, capacity)
        else:
            assert self.buffer.scores is not None
            apart, weights = scores < 0, self.buffer.scores + 1
            seed = derive(*self.round.seed, self.epoch, self.steps, "memory")
            self.buffer = replace_scored(self.buffer, ids[apart], labels[apart], scores[apart], weights, seed)
