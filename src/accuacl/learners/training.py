"""How to train, and on what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.learners.registry import PAPER

Ids = NDArray[np.int64]
Fetch = Callable[[Ids], Tensor]  # raw inputs by id


@dataclass(frozen=True)
class Training:
    """The settings of a round of training."""

    epochs: int
    batch: int
    lr: float
    momentum: float
    weight_decay: float
    capacity: int  # of the memory
    classes: int  # in the head
    device: str = "cpu"
    lr_min: float = 0.001  # where the cosine ends
    cycled: bool = False  # ER: replay at every step, not only until the memory has been gone through once an epoch
    alpha: float = 0.1  # DER++: weight of the squared error to the stored logits
    beta: float = 0.5  # DER++: weight of the cross entropy of replayed examples
    balanced: bool = False  # as many examples of each class in an epoch, instead of every example once
    policy: str = PAPER  # what the memory keeps: as the paper has it for each learner, or a policy of `memory`
    generalised: bool = False  # ridge: chosen by generalised cross-validation where sums stand for examples
    subsets: int = 5  # GSS: random subsets of the memory with whose gradients an example's is compared

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 1), ("classes", 1), ("capacity", 0), ("subsets", 1)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}; give at least {least}.")
        for name in ("lr", "momentum", "weight_decay", "lr_min", "alpha", "beta"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"{name} is {getattr(self, name)}; give a finite number of at least 0.")


@dataclass(frozen=True)
class TaskData:
    """The examples of this task that have labels so far."""

    ids: Ids
    labels: Ids
    inputs: Tensor  # uint8 (n, H, W, C) or float32 (n, d)
