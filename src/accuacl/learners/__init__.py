"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line
below. Each comes in two variants: "paper", as in the paper's experiments, and "original", as first published.
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
from accuacl.learners.round import Round
from accuacl.learners.training import TaskData, Training

__all__ = [
    "NAMES",
    "REGISTRY",
    "Learner",
    "Round",
    "TaskData",
    "Training",
    "Transform",
    "start",
    "train",
]

REGISTRY: dict[str, dict[str, Callable[[Round], Learner]]] = {
    "er": {"paper": ER, "original": OriginalER},
    "gss": {"paper": GSS, "original": OriginalGSS},
    "der++": {"paper": DERpp, "original": OriginalDERpp},
    "er-ace": {"paper": ERACE, "original": partial(ERACE, original=True)},
}
NAMES = tuple(REGISTRY)


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
    return REGISTRY[name][variant](round)
