"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line in
`registry.py`, or `register` it from anywhere. Each comes in two variants: "paper", as in the paper's experiments, and
"original", as first published; ridge, which belongs to neither, is the same in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.front import front_door
from accuacl.learners.registry import MEMORY_POLICIES, NAMES, PAPER, REGISTRY, check_policy, register, start

if TYPE_CHECKING:
    from accuacl.learners.augment import Transform
    from accuacl.learners.loop import Diverged, Learner, diverged, remember, train
    from accuacl.learners.round import Round
    from accuacl.learners.training import TaskData, Training

__all__ = [
    "MEMORY_POLICIES",
    "NAMES",
    "PAPER",
    "REGISTRY",
    "Diverged",
    "Learner",
    "Round",
    "TaskData",
    "Training",
    "Transform",
    "check_policy",
    "diverged",
    "register",
    "remember",
    "start",
    "train",
]

__getattr__ = front_door(__name__)
