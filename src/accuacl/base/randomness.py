"""Randomness is derived, never carried: every purpose has a generator or a hash of its own.

No state is passed from one step to the next, so that a repeated step draws the same numbers.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio
KEEP = np.uint64(0xD1B54A32D192ED03)


def derive(*parts: int | str) -> int:
    """A 63-bit seed that depends on all parts and their order.

    >>> derive(0, 1, "order") == derive(0, 1, "order") != derive(1, 0, "order")
    True
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def torch_generator(*parts: int | str) -> torch.Generator:
    """A new torch generator, seeded with `derive(*parts)`."""
    import torch

    return torch.Generator().manual_seed(derive(*parts))


def numpy_generator(*parts: int) -> np.random.Generator:
    """A new NumPy generator for these numbers: the seed, the task, the round, the purpose."""
    return np.random.default_rng(parts)


def hash_ids(seed: int, ids: NDArray[np.int64] | NDArray[np.uint64], purpose: str = "pick") -> NDArray[np.uint64]:
    """A 64-bit hash of (seed, id) for each id: both pass the finaliser of SplitMix64, the seed first.

    purpose: "pick" (uniform sampling) or "keep" (replay memories). They differ so that the examples picked first are
    not also the ones kept.
    """
    word = np.array([seed % 2**64], np.uint64)
    start = mix64(word + GOLDEN if purpose == "pick" else word ^ KEEP)
    return mix64(ids.astype(np.uint64) * GOLDEN + start)


def mix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser: every bit of x changes half of the bits, and no two x give the same number."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def rank(key: str, item: int) -> bytes:
    """A sort key for an order of items that depends on `key` alone, not on a library or the items' present order."""
    return hashlib.sha256(f"{key}:{item}".encode()).digest()
