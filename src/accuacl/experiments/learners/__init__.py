"""Learners: how a model learns a task without forgetting the ones before.

A learner is a small class over the loop in `loop.py`. To add one, write it in a file of its own and give it a line in
`registry.py`, which also declares the settings that it uses, or `register` it from anywhere. The paper's four come in
two variants: "paper", as in its experiments, and "original", as first published; the others have one form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.learners.loop import *
    from accuacl.experiments.learners.registry import *
    from accuacl.experiments.learners.round import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    loop="Diverged Learner diverged remember",
    registry="MEMORY_POLICIES NAMES PAPER REGISTRY SETTINGS check_policy register start",
    round="Round TaskData Training Transform transform_of",
)
