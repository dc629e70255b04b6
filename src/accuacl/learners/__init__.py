"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line
below. Each comes in two variants: "paper", as in the paper's experiments, and "original", as first published; ridge,
which belongs to neither, is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from accuacl.base.errors import InputError
from accuacl.learners.augment import Transform
from accuacl.learners.derpp import DERpp
from accuacl.learners.derpp_original import OriginalDERpp
from accuacl.learners.er import ER
from accuacl.learners.er_original import OriginalER
from accuacl.learners.erace import ERACE
from accuacl.learners.gss import GSS
from accuacl.learners.gss_original import OriginalGSS
from accuacl.learners.loop import Learner, train
from accuacl.learners.ridge import Ridge
from accuacl.learners.round import Round
from accuacl.learners.training import AGREEMENT, PAPER, TaskData, Training
from accuacl.memory import FEATURE_POLICIES

__all__ = [
    "MEMORY_POLICIES",
    "NAMES",
    "REGISTRY",
    "Learner",
    "Round",
    "TaskData",
    "Training",
    "Transform",
    "check_policy",
    "start",
    "train",
]

REGISTRY: dict[str, dict[str, Callable[[Round], Learner]]] = {
    "er": {"paper": ER, "original": OriginalER},
    "gss": {"paper": GSS, "original": OriginalGSS},
    "der++": {"paper": DERpp, "original": OriginalDERpp},
    "er-ace": {"paper": ERACE, "original": partial(ERACE, original=True)},
    "ridge": {"paper": Ridge, "original": Ridge},
}
NAMES = tuple(REGISTRY)
MEMORY_POLICIES = (PAPER, *FEATURE_POLICIES, AGREEMENT)
CHANGE_MEMORY_IN_TRAINING = {("er", "original"), ("gss", "original"), ("der++", "original")}


def check_policy(policy: str, name: str, variant: str) -> None:
    """Refuse a memory policy that there is not, or that the learner cannot have."""
    if policy not in MEMORY_POLICIES:
        raise InputError(f"there is no memory policy {policy!r}; the policies are {', '.join(MEMORY_POLICIES)}.")
    if policy != PAPER and name == "ridge":
        raise InputError(f"ridge keeps all: the memory policy {policy} cannot decide what is kept; leave it out.")
    if policy != PAPER and (name, variant) in CHANGE_MEMORY_IN_TRAINING:
        raise InputError(
            f"{name} in its original variant changes its memory at every step of training, so the memory policy "
            f"{policy} cannot decide what is kept; take the variant paper or the memory policy paper."
        )


def start(name: str, round: Round, variant: str = "paper") -> Learner:
    """The learner called `name` at the start of a round.

    Then `train(learner)` trains the round's model in place, and after the last round `learner.remember()` makes the
    task's memory. The two may happen in different processes: a learner that is started again, with the trained model
    and, as its memory, the `buffer` that training has left, remembers the same.
    """
    if name not in REGISTRY:
        raise InputError(f"there is no learner {name!r}; the learners are {', '.join(NAMES)}.")
    if variant not in REGISTRY[name]:
        variants = ", ".join(REGISTRY[name])
        raise InputError(f"there is no variant {variant!r} of {name}; its variants are {variants}.")
    check_policy(round.training.policy, name, variant)
    return REGISTRY[name][variant](round)
