"""The memory policies by name, and what is checked of a user's. A built-in one is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, check_new_name
from accuacl.base.lazy import Registry
from accuacl.base.userfile import REGISTERED, takes, with_place
from accuacl.experiments.memory.buffer import Ids, Memory


class Policy(Protocol):
    """Chooses what to keep of a memory and of the examples offered to it, at most `capacity`.

    features: the model's, first for the examples in the memory, then for those offered. A policy that has a keyword
    argument `predicted` is also given the model's predictions, in the same order.
    """

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


POLICIES: Registry[Policy] = Registry(  # by name: "file:function"
    "accuacl.experiments.memory",
    {
        "herding": "policies:herding",
        "coverage": "policies:coverage",
        "typical": "policies:typical",
        "mixed": "policies:mixed",
        "agreement": "policies:agreement",
    },
)
GIVEN = ("memory", "ids", "labels", "features", "capacity", "seed", "logits")  # to a policy, in this order

P = TypeVar("P", bound=Policy)


def register(name: str) -> Callable[[P], P]:
    """Make a memory policy of your own known by its name; it has the signature of `herding`.

    >>> @register("first")
    ... def first(memory, ids, labels, features, capacity, seed, logits=None):
    ...     return memory
    >>> POLICIES.pop("first") is first
    True
    """
    check_new_name("memory policy", name, [*POLICIES, "paper"])

    def keep(policy: P) -> P:
        if not callable(policy):
            raise InputError(f"the memory policy {name} is a {type(policy).__name__}; register a function.")
        if not takes(policy, len(GIVEN)):
            who = with_place(f"the memory policy {name}", policy)
            raise InputError(f"{who} must take {len(GIVEN)} arguments: {', '.join(GIVEN)}.")
        POLICIES[name] = policy
        REGISTERED.append(("memory policy", name))
        return policy

    return keep


def check_kept(name: str, policy: Callable[..., Any], kept: Any, memory: Memory, ids: Ids, capacity: int) -> Memory:
    """What the policy returned, if it is a memory of examples that it was offered, each once and not too many."""
    who = with_place(f"the memory policy {name}", policy)
    if not isinstance(kept, Memory):
        raise InputError(f"{who} gave a {type(kept).__name__}; return a Memory, such as Memory(ids, labels).")
    if len(kept) > capacity:
        raise InputError(f"{who} kept {len(kept)} examples; keep at most `capacity` of them, here {capacity}.")
    if len(np.unique(kept.ids)) < len(kept):
        raise InputError(f"{who} kept an example twice; keep different ones.")
    strange = np.setdiff1d(kept.ids, np.concatenate([memory.ids, ids]))
    if len(strange):
        raise InputError(f"{who} kept the id {strange[0]}; keep ids of the memory or of those offered.")
    return kept
