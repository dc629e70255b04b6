"""Models: an embedding and a linear head on top, so that every strategy can see the head's input."""

from typing import TYPE_CHECKING

from accuacl.base.front import front_door
from accuacl.models.names import NAMES, PROJECTED, is_own

if TYPE_CHECKING:
    from accuacl.models.classifier import Classifier, new_head
    from accuacl.models.eval_mode import evaluating
    from accuacl.models.frozen import Frozen
    from accuacl.models.nets import build
    from accuacl.models.output import linear_outputs, no_logits, output_layer, softmax_of, tensor_of
    from accuacl.models.predicting import predict
    from accuacl.models.wrapping import wrap

__all__ = [
    "NAMES",
    "PROJECTED",
    "Classifier",
    "Frozen",
    "build",
    "evaluating",
    "is_own",
    "linear_outputs",
    "new_head",
    "no_logits",
    "output_layer",
    "predict",
    "softmax_of",
    "tensor_of",
    "wrap",
]

__getattr__ = front_door(__name__)
