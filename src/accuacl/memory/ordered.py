"""The first examples of every class, in an order that depends on the model's features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.greedy import unit
from accuacl.memory.buffer import Ids, Memory
from accuacl.memory.class_balanced import first_of_each_class
from accuacl.memory.offer import offer

Order = Callable[[NDArray[np.float64], int], Ids]  # (n rows of length 1, count): which `count` to keep, best first


def keep_in_order(
    order: Order,
    memory: Memory,
    ids: Ids,
    labels: Ids,
    features: NDArray[Any],
    capacity: int,
    seed: int,
    logits: Any = None,
) -> Memory:
    """As many examples of every class as `class_balanced` keeps: the first in the class's order, sorted by id.

    features: of the memory's examples, then of those offered.
    """
    check_features(features, memory, ids)

    def first(rows: Ids) -> Ids:
        return order(unit(features[rows]), min(capacity, len(rows)))

    return keep_first(first, memory, ids, labels, capacity, seed, logits)


def keep_first(
    first: Callable[[Ids], Ids], memory: Memory, ids: Ids, labels: Ids, capacity: int, seed: int, logits: Any
) -> Memory:
    """The same with any order. first: given the examples of a class, which of them come first.

    It is given positions in the memory and, behind it, in what is offered; it gives positions in what it is given.
    A class that is offered examples is ordered again, together with its examples in memory; the other classes keep
    their order. Keys are ranks in the class's order, so a smaller quota drops the last ones. An example that is already
    in memory is not offered again.
    """
    offered = offer(memory, ids, labels, capacity, seed, logits)  # each id once, in order of id
    assert offered.keys is not None
    together = np.concatenate([memory.ids, np.asarray(ids, np.int64)])
    first_row = np.unique(together, return_index=True)[1]  # of each id, in order of id
    keys, new = offered.keys.copy(), ~np.isin(offered.ids, memory.ids)
    for label in np.unique(offered.labels[new]):
        rows = np.flatnonzero(offered.labels == label)
        leading = rows[first(first_row[rows])]
        keys[rows] = len(rows)
        keys[leading] = np.arange(len(leading))
    return first_of_each_class(Memory.from_arrays(offered.to_arrays() | {"keys": keys}), capacity, seed)


def check_features(features: NDArray[Any], memory: Memory, ids: Ids) -> None:
    """There must be a row for each example."""
    if len(features) != len(memory) + len(ids):
        raise InputError(
            f"{len(features)} rows of features came with {len(memory)} examples in the memory and {len(ids)} offered; "
            "give one for each, the memory's first."
        )
