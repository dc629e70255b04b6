"""Experience replay (Rolnick et al., 2019; Chaudhry et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import cycle, draw, once
from accuacl.learners.loop import Learner
from accuacl.learners.round import Round
from accuacl.memory import Memory, reservoir


class ER(Learner):
    """Cross entropy over new and replayed examples in one mean; the memory is a reservoir.

    paper: past tasks are gone through once an epoch, so only the first batches replay (`cycled`: all do).
    original: every step draws a batch from a reservoir that is offered each new batch as it goes by. A memory of 0 is
    naive fine-tuning.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.live = round.variant == "original"
        self.buffer = round.memory  # changes in `original` only

    def start_epoch(self, epoch: int) -> None:
        self.draws = torch_generator(*self.round.seed, epoch, "replay")
        memory, batch = self.round.memory_rows, self.round.settings.batch
        if self.live:
            self.replay = self._drawn()
        elif self.round.settings.cycled:
            self.replay = cycle(memory, batch, self.draws, full=False)
        else:
            self.replay = once(memory, batch, self.draws)

    def loss(self, rows: Tensor) -> Tensor:
        replayed = next(self.replay, None)
        x, y = self.round.augmented(rows if replayed is None else torch.cat([rows, replayed]))
        return cross_entropy(self.round.logits(x), y)

    def after_step(self, epoch: int, rows: Tensor) -> None:
        if self.live:
            self.buffer = self._offer(rows, derive(*self.round.seed, epoch, "memory"))

    def memory(self) -> Memory:
        if self.live:
            return self.buffer
        return self._offer(torch.arange(self.round.new), derive(*self.round.seed, "memory"))

    def _drawn(self) -> Iterator[Tensor]:
        while True:
            inside = draw(len(self.buffer), self.round.settings.batch, self.draws)
            yield self.round.rows_of(self.buffer.ids[inside.numpy()])

    def _offer(self, rows: Tensor, seed: int) -> Memory:
        ids, labels = self.round.named(rows)
        return reservoir(self.buffer, ids, labels, self.round.settings.capacity, seed)
