"""Dark experience replay ++ as first published (Buzzega et al., 2020)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from accuacl.base.randomness import derive, torch_generator
from accuacl.learners.batches import draw
from accuacl.learners.derpp import logit_error, stored_logits
from accuacl.learners.loop import Learner
from accuacl.learners.round import Round
from accuacl.memory import reservoir


class OriginalDERpp(Learner):
    """CE(new) + alpha MSE(logits of replayed, those stored) + beta CE(replayed).

    Each of the two terms has a batch of its own, drawn from a reservoir, which is then offered the step's new examples
    with the logits that training just gave.
    """

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.buffer.require("logits", "der++")

    def start_epoch(self, epoch: int) -> None:
        self.draws = torch_generator(*self.round.seed, epoch, "replay")
        self.memory_seed = derive(*self.round.seed, epoch, "memory")

    def observe(self, rows: Tensor) -> Tensor:
        training = self.round.training
        x, y = self.round.augmented(rows)
        z = self.round.logits(x)
        loss = cross_entropy(z, y)
        if len(self.buffer):
            x, y, stored = self._replayed()
            loss = loss + training.alpha * logit_error(self.round.logits(x), stored)
            x, y, stored = self._replayed()
            loss = loss + training.beta * cross_entropy(self.round.logits(x), y)
        loss = self.round.step(loss)
        ids, labels = self.round.ids_and_labels(rows)
        logits = z.detach().cpu().numpy()
        self.buffer = reservoir(self.buffer, ids, labels, training.capacity, self.memory_seed, logits)
        return loss

    def _replayed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, labels and stored logits of a batch drawn from the memory."""
        inside = draw(len(self.buffer), self.round.training.batch, self.draws).numpy()
        x, y = self.round.augmented(self.round.rows_of(self.buffer.ids[inside]))
        return x, y, stored_logits(self.buffer, inside).to(y.device)
