"""Gradient-based sample selection (Aljundi et al., 2019), greedy, as in the paper's experiments."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import cycle
from accuacl.learners.gradients import similarities, similarity, subset_directions
from accuacl.learners.loop import Learner
from accuacl.learners.registry import PAPER
from accuacl.learners.round import Round
from accuacl.memory import Memory, append_scored, class_balanced, replace_scored
from accuacl.models import evaluating


class GSS(Learner):
    """Cross entropy over new and replayed examples in one mean; a memory whose gradients point in many directions.

    An example's score is the largest cosine of its gradient to those of random batches of the memory, over all
    parameters, in eval mode, un-augmented. Examples are scored in the last epoch of the last round. While the memory
    has room all enter; then only batches whose own largest cosine is below 0, in slots drawn by scores scaled to
    [0, 1]. What is replayed is the memory as it was when the task began. With another memory policy nothing is scored.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.scores_examples = round.training.policy == PAPER and round.training.capacity > 0
        if self.scores_examples:
            self.buffer.require("scores", "gss")

    def start_epoch(self, epoch: int) -> None:
        seed, training = self.round.seed, self.round.training
        draws = torch_generator(*seed, epoch, "replay")
        self.replay = cycle(self.round.memory_rows, training.batch, draws, full=False)
        self.subsets = torch_generator(*seed, epoch, "subsets")
        self.scoring = self.scores_examples and self.round.last_round and epoch == training.epochs - 1
        self.epoch, self.steps = epoch, 0

    def observe(self, rows: Tensor) -> Tensor:
        replayed = next(self.replay, None)
        x, y = self.round.augmented(rows if replayed is None else torch.cat([rows, replayed]))
        loss = self.round.step(cross_entropy(self.round.logits(x), y))
        if self.scoring:
            with evaluating(self.round.model):
                self.offer(self.round.outside(self.buffer, rows))
        self.steps += 1
        return loss

    def remember(self) -> Memory:
        return self.buffer if self.round.training.policy == PAPER else self.keep(class_balanced)

    def offer(self, rows: Tensor) -> None:
        """Let the memory choose among the examples at `rows`, none of which is in it."""
        if not len(rows):
            return
        training, model = self.round.training, self.round.model
        ids, labels = self.round.ids_and_labels(rows)
        x, y = self.round.plain(rows)
        batch = min(training.batch, len(self.buffer))
        others = subset_directions(self.round, self.buffer, batch, self.subsets)
        if len(self.buffer) < training.capacity:
            scores = similarities(model, x, y, others)
            self.buffer = append_scored(self.buffer, ids, labels, scores, training.capacity)
        elif similarity(model, x, y, others) < 0:
            assert self.buffer.scores is not None
            scores, weights = similarities(model, x, y, others), scaled(self.buffer.scores)
            seed = derive(*self.round.seed, self.epoch, self.steps, "memory")
            self.buffer = replace_scored(self.buffer, ids, labels, scores, weights, seed)


def scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores between 0 for the smallest and 1 for the largest; all 1 if they are the same.

    >>> scaled(np.array([-0.5, 0.0, 0.5]))
    array([0. , 0.5, 1. ])
    """
    span = np.ptp(scores)
    return (scores - scores.min()) / span if span > 0 else np.ones_like(scores)
