"""Who gives the labels."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import LabelsPending

__all__ = ["LabelsPending", "Oracle", "Simulated"]

Ids = NDArray[np.int64]


class Oracle(Protocol):
    """Labels for rows of the training split, as the dataset's class ids; -1 for one that was skipped.

    Raises `LabelsPending` while some are missing. Asked about the same rows again, it gives the same labels.
    """

    def __call__(self, task: int, round: int, ids: Ids) -> Ids: ...


class Simulated:
    """The true labels, at once: what experiments use."""

    def __init__(self, labels: Ids) -> None:
        self.labels = labels

    def __call__(self, task: int, round: int, ids: Ids) -> Ids:
        return self.labels[ids]
