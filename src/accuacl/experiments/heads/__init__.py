"""Class-balanced ridge regression on frozen features: a head that is exact, and learned in one step.

    head = fit(x, labels, classes)
    head.logits(x)          # softmax of these is calibrated by leave-one-out

`fit` makes the head, `loo` computes what every example would get if it were left out, `temperature` calibrates, and
`sums` is all that must be kept of examples.
"""

from accuacl.experiments.heads.ridge import fit, fit_like, sharpness
from accuacl.experiments.heads.sums import (
    Sums,
    examples_of,
    from_tensors,
    merged,
    sums_of,
    to_tensors,
    together,
    without,
)

__all__ = [
    "Sums",
    "examples_of",
    "fit",
    "fit_like",
    "from_tensors",
    "merged",
    "sharpness",
    "sums_of",
    "to_tensors",
    "together",
    "without",
]
