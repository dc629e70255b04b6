"""Ridge regression on frozen features: the head that is best for all labels so far, in one step."""

from __future__ import annotations

import torch

from accuacl.base.progress import OnProgress, Progress
from accuacl.experiments.heads import fit_ridge
from accuacl.experiments.learners.loop import Learner
from accuacl.experiments.memory import Memory


class Ridge(Learner):
    """Class-balanced ridge regression on all labels, of this task and of those before; only the head is learned.

    Its memory is every labelled example, whatever the capacity: they are hundreds, and their features are there. So
    nothing depends on the order of tasks, a corrected label is as good as one that was right at once, and forgetting
    is what new classes take from old ones in the same fit. Ridge and temperature: by leave-one-out (`ridge.fit`).

    There is one form of it; it belongs to no paper's experiments.
    """

    def train(self, progress: OnProgress | None = None) -> None:
        round, labels = self.round, self.round.labels.cpu()
        features = round.evaluated(round.model.embed, torch.arange(len(labels)))
        real = torch.from_numpy(round.ids >= 0)  # rows with smaller ids stand for examples of which only sums are kept
        head = fit_ridge(
            torch.from_numpy(features), labels, round.model.head.out_features, real, round.training.generalised
        )
        with torch.no_grad():
            round.model.head.weight.copy_(head.weight)
            round.model.head.bias.copy_(head.bias)
        round.model.eval()
        self.facts = {"ridge": head.ridge, "sharpness": head.sharpness, **head.left_out(labels)}
        if progress:
            progress(Progress(1, 1, "ridge", "training", (1, 1)))

    def remember(self) -> Memory:
        return self.keep_all()
