"""Learners that distil the previous model into the new one: learning without forgetting, and iCaRL.

LwF (Li and Hoiem, 2016) keeps no examples. iCaRL (Rebuffi et al., 2017) keeps
exemplars, chosen by herding, whose nearest mean is its classifier.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, kl_div, normalize

from accuacl.base.progress import OnProgress
from accuacl.base.randomness import derive
from accuacl.experiments.learners.derpp import stored_logits
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.learners.round import Round
from accuacl.experiments.memory import POLICIES, Memory

TEMPERATURE = 2.0


class LwF(Learner):
    """CE(new, among the classes of the task) + alpha T^2 KL(the old model's softmax, the model's) over earlier classes.

    Both softmaxes have temperature T = 2 and are of the new examples, since none is kept. The old model is the one at
    the end of the last task. Earlier classes are those seen before the task, also those that come back in it; in the
    first task there is none, and the second term is 0. Li and Hoiem have a softmax for the classes of each earlier
    task, and are told at the test which task an example is of; here one softmax goes over all earlier classes. They
    have no factor T^2, so that their weight of 1 is an alpha of 0.25.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.old = copy.deepcopy(round.model).eval().requires_grad_(False)
        self.mine = round.labels[: round.new].unique()  # type: ignore[no-untyped-call]
        self.earlier = round.seen_before

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


def distillation(z: Tensor, target: Tensor) -> Tensor:
    """T^2 KL(softmax(target / T), softmax(z / T)), mean over rows.

    >>> round(float(distillation(torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 2.0]]))), 4)
    0.4438
    """
    log_p, q = (z / TEMPERATURE).log_softmax(1), (target / TEMPERATURE).softmax(1)
    return TEMPERATURE**2 * kl_div(log_p, q, reduction="batchmean")


class ICaRL(Learner):
    """Binary cross entropy of each output; the head is then replaced by the classes' means of exemplars.

    Targets are 1 and 0 for the classes of the task, and for replayed examples in earlier classes what the model gave at
    the end of the last task, stored with the exemplars. Features and means have length 1, so the nearest mean is the
    largest output of a linear head whose rows are the means. Unlike the paper's, new examples have no targets in
    earlier classes, each step replays a batch of exemplars, and the next task trains from that head.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.mine = round.labels[: round.new].unique()  # type: ignore[no-untyped-call]
        self.earlier = round.seen[~torch.isin(round.seen, self.mine)]

    def start_epoch(self, epoch: int) -> None:
        self.replay = self.round.replay(torch.arange(len(self.round.memory)), epoch)

    def observe(self, rows: Tensor) -> Tensor:
        n, inside = len(rows), next(self.replay, rows[:0])
        x, y = self.round.augmented(torch.cat([rows, self.round.memory_rows[inside]]))
        z = self.round.logits(x)
        loss = _entropy(z[:, self.mine], (y[:, None] == self.mine).to(z.dtype))
        if len(inside) and len(self.earlier):
            stored = stored_logits(self.round.memory, inside.numpy()).to(z.device)[:, self.earlier]
            loss = loss + _entropy(z[n:, self.earlier], stored.sigmoid())
        return self.round.step(loss)

    def train(self, progress: OnProgress | None = None) -> None:
        super().train(progress)
        round = self.round
        seed, (ids, labels) = derive(*round.seed, "memory"), round.ids_and_labels(round.new_rows)
        every = torch.cat([round.memory_rows, round.new_rows])
        features, logits = (round.evaluated(part, every) for part in (round.model.embed, round.model))
        past = Memory.from_arrays(round.memory.to_arrays() | {"logits": logits[: len(round.memory)]})
        kept = POLICIES["herding"](past, ids, labels, features, round.training.capacity, seed, logits[len(past) :])
        if len(kept):
            self.buffer = kept
            self._put_means(kept)

    def remember(self) -> Memory:
        return self.buffer

    def _put_means(self, memory: Memory) -> None:
        """Make the head that of the nearest mean of exemplars; a class without any is never predicted."""
        rows = self.round.rows_of(memory.ids)
        features = normalize(torch.from_numpy(self.round.evaluated(self.round.model.embed, rows)), dim=1)
        head, labels = self.round.model.head, self.round.labels[rows.to(self.round.labels.device)].cpu()
        with torch.no_grad():
            head.weight.zero_()
            head.bias.zero_()
            for label in labels.unique().tolist():  # type: ignore[no-untyped-call]
                head.weight[label] = normalize(features[labels == label].mean(0), dim=0).to(head.weight.device)


def _entropy(z: Tensor, target: Tensor) -> Tensor:
    """Binary cross entropy, summed over outputs, mean over examples."""
    return binary_cross_entropy_with_logits(z, target, reduction="sum") / len(z)
