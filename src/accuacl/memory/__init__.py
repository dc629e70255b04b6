"""Replay buffers: an immutable value, and policies, pure functions of the examples offered to it.

Every policy has a small file here. A policy that needs only ids and labels has the signature of `reservoir`; one that
also looks at the features of all examples has the signature of `herding` and a line in FEATURE_POLICIES in registry.py.
`agreement` needs the model's predictions too, GSS's two functions need the scores of gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.front import front_door
from accuacl.memory.registry import FEATURE_POLICIES, register

if TYPE_CHECKING:
    from accuacl.memory.agreement import agreement
    from accuacl.memory.answers import check_kept
    from accuacl.memory.buffer import Memory
    from accuacl.memory.class_balanced import class_balanced
    from accuacl.memory.coverage import coverage
    from accuacl.memory.gradient_diverse import append_scored, replace_scored
    from accuacl.memory.herding import herding
    from accuacl.memory.policy import FeaturePolicy, Policy
    from accuacl.memory.reservoir import reservoir

__all__ = [
    "FEATURE_POLICIES",
    "FeaturePolicy",
    "Memory",
    "Policy",
    "agreement",
    "append_scored",
    "check_kept",
    "class_balanced",
    "coverage",
    "herding",
    "register",
    "replace_scored",
    "reservoir",
]

__getattr__ = front_door(__name__)
