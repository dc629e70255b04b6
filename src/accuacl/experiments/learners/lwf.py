"""Learning without forgetting (Li and Hoiem, 2016) on streams of classes: no memory, but the model before the task."""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, kl_div

from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import Round
from accuacl.experiments.memory import Memory

TEMPERATURE = 2.0


class LwF(Learner):
    """CE(new, among the classes of the task) + alpha T^2 KL(the old model's softmax, the model's) over earlier classes.

    Both softmaxes have temperature T = 2 and are of the new examples, since none is kept. The old model is the one at
    the end of the last task. In the first task there is no earlier class, and the second term is 0.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.old = copy.deepcopy(round.model).eval().requires_grad_(False)
        self.mine = round.labels[: round.new].unique()  # type: ignore[no-untyped-call]
        self.earlier = round.seen[~torch.isin(round.seen, self.mine)]

    def observe(self, rows: Tensor) -> Tensor:
        x, y = self.round.augmented(rows)
        z = self.round.logits(x)
        others = torch.ones(z.shape[1], dtype=torch.bool, device=z.device)
        others[self.mine] = False
        loss = cross_entropy(z.masked_fill(others, -torch.inf), y)
        if len(self.earlier):
            loss = loss + self.round.training.alpha * distillation(z[:, self.earlier], self.old(x)[:, self.earlier])
        return self.round.step(loss)

    def remember(self) -> Memory:
        return Memory.empty()


def distillation(z: Tensor, target: Tensor, temperature: float = TEMPERATURE) -> Tensor:
    """T^2 KL(softmax(target / T), softmax(z / T)), mean over rows.

    >>> round(float(distillation(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 2.0]]))), 4)
    0.4438
    """
    log_p, q = (z / temperature).log_softmax(1), (target / temperature).softmax(1)
    return temperature**2 * kl_div(log_p, q, reduction="batchmean")
