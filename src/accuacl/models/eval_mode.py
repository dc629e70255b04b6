"""A model in eval mode, for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in eval mode: BatchNorm neither mixes examples nor moves its statistics.

    Afterwards each of its modules is in the mode that it was in; a user may have frozen some.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
