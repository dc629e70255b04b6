"""Learners that fit a head on frozen features in one step: the best for all labels so far.

Ridge regression, and kernel ridge regression, which may also learn from the unlabelled pool.
"""

from __future__ import annotations

import torch
from threadpoolctl import threadpool_limits

from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments.heads import candidates_of_kind, fit_ridge, fit_with_pool
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.memory import Memory
from accuacl.experiments.models import KernelLayer


class Ridge(Learner):
    """Class-balanced ridge regression on all labels, of this task and of those before; only the head is learned.

    Its memory is every labelled example, whatever the capacity: they are hundreds, and their features are there. So
    nothing depends on the order of tasks, a corrected label is as good as one that was right at once, and forgetting
    is what new classes take from old ones in the same fit. Ridge and temperature: by leave-one-out (`ridge.fit`).

    There is one form of it; it belongs to no paper's experiments.
    """

    def train(self, progress: OnProgress | None = None) -> None:
        round, labels = self.round, self.round.labels.cpu()
        features = torch.from_numpy(round.evaluated_inputs(round.model.embed, round.inputs))
        real = torch.from_numpy(round.ids >= 0)  # rows with negative ids represent examples kept only as sums
        head = fit_ridge(features, labels, round.model.head.out_features, real)
        with torch.no_grad():
            round.model.head.weight.copy_(head.weight)
            round.model.head.bias.copy_(head.bias)
        round.model.eval()
        self.facts = {"ridge": head.ridge, "sharpness": head.sharpness, **head.left_out(labels)}
        if progress:
            progress(Progress(1, 1, "ridge", "training", (1, 1)))

    def remember(self) -> Memory:
        return self.keep_all()


class KernelRidge(Learner):
    """Class-balanced kernel ridge regression on all labels, of this task and of those before; only the head is learned.

    As with ridge, its memory is every labelled example, so nothing depends on the order of tasks or of labels, and a
    corrected label is as good as one that was right at once. With `pool_learning` the head also learns from what it
    predicts for a sample of each task's pool, unless left-out labels say that this harms (`heads.fit_with_pool`).
    """

    def train(self, progress: OnProgress | None = None) -> None:
        round, training = self.round, self.round.training
        labels = round.labels.cpu().numpy()
        x, *pools = (round.evaluated_inputs(round.model.embed, part) for part in (round.inputs, *round.pools))
        blocks = training.blocks or ((0, x.shape[1]),)
        with threadpool_limits(torch.get_num_threads()):  # the last bits depend on their number
            head = fit_with_pool(
                x,
                labels,
                pools,
                round.model.head.out_features,
                mode=training.pool_learning,
                candidates=candidates_of_kind(training.kind, blocks),
                blocks=blocks,
                ids=round.ids,
            )
        round.model.head = KernelLayer.of(head, training.device)
        round.model.eval()
        self.facts = {"ridge": head.ridge, "sharpness": head.sharpness, **head.left_out(labels), **head.learned}
        if progress:
            progress(Progress(1, 1, "kernel", "training", (1, 1)))

    def remember(self) -> Memory:
        return self.keep_all()
