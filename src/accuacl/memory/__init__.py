"""Replay buffers: an immutable value, and policies, pure functions of the examples offered to it.

Every policy has a small file here. A policy that needs only ids and labels has the signature of `reservoir` and a line
in POLICIES; a policy that also looks at the features of all examples has the signature of `herding` and a line in
FEATURE_POLICIES. `agreement` needs the model's predictions too, GSS's two functions need the scores of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.userfile import REGISTERED
from accuacl.memory.agreement import agreement
from accuacl.memory.answers import check_kept
from accuacl.memory.buffer import Ids, Memory
from accuacl.memory.class_balanced import class_balanced
from accuacl.memory.coverage import coverage
from accuacl.memory.gradient_diverse import append_scored, replace_scored
from accuacl.memory.herding import herding
from accuacl.memory.reservoir import reservoir

__all__ = [
    "FEATURE_POLICIES",
    "POLICIES",
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


class Policy(Protocol):
    """Chooses what to keep of a memory and of the examples offered to it, at most `capacity`."""

    def __call__(
        self, memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any = None
    ) -> Memory: ...


class FeaturePolicy(Protocol):
    """The same with the model's features, first of the examples in the memory, then of those offered."""

    def __call__(
        self,
        memory: Memory,
        ids: Ids,
        labels: Ids,
        features: NDArray[Any],
        capacity: int,
        seed: int,
        logits: Any = None,
    ) -> Memory: ...


POLICIES: dict[str, Policy] = {"reservoir": reservoir, "class-balanced": class_balanced}
FEATURE_POLICIES: dict[str, FeaturePolicy] = {"herding": herding, "coverage": coverage}

P = TypeVar("P", bound=FeaturePolicy)


def register(name: str) -> Callable[[P], P]:
    """Make a memory policy of your own known by its name; it has the signature of `herding`.

    >>> @register("first")
    ... def first(memory, ids, labels, features, capacity, seed, logits=None):
    ...     return memory
    >>> FEATURE_POLICIES.pop("first") is first
    True
    """
    if not name or name in FEATURE_POLICIES or name == "paper":
        raise InputError(f"a memory policy cannot be called {name!r}; give it a name that is not taken.")

    def keep(policy: P) -> P:
        if not callable(policy):
            raise InputError(f"the memory policy {name} is a {type(policy).__name__}; register a function.")
        FEATURE_POLICIES[name] = policy
        REGISTERED.append(("memory policy", name))
        return policy

    return keep
