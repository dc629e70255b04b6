"""Gradient-based sample selection (Aljundi et al., 2019), greedy, as in the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from accuacl.base.randomness import derive, torch_generator
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.registry import PAPER
from accuacl.experiments.learners.round import Round, draw
from accuacl.experiments.memory import Memory, append_scored, class_balanced, replace_scored
from accuacl.experiments.models import Classifier
from accuacl.torch import evaluating

Floats: TypeAlias = NDArray[np.float64]


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

    def start_epoch(self, epoch: int) -> None:
        self.replay = self.round.replay(self.round.memory_rows, epoch)
        self.subsets = torch_generator(*self.round.seed, epoch, "subsets")
        last = self.round.last_round and epoch == self.round.training.epochs - 1
        self.scoring = self.scores_examples and last
        self.epoch, self.steps = epoch, 0

    def observe(self, rows: Tensor) -> Tensor:
        loss = self.round.learn(torch.cat([rows, next(self.replay, rows[:0])]))
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
        x, y = self.round.plain(rows)
        others = subset_directions(self.round, self.buffer, min(training.batch, len(self.buffer)), self.subsets)
        if len(self.buffer) < training.capacity or similarity(model, x, y, others) < 0:
            enter(self, rows, similarities(model, x, y, others), scaled)


def scaled(scores: Floats) -> Floats:
    """Scores between 0 for the smallest and 1 for the largest; all 1 if they are the same.

    >>> scaled(np.array([-0.5, 0.0, 0.5]))
    array([0. , 0.5, 1. ])
    """
    span = np.ptp(scores)
    return (scores - scores.min()) / span if span > 0 else np.ones_like(scores)


class OriginalGSS(Learner):
    """Cross entropy over new and replayed examples in one mean; a memory whose gradients point in many directions.

    An example's score is the largest cosine of its gradient to those of random examples of the memory, over all
    parameters, in eval mode, un-augmented. Examples are scored after every step. While the memory has room all enter;
    then those whose score is below 0, in slots drawn by score + 1. What is replayed is the memory as it changes.
    """

    def start_epoch(self, epoch: int) -> None:
        self.draws = self.round.drawn(epoch, "replay")
        self.subsets = torch_generator(*self.round.seed, epoch, "subsets")
        self.epoch, self.steps = epoch, 0

    def observe(self, rows: Tensor) -> Tensor:
        loss = self.round.learn(torch.cat([rows, self.draw_from_buffer(self.draws)[1]]))
        if self.round.training.capacity:
            with evaluating(self.round.model):
                self.offer(self.round.outside(self.buffer, rows))  # an earlier epoch may have let some in
        self.steps += 1
        return loss

    def offer(self, rows: Tensor) -> None:
        """Let the memory choose among the examples at `rows`, none of which is in it."""
        if not len(rows):
            return
        others = subset_directions(self.round, self.buffer, 1, self.subsets)
        scores = similarities(self.round.model, *self.round.plain(rows), others)
        if len(self.buffer) >= self.round.training.capacity:
            apart = scores < 0
            rows, scores = rows[torch.from_numpy(apart)], scores[apart]
        enter(self, rows, scores, lambda inside: inside + 1)


def enter(learner: GSS | OriginalGSS, rows: Tensor, scores: Floats, weigh: Callable[[Floats], Floats]) -> None:
    """Add examples to the memory; if it is full, in slots drawn by weights, which are made of the scores inside."""
    ids, labels = learner.round.ids_and_labels(rows)
    buffer, capacity = learner.buffer, learner.round.training.capacity
    if len(buffer) < capacity:
        learner.buffer = append_scored(buffer, ids, labels, scores, capacity)
    else:
        assert buffer.scores is not None
        seed = derive(*learner.round.seed, learner.epoch, learner.steps, "memory")
        learner.buffer = replace_scored(buffer, ids, labels, scores, weigh(buffer.scores), seed)


SUBSETS = 5  # of the memory, with whose gradients an example's is compared
FIRST_SCORE = 0.1  # of examples that come while the memory is empty


def direction(model: Classifier, x: Tensor, y: Tensor) -> Tensor:
    """The gradient of the mean cross entropy by all parameters, scaled to length 1. `.grad` is not touched."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.enable_grad():
        gradients = torch.autograd.grad(cross_entropy(model(x), y), parameters)
    return normalize(torch.cat([gradient.flatten() for gradient in gradients]), dim=0)


def subset_directions(round: Round, memory: Memory, size: int, generator: torch.Generator) -> Tensor:
    """The directions of random subsets of the memory, `size` examples in each; as many as fit, at most SUBSETS."""
    if not len(memory):
        return torch.empty(0, 0)
    count = min(SUBSETS, len(memory) // size)
    inside = draw(len(memory), count * size, generator).numpy()
    parts = torch.split(round.rows_of(memory.ids[inside]), size)
    return torch.stack([direction(round.model, *round.plain(part)) for part in parts])


def similarity(model: Classifier, x: Tensor, y: Tensor, others: Tensor) -> float:
    """The largest cosine between the gradient of the whole batch and the directions `others`."""
    return float((others @ direction(model, x, y)).max().clamp(-1, 1))


def similarities(model: Classifier, x: Tensor, y: Tensor, others: Tensor) -> Floats:
    """For each example, the largest cosine between its gradient and the directions; FIRST_SCORE if there are none.

    One backward pass each: on a CPU faster than vmap (59 against 90 ms for 32 images on conv4), and any module can.
    """
    if not len(others):
        return np.full(len(x), FIRST_SCORE)
    each = [others @ direction(model, x[i : i + 1], y[i : i + 1]) for i in range(len(x))]
    largest = torch.stack(each).amax(dim=1).clamp(-1, 1)  # rounding may leave the range of cosines
    return largest.cpu().numpy().astype(np.float64)
