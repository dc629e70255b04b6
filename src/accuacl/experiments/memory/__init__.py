"""Replay memories: an immutable value, and policies, pure functions of the examples offered to it.

A policy that can be chosen by name has the signature of `herding` and a line in `POLICIES`, or is registered by a
plugin. `reservoir`, `class_balanced` and GSS's two functions belong to the learners that use them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.memory.buffer import *
    from accuacl.experiments.memory.policies import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    buffer="POLICIES Memory check_kept register",
    policies="append_scored class_balanced replace_scored reservoir",
)
