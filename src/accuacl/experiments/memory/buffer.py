"""The replay buffer as an immutable value, how examples are offered to it, and the policies by name.

A built-in policy is imported when it is asked for; what a user's returns is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type, check_new_name
from accuacl.base.lazy import Registry
from accuacl.base.randomness import hash_ids
from accuacl.base.userfile import REGISTERED, takes, with_place

Array = NDArray[Any]
Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

TYPES = {"ids": np.int64, "labels": np.int64, "keys": np.uint64, "scores": np.float64, "logits": np.float32}


@dataclass(frozen=True, eq=False)
class Memory:
    """The replay memory: one row per example, every id at most once.

    ids: rows of the dataset. labels: classes of the model. keys: the hashes by which a row was chosen. scores: GSS's
    similarity. logits: DER++'s, NaN in columns that the head did not have yet when a row was stored.
    """

    ids: Ids
    labels: Ids
    keys: NDArray[np.uint64] | None = None
    scores: Floats | None = None
    logits: NDArray[np.float32] | None = None

    @classmethod
    def empty(cls) -> Memory:
        return cls(np.empty(0, np.int64), np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[Any]) -> Memory:
        """These rows, in this order."""
        return Memory.from_arrays({name: array[rows] for name, array in self.to_arrays().items()})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays that are set, by name; `from_arrays` is the inverse."""
        return {name: getattr(self, name) for name in TYPES if getattr(self, name) is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Memory:
        given = {name: np.asarray(array, TYPES[name]) for name, array in arrays.items()}
        if len({len(array) for array in given.values()}) != 1 or not {"ids", "labels"} <= given.keys():
            shapes = {name: array.shape for name, array in given.items()}
            raise InputError(f"a memory was given {shapes}; give ids and labels, and one row of everything per id.")
        return cls(**given)


def offer(memory: Memory, ids: Ids, labels: Ids, seed: int, logits: Any) -> Memory:
    """The memory and the new examples together, each id once, under its smallest key."""
    keys = memory.keys if memory.keys is not None else hash_ids(seed, memory.ids, "keep")
    arrays = {
        "ids": np.concatenate([memory.ids, ids]),
        "labels": np.concatenate([memory.labels, labels]),
        "keys": np.concatenate([keys, hash_ids(seed, np.asarray(ids, np.int64), "keep")]),
    }
    if memory.logits is not None or logits is not None:
        arrays["logits"] = _stacked(memory.logits, len(memory), logits, len(ids))
    order = np.lexsort((arrays["keys"], arrays["ids"]))  # stable: of equal keys the one in memory stays
    first = np.ones(len(order), bool)
    first[1:] = np.diff(arrays["ids"][order]) != 0
    return Memory.from_arrays({name: array[order[first]] for name, array in arrays.items()})


def by_key(memory: Memory) -> NDArray[np.intp]:
    """The rows of the memory from the smallest key to the largest."""
    assert memory.keys is not None
    return np.lexsort((memory.ids, memory.keys))


def _stacked(above: Any, n: int, below: Any, m: int) -> NDArray[np.float32]:
    """Both blocks in one array, as wide as the wider of them; NaN where a block has no value."""
    parts = [np.empty((rows, 0)) if part is None else np.asarray(part) for part, rows in ((above, n), (below, m))]
    stacked = np.full((n + m, max(part.shape[1] for part in parts)), np.nan, np.float32)
    stacked[:n, : parts[0].shape[1]], stacked[n:, : parts[1].shape[1]] = parts
    return stacked


class Policy(Protocol):
    """Chooses what to keep of a memory and of the examples offered to it, at most `capacity`.

    features: the model's, first for the examples in the memory, then for those offered. A policy that has a keyword
    argument `predicted` is also given the model's predictions, in the same order.
    """

    def __call__(
        self, memory: Memory, ids: Ids, labels: Ids, features: Array, capacity: int, seed: int, logits: Any = None
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
    """Register a memory policy of your own under a name; it has the signature of `herding`.

    >>> @register("first")
    ... def first(memory, ids, labels, features, capacity, seed, logits=None):
    ...     return memory
    >>> POLICIES.pop("first") is first
    True
    """
    check_new_name("memory policy", name, [*POLICIES, "paper"])

    def keep(policy: P) -> P:
        if not callable(policy):
            raise InputError(f"the memory policy {name} is {a_type(policy)}; register a function.")
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
        raise InputError(f"{who} gave {a_type(kept)}; return a Memory, such as Memory(ids, labels).")
    if len(kept) > capacity:
        raise InputError(f"{who} kept {len(kept)} examples; keep at most `capacity` of them, here {capacity}.")
    if len(np.unique(kept.ids)) < len(kept):
        raise InputError(f"{who} kept an example twice; keep different ones.")
    strange = np.setdiff1d(kept.ids, np.concatenate([memory.ids, ids]))
    if len(strange):
        raise InputError(f"{who} kept the id {strange[0]}; keep ids of the memory or of those offered.")
    return kept
