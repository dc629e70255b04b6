"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line in
`registry.py`, which also declares the settings that it uses, or `register` it from anywhere. The paper's four come in
two variants: "paper", as in its experiments, and "original", as first published; the others have one form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.learners.loop import (
        Diverged as Diverged,
        Learner as Learner,
        diverged as diverged,
        remember as remember,
    )
    from accuacl.experiments.learners.registry import (
        MEMORY_POLICIES as MEMORY_POLICIES,
        NAMES as NAMES,
        PAPER as PAPER,
        REGISTRY as REGISTRY,
        SETTINGS as SETTINGS,
        check_policy as check_policy,
        register as register,
        start as start,
    )
    from accuacl.experiments.learners.round import (
        Round as Round,
        TaskData as TaskData,
        Training as Training,
        Transform as Transform,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "loop": ("Diverged", "diverged", "Learner", "remember"),
        "registry": ("MEMORY_POLICIES", "NAMES", "PAPER", "REGISTRY", "SETTINGS", "check_policy", "register", "start"),
        "round": ("Round", "TaskData", "Training", "Transform"),
    },
)
