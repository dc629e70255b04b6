"""The memory policies by name. What is written as text is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from accuacl.base.errors import InputError, check_new_name
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, takes, with_place

if TYPE_CHECKING:
    from accuacl.experiments.memory.buffer import FeaturePolicy

FEATURE_POLICIES: Registry[FeaturePolicy] = Registry(  # by name: "file:function"
    "accuacl.experiments.memory",
    {
        "herding": "feature_policies:herding",
        "coverage": "feature_policies:coverage",
    },
)
GIVEN = ("memory", "ids", "labels", "features", "capacity", "seed", "logits")  # to a policy, in this order

P = TypeVar("P", bound="FeaturePolicy")


def register(name: str) -> Callable[[P], P]:
    """Make a memory policy of your own known by its name; it has the signature of `herding`.

    >>> @register("first")
    ... def first(memory, ids, labels, features, capacity, seed, logits=None):
    ...     return memory
    >>> FEATURE_POLICIES.pop("first") is first
    True
    """
    check_new_name("memory policy", name, [*FEATURE_POLICIES, "paper", "agreement"])

    def keep(policy: P) -> P:
        if not callable(policy):
            raise InputError(f"the memory policy {name} is a {type(policy).__name__}; register a function.")
        if not takes(policy, len(GIVEN)):
            who = with_place(f"the memory policy {name}", policy)
            raise InputError(f"{who} must take {len(GIVEN)} arguments: {', '.join(GIVEN)}.")
        FEATURE_POLICIES[name] = policy
        REGISTERED.append(("memory policy", name))
        return policy

    return keep
