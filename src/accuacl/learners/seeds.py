"""Randomness is derived, never carried: every purpose has its own generator."""

from __future__ import annotations

import hashlib

import torch


def derive(*parts: int | str) -> int:
    """A 63-bit number that depends on all parts and their order.

    >>> derive(0, 1, "order") == derive(0, 1, "order") != derive(1, 0, "order")
    True
    """
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def generator(*parts: int | str) -> torch.Generator:
    """A generator of its own, seeded with `derive(*parts)`."""
    return torch.Generator().manual_seed(derive(*parts))
