"""Gradient-based sample selection (Aljundi et al., 2019), greedy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.errors import InputError
from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import cycle, draw
from accuacl.learners.gradients import direction, evaluating, similarities, similarity
from accuacl.learners.loop import Learner
from accuacl.learners.round import Round
from accuacl.memory import Memory, append_scored, replace_scored

SUBSETS = 5
FIRST_SCORE = 0.1


class GSS(Learner):
    """Cross entropy over new and replayed examples in one mean; a memory whose gradients point in many directions.

    An example's score is the largest cosine of its gradient to those of five random subsets of the memory, over all
    parameters, in eval mode, un-augmented. While there is room all enter. Then, paper: only batches whose own
    largest cosine is below 0, slots drawn by scores scaled to [0, 1]; scored in the last epoch of the last round, and
    past tasks are replayed. original: every example by its own cosine to five of the memory, slots drawn by
    score + 1; scored at every step, and the memory is replayed as it changes.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.live = round.variant == "original"
        self.buffer = round.memory
        if len(self.buffer) and self.buffer.scores is None:
            raise InputError("the memory has no scores; give gss a memory that gss has made.")

    def start_epoch(self, epoch: int) -> None:
        seed, batch = self.round.seed, self.round.settings.batch
        self.draws = torch_generator(*seed, epoch, "replay")
        self.subsets = torch_generator(*seed, epoch, "subsets")
        past = cycle(self.round.memory_rows, batch, self.draws, full=False)
        self.replay = self._drawn() if self.live else past
        self.step = 0

    def loss(self, rows: Tensor) -> Tensor:
        replayed = next(self.replay, None)
        x, y = self.round.augmented(rows if replayed is None else torch.cat([rows, replayed]))
        return cross_entropy(self.round.logits(x), y)

    def after_step(self, epoch: int, rows: Tensor) -> None:
        last = self.round.last and epoch == self.round.settings.epochs - 1
        if self.round.settings.capacity and (last or self.live):
            with evaluating(self.round.model):
                self.buffer = self._updated(rows, derive(*self.round.seed, epoch, self.step, "memory"))
        self.step += 1

    def memory(self) -> Memory:
        return self.buffer

    def _updated(self, rows: Tensor, seed: int) -> Memory:
        """The memory after it has been offered the examples at `rows`."""
        capacity, model = self.round.settings.capacity, self.round.model
        inside = np.isin(self.round.ids[rows.numpy()], self.buffer.ids)  # since an earlier epoch
        rows = rows[torch.from_numpy(~inside)]
        if not len(rows):
            return self.buffer
        ids, labels = self.round.named(rows)
        if not len(self.buffer):
            return append_scored(self.buffer, ids, labels, np.full(len(ids), FIRST_SCORE), capacity)
        x, y = self.round.plain(rows)
        others = self._directions()
        full = len(self.buffer) >= capacity
        if full and not self.live and similarity(model, x, y, others) >= 0:
            return self.buffer
        scores = similarities(model, x, y, others).numpy().astype(np.float64)
        if not full:
            return append_scored(self.buffer, ids, labels, scores, capacity)
        assert self.buffer.scores is not None
        if self.live:
            new = scores < 0
            weights = self.buffer.scores + 1
            return replace_scored(self.buffer, ids[new], labels[new], scores[new], weights, seed)
        return replace_scored(self.buffer, ids, labels, scores, scaled(self.buffer.scores), seed)

    def _directions(self) -> Tensor:
        """Gradients of random parts of the memory: five batches of it at most (original: five examples)."""
        size = 1 if self.live else min(self.round.settings.batch, len(self.buffer))
        count = min(SUBSETS, len(self.buffer) // size)
        inside = draw(len(self.buffer), count * size, self.subsets).numpy()
        parts = torch.split(self.round.rows_of(self.buffer.ids[inside]), size)
        return torch.stack([direction(self.round.model, *self.round.plain(part)) for part in parts])

    def _drawn(self) -> Iterator[Tensor]:
        while True:
            inside = draw(len(self.buffer), self.round.settings.batch, self.draws)
            yield self.round.rows_of(self.buffer.ids[inside.numpy()])


def scaled(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores between 0 for the smallest and 1 for the largest; all 1 if they are the same.

    >>> scaled(np.array([-0.5, 0.0, 0.5]))
    array([0. , 0.5, 1. ])
    """
    span = np.ptp(scores)
    return (scores - scores.min()) / span if span > 0 else np.ones_like(scores)
