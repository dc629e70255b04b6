"""Replay memories: an immutable value, and policies, pure functions of the examples offered to it.

A policy that can be chosen by name has the signature of `herding` and a line in `policy_registry.py`, or is registered
by a plugin. `reservoir`, `class_balanced` and GSS's two functions belong to the learners that use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.memory.buffer import Memory as Memory
    from accuacl.experiments.memory.policies import (
        append_scored as append_scored,
        class_balanced as class_balanced,
        replace_scored as replace_scored,
        reservoir as reservoir,
    )
    from accuacl.experiments.memory.policy_registry import (
        POLICIES as POLICIES,
        check_kept as check_kept,
        register as register,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "buffer": ("Memory",),
        "policies": (
            "append_scored",
            "class_balanced",
            "replace_scored",
            "reservoir",
        ),
        "policy_registry": ("POLICIES", "check_kept", "register"),
    },
)
