"""The contract of learners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from accuacl.experiments.checks.contracts import Broken, CheckResult, check_all, global_randomness_watched
from accuacl.experiments.learners import REGISTRY, Learner, Round, TaskData, Training, Transform, remember, start
from accuacl.experiments.memory import POLICIES, Memory
from accuacl.experiments.models import Classifier, build

PER_TASK, CLASSES = 40, 6  # examples of a task, which has two classes
CAPACITY = 12
SEED = (0, 1)
_RNG = np.random.default_rng(5)
LABELS = np.repeat(np.arange(CLASSES), PER_TASK // 2)
_CENTRES = _RNG.integers(40, 216, (CLASSES, 8, 8, 3))
_NOISY = _CENTRES[LABELS] + _RNG.normal(0, 30, (len(LABELS), 8, 8, 3))
IMAGES = torch.from_numpy(np.clip(_NOISY, 0, 255).astype(np.uint8))
VECTORS = IMAGES.flatten(1).float() / 255


def check_learner(name: str, variant: str = "paper") -> Iterator[CheckResult]:
    """Let a registered learner learn small tasks, and say for each part of its contract whether it is kept.

    >>> [result for result in check_learner("finetune") if result.fault]
    []
    """
    return check_all(Taught(name, variant), CHECKS)


@dataclass(frozen=True)
class Taught:
    """A learner, to be given three tasks of two classes each."""

    name: str
    variant: str

    def begin(self, t: int, model: Classifier, memory: Memory, ids: Any = None, **changes: Any) -> Learner:
        """The learner at the start of the only round of task t; images, or vectors if the model takes these."""
        ids = _ids(t) if ids is None else ids
        inputs = VECTORS if next(model.parameters()).ndim == 2 else IMAGES
        given = {"epochs": 2, "batch": 8, "lr": 0.05, "momentum": 0.8, "weight_decay": 1e-4, "capacity": CAPACITY}
        round = Round(
            model,
            TaskData(ids, LABELS[ids], inputs[ids]),
            memory,
            lambda past: inputs[past],
            Training(**(given | changes)),
            Transform() if inputs is VECTORS else Transform((0.5,), (0.25,), crop=1, flip=True),
            seed=(*SEED, t),
            last_round=True,
            seen=np.arange(2 * t + 2),
        )
        return start(self.name, round, self.variant)

    def one_task(self, t: int, model: Classifier, memory: Memory, ids: Any = None, **changes: Any) -> Memory:
        """Learn task t; the memory after it."""
        learner = self.begin(t, model, memory, ids, **changes)
        learner.train()
        return remember(learner)

    def all_tasks(self, model: Classifier, tasks: int = 3, labels: int = PER_TASK, **changes: Any) -> list[Memory]:
        """Learn the tasks; the memories before the first and after each."""
        memories = [Memory.empty()]
        for t in range(tasks):
            memories.append(self.one_task(t, model, memories[-1], _ids(t)[:labels], **changes))
        return memories


def _ids(t: int) -> Any:
    return PER_TASK * t + np.random.default_rng(t).permutation(PER_TASK)


def _net(classes: int = CLASSES) -> Classifier:
    return build("conv3", classes, seed=0, input_shape=(3, 8, 8), width=4)


def _check_finite(model: Classifier, when: str) -> None:
    for name, value in model.state_dict().items():
        if not bool(value.isfinite().all()):
            raise Broken(f"{when}, {name} of the model is not finite; lower the step, or guard the loss")


def _same_arrays(first: Memory, second: Memory) -> bool:
    a, b = first.to_arrays(), second.to_arrays()
    return a.keys() == b.keys() and all(a[name].tobytes() == b[name].tobytes() for name in a)


def _learns(taught: Taught) -> None:
    """It learns three tasks of images, and their weights stay finite."""
    model, before = _net(), _net()
    taught.all_tasks(model)
    _check_finite(model, "after three tasks")
    if all(torch.equal(a, b) for a, b in zip(model.parameters(), before.parameters(), strict=True)):
        raise Broken("training does not change the model; call self.round.step(loss) in observe")


def _repeatable(taught: Taught) -> None:
    """It gives the same weights and memories for the same seed, and draws from no global generator."""
    models = _net(), _net()
    with global_randomness_watched():
        first, second = (taught.all_tasks(model, tasks=2) for model in models)
    for name, value in models[0].state_dict().items():
        if not torch.equal(value, models[1].state_dict()[name]):
            raise Broken(f"trained twice with the same seed, {name} of the model differs; use self.round.drawn(...)")
    if not all(_same_arrays(a, b) for a, b in zip(first, second, strict=True)):
        raise Broken("trained twice with the same seed, its memories differ; use self.round.drawn(...)")


def _memory(taught: Taught) -> None:
    """Its memory holds labelled examples, each once, with their labels, and no more than its capacity."""
    limited = bool(REGISTRY[taught.name].policy)
    model, memory = _net(), Memory.empty()
    for t in range(1, 4):
        memory = taught.one_task(t - 1, model, memory)
        if len(np.unique(memory.ids)) < len(memory):
            raise Broken(f"after task {t} its memory has an example twice; keep each once")
        if len(memory) and (memory.ids.min() < 0 or memory.ids.max() >= PER_TASK * t):
            raise Broken(f"after task {t} its memory has an example that nobody labelled; keep ids of the round")
        if not np.array_equal(memory.labels, LABELS[memory.ids]):
            raise Broken(f"after task {t} its memory has labels that its examples do not have; keep them together")
        if limited and len(memory) > CAPACITY:
            raise Broken(
                f"after task {t} its memory has {len(memory)} examples, but self.round.training.capacity is "
                f"{CAPACITY}; keep fewer, or declare `policy = []` if it keeps all on purpose"
            )


def _memory_stays(taught: Taught) -> None:
    """It leaves the memory that it is given as it is."""
    before = taught.all_tasks(_net(), tasks=1)[-1]
    copies = {name: array.copy() for name, array in before.to_arrays().items()}
    taught.one_task(1, _net(), before)
    if any(not np.array_equal(array, copies[name]) for name, array in before.to_arrays().items()):
        raise Broken("it writes into the previous task's memory; make a new one, such as memory.take(rows)")


def _resumes(taught: Taught) -> None:
    """Started again after training, as after a crash, it remembers the same."""
    before = taught.all_tasks(_net(), tasks=1)[-1]
    model = _net()
    learner = taught.begin(1, model, before)
    learner.train()
    memory = remember(learner)
    again = remember(taught.begin(1, model, learner.buffer))
    if not _same_arrays(memory, again):
        raise Broken("its memory depends on what only `train` knows; keep that in self.buffer, or derive it from ids")


def _small(taught: Taught) -> None:
    """It learns from one label, from batches of one, and without a memory."""
    for changes in ({"labels": 1}, {"labels": 9, "batch": 1, "epochs": 1}, {"capacity": 0}, {"capacity": 1}):
        model = _net()
        words = ", ".join(f"{name} = {value}" for name, value in changes.items())
        try:
            taught.all_tasks(model, **{"tasks": 2, **changes})
        except Broken:
            raise
        except Exception as error:
            error.add_note(words)
            raise
        _check_finite(model, f"with {words}")


def _vectors(taught: Taught) -> None:
    """It learns vectors, and classes that a growing head gets later."""
    model, memory = build("mlp", 2, seed=0, input_shape=(VECTORS.shape[1],), width=16), Memory.empty()
    for t in range(3):
        model.grow(2 * t + 2, seed=0)
        memory = taught.one_task(t, model, memory)
    _check_finite(model, "with a head that grows")


def _frozen(taught: Taught) -> None:
    """It does not change parameters that are frozen."""
    model = _net()
    model.embed.requires_grad_(False)
    before = [parameter.clone() for parameter in model.embed.parameters()]
    taught.all_tasks(model, tasks=2)
    if not all(torch.equal(a, b) for a, b in zip(before, model.embed.parameters(), strict=True)):
        raise Broken("parameters with requires_grad=False change; step through self.round.step(loss)")


def _policies(taught: Taught) -> None:
    """Every memory policy that it declares to take decides what it keeps."""
    if taught.variant not in REGISTRY[taught.name].policy:
        return
    paper = taught.all_tasks(_net(), tasks=2)[-1]
    kept = {policy: taught.all_tasks(_net(), tasks=2, policy=policy)[-1] for policy in POLICIES}
    if kept and all(_same_arrays(memory, paper) for memory in kept.values()):
        raise Broken("it keeps the same examples whatever the policy; call self.keep(...), or declare `policy = []`")


CHECKS = (_learns, _repeatable, _memory, _memory_stays, _resumes, _small, _vectors, _frozen, _policies)
