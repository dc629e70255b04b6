"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line
below.
"""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress
from accuacl.learners.augment import Transform
from accuacl.learners.derpp import DERpp
from accuacl.learners.er import ER
from accuacl.learners.erace import ERACE
from accuacl.learners.gss import GSS
from accuacl.learners.loop import Learner, fit
from accuacl.learners.round import Fetch, Ids, Round, Settings, TaskData, begin
from accuacl.memory import Memory
from accuacl.models import Classifier

__all__ = ["NAMES", "REGISTRY", "VARIANTS", "Learner", "Round", "Settings", "TaskData", "Transform", "train"]

REGISTRY: dict[str, type[Learner]] = {"er": ER, "gss": GSS, "der++": DERpp, "er-ace": ERACE}
NAMES = tuple(REGISTRY)
VARIANTS = ("paper", "original")


def train(
    name: str,
    model: Classifier,
    task: TaskData,
    memory: Memory,
    fetch: Fetch,
    settings: Settings,
    transform: Transform,
    *,
    seed: tuple[int, ...],
    last_round: bool,
    seen: Ids,
    variant: str = "paper",
    progress: OnProgress | None = None,
) -> Memory:
    """Train `model` in place for one round on all labels of the task so far; the memory as the task leaves it.

    memory: as it was when the task began; `fetch(ids)` gives its inputs. seed: of this run, task and round.
    seen: classes seen before or in this task. variant: "paper" (of the paper's experiments) or "original" (of the
    methods' own papers). progress: called after every epoch. Before the last round the memory comes
    back as it was given.
    """
    if name not in REGISTRY:
        raise InputError(f"there is no learner {name!r}; the learners are {', '.join(NAMES)}.")
    if variant not in VARIANTS:
        raise InputError(f"there is no variant {variant!r}; the variants are {', '.join(VARIANTS)}.")
    round = begin(model, task, memory, fetch, settings, transform, seed, last_round, seen, variant)
    learner = REGISTRY[name](round)
    fit(round, learner, progress)
    return learner.memory() if last_round else memory
