"""Replay memories: an immutable value, and policies, pure functions of the examples offered to it.

A policy that can be chosen by name has the signature of `herding` and a line in `POLICIES`, or is registered by a
plugin. `reservoir`, `class_balanced` and GSS's two functions belong to the learners that use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.memory.buffer import (
        POLICIES as POLICIES,
        Memory as Memory,
        check_kept as check_kept,
        register as register,
    )
    from accuacl.experiments.memory.policies import (
        append_scored as append_scored,
        class_balanced as class_balanced,
        replace_scored as replace_scored,
        reservoir as reservoir,
    )

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "buffer": (
            "Memory",
            "POLICIES",
            "check_kept",
            "register",
        ),
        "policies": (
            "append_scored",
            "class_balanced",
            "replace_scored",
            "reservoir",
        ),
    },
)
