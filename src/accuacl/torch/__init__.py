"""From a torch model to `Features`: what strategies see of the examples that a loader gives.

    from accuacl import select
    from accuacl.torch import features

    pool = features(model, loader, classes=seen)
    picked = select("badge", pool=pool, budget=100)

The model is neither copied nor changed, nor moved to another device; afterwards its hooks and modes are as they were.
"""

from accuacl.torch.from_model import features

__all__ = ["features"]
