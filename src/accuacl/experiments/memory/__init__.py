"""Replay buffers: an immutable value, and policies, pure functions of the examples offered to it.

Every policy has a small file here. A policy that needs only ids and labels has the signature of `reservoir`; one that
also looks at the features of all examples has the signature of `herding` and a line in FEATURE_POLICIES in registry.py.
`agreement` needs the model's predictions too, GSS's two functions need the scores of gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.memory.buffer import (
        FeaturePolicy as FeaturePolicy,
        Memory as Memory,
        Policy as Policy,
        check_kept as check_kept,
    )
    from accuacl.experiments.memory.feature_policies import (
        agreement as agreement,
        coverage as coverage,
        herding as herding,
    )
    from accuacl.experiments.memory.policies import (
        append_scored as append_scored,
        class_balanced as class_balanced,
        replace_scored as replace_scored,
        reservoir as reservoir,
    )
    from accuacl.experiments.memory.registry import FEATURE_POLICIES as FEATURE_POLICIES, register as register

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "buffer": ("check_kept", "FeaturePolicy", "Memory", "Policy"),
        "feature_policies": ("agreement", "coverage", "herding"),
        "policies": ("append_scored", "class_balanced", "replace_scored", "reservoir"),
        "registry": ("FEATURE_POLICIES", "register"),
    },
)
