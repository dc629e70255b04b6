"""The names of the nets, which can be read without loading torch."""

from __future__ import annotations

IMAGES = ("resnet18", "resnet18-3x3", "resnet18-3x3-pool", "conv4", "conv4-stride2", "conv3")  # the nets that take them
VECTORS = ("mlp", "projection", "linear")
NAMES = (*IMAGES, *VECTORS)
PROJECTED = 2048  # outputs of a random projection


def is_own(model: str) -> bool:
    """Whether a model is a user's own function, as in `net.py:build`.

    >>> is_own("net.py:build"), is_own("resnet18")
    (True, False)
    """
    return model.rpartition(":")[0].endswith(".py")
