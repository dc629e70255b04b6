"""Models: an embedding and a linear head on top, so that every strategy can see the head's input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from accuacl.base.lazy import lazy_attributes

if TYPE_CHECKING:
    from accuacl.experiments.models.classifier import (
        Classifier as Classifier,
        Frozen as Frozen,
        new_head as new_head,
        wrap as wrap,
    )
    from accuacl.experiments.models.names import NAMES as NAMES, PROJECTED as PROJECTED, is_own as is_own
    from accuacl.experiments.models.nets import build as build
    from accuacl.experiments.models.predicting import predict as predict

__getattr__, __dir__ = lazy_attributes(
    __name__,
    {
        "classifier": ("Classifier", "Frozen", "new_head", "wrap"),
        "names": ("NAMES", "PROJECTED", "is_own"),
        "nets": ("build",),
        "predicting": ("predict",),
    },
)
