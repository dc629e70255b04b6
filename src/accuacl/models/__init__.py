"""Models: an embedding and a linear head on top, so that every strategy can see the head's input."""

from accuacl.models.classifier import Classifier, new_head
from accuacl.models.frozen import Frozen
from accuacl.models.nets import NAMES, PROJECTED, build
from accuacl.models.predict import evaluating, predict
from accuacl.models.wrap import wrap

__all__ = ["NAMES", "PROJECTED", "Classifier", "Frozen", "build", "evaluating", "new_head", "predict", "wrap"]
