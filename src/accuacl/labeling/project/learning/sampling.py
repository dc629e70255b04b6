"""Large pools: strategies that cover a pool look at a random sample of it; all of it would take minutes a round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from accuacl import strategies
from accuacl.base.randomness import derive, hash_ids
from accuacl.labeling.project.learning.taught import KnownFromPeople

AT_LEAST = 20  # items of the sample for each that is to be picked


def sample_of(known: KnownFromPeople, strategy: str, sample: int, count: int, seed: int) -> KnownFromPeople:
    """What is known, with a pool of so many items that can still be asked for, if the strategy can work on a sample.

    It has those whose numbers have the smallest hashes, so that the same items are in it from round to round.
    """
    size = max(sample, AT_LEAST * count)
    if not sample or len(known.left) <= size or "sample" not in strategies.options_of(strategy):
        return known
    hashes = hash_ids(derive(seed, "sample of the pool"), known.left.astype(np.uint64))
    kept = np.sort(known.left[np.argsort(hashes, kind="stable")[:size]])
    return replace(known, pool=kept)


def said_of(picked: dict[str, Any], sample: KnownFromPeople, known: KnownFromPeople) -> dict[str, Any]:
    """The picks with what is recorded of the sample: its size, and that of the pool, to which gains are scaled."""
    size, whole = len(sample.left), len(known.left)
    if size == whole:
        return picked
    scores = {
        name: [value if value is None else value * (whole / size) for value in values] if name == "gain" else values
        for name, values in picked["scores"].items()
    }
    return picked | {"scores": scores, "sample": size, "pool": whole}
