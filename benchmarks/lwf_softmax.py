"""LwF with one softmax over all classes seen, to be compared with the learner `lwf`, whose softmax is the task's.

accuacl sweep docs/results/learners-lwf.yaml --plugin benchmarks/lwf_softmax.py --data-dir DATA
"""

from __future__ import annotations

from accuacl.experiments.learners import REGISTRY, Round, register
from accuacl.experiments.learners.distillation import LwF


class OneSoftmax(LwF):
    """CE(new, among all classes seen) + alpha T^2 KL(the old model's softmax, the model's) over earlier classes.

    New examples then push the logits of earlier classes down, as in fine-tuning; the KL cannot see that, because it
    does not change if all of these logits fall by as much.
    """

    settings, fixed = REGISTRY["lwf"].settings, REGISTRY["lwf"].fixed
    policy, replayed = (), REGISTRY["lwf"].replayed

    def __init__(self, round: Round) -> None:
        super().__init__(round)
        self.mine = round.seen


if "lwf-one-softmax" not in REGISTRY:
    register("lwf-one-softmax")(OneSoftmax)
