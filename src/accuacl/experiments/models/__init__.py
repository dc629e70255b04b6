"""Models: an embedding and a linear head on top, so that every strategy can see the head's input.

The names of the nets are here, where they can be read without loading torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.models.classifier import *
    from accuacl.experiments.models.kernel_layer import *
    from accuacl.experiments.models.nets import *

__getattr__, __dir__ = lazy_attributes(
    __name__,
    classifier="Classifier Frozen new_head predict wrap",
    kernel_layer="KernelLayer",
    nets="build",
)

IMAGES = ("resnet18", "resnet18-3x3", "resnet18-3x3-pool", "conv4", "conv4-stride2", "conv3")  # the nets that take them
VECTORS = ("mlp", "projection", "linear")
PRETRAINED = "pretrained"  # a head on what a pretrained network gives for images
FROZEN = ("projection", "linear", PRETRAINED)  # those that exact learners leave as they are
NAMES = (*IMAGES, *VECTORS, PRETRAINED)
PROJECTED = 2048  # outputs of a random projection
