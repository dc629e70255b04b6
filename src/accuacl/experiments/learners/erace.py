"""Experience replay with asymmetric cross entropy (Caccia et al., 2022)."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import Round
from accuacl.experiments.memory import Memory, class_balanced


class ERACE(Learner):
    """Cross entropy of the new examples among few classes, and of replayed ones among all.

    As in the paper's experiments: among the classes in the batch; the mean of both terms. `original`: among all but
    the seen classes that are not in the batch; the sum. The memory is class-balanced, and the task's labels enter it
    *before* training, so there is replay in the first task too. A memory batch is full, or the whole of a smaller
    memory.
    """

    def __init__(self, round: Round, original: bool = False) -> None:
        super().__init__(round)
        self.original = original
        ids, labels = round.ids_and_labels(round.new_rows)
        seed = derive(*round.seed, "memory")
        self.with_task = class_balanced(self.buffer, ids, labels, round.training.capacity, seed)

    def start_epoch(self, epoch: int) -> None:
        self.replay = self.round.replay(self.round.rows_of(self.with_task.ids), epoch, full=True)

    def observe(self, rows: Tensor) -> Tensor:
        x, y = self.round.augmented(rows)
        z = self.round.logits(x)
        masked = absent(y, z.shape[1], self.round.seen if self.original else None)
        loss = cross_entropy(z.masked_fill(masked, -torch.inf), y)
        replayed = next(self.replay, None)
        if replayed is not None:
            x, y = self.round.augmented(replayed)
            both = loss + cross_entropy(self.round.logits(x), y)
            loss = both if self.original else both / 2
        return self.round.step(loss)

    def remember(self) -> Memory:
        return self.keep(class_balanced)


OriginalERACE = partial(ERACE, original=True)


def absent(labels: Tensor, classes: int, seen: Tensor | None = None) -> Tensor:
    """True for the classes, of those `seen` if given, that no label names.

    >>> absent(torch.tensor([3, 3, 0]), 5, seen=torch.tensor([3, 1, 0]))
    tensor([False,  True, False, False, False])
    """
    masked = torch.ones(classes, dtype=torch.bool, device=labels.device)
    if seen is not None:
        masked.zero_()
        masked[seen] = True
    masked[labels] = False
    return masked
