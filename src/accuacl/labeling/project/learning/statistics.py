"""A project that keeps no example of finished tasks (`--keep statistics`): sums stand for them.

When a task ends, the sums of its labelled examples join those of the tasks before; then its texts, vectors and
embeddings are erased, all but the held-out ones, which estimates need. Where a learner or strategy asks for the memory
it gets rows with the same sums: as many for each class as there were examples, with their mean and their scatter.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accuacl.experiment import Handle, Ids, load_tensors, save_tensors
from accuacl.memory import Memory
from accuacl.ridge import Sums, examples_of, from_tensors, merged, sums_of, to_tensors, together


def load_sums(folder: Path, handle: Handle | None) -> Sums:
    """The sums of all finished tasks."""
    tensors = load_tensors(folder, handle) if handle else None
    return from_tensors(tensors) if tensors and len(tensors["classes"]) else {}


def save_sums(path: Path, sums: Sums) -> Handle:
    empty = {name: torch.empty(0) for name in ("classes", "counts", "ranks", "means", "scatters")}
    return dict(save_tensors(path, to_tensors(sums) if sums else empty))


def as_memory(sums: Sums, into: dict[int, int]) -> tuple[Memory, NDArray[np.float32]]:
    """A memory of rows with these sums, classes merged as they are by now; row i has the id -1 - i."""
    if not sums:
        return Memory.empty(), np.empty((0, 0), np.float32)
    rows, labels = examples_of(merged(sums, into))
    return Memory(-1 - np.arange(len(rows)), labels.numpy()), rows.float().numpy()


def with_task(sums: Sums, rows: NDArray[Any], labels: Ids, into: dict[int, int]) -> Sums:
    """The sums with the examples of a task that has ended."""
    return together(merged(sums, into), sums_of(torch.from_numpy(rows), torch.from_numpy(labels)))
