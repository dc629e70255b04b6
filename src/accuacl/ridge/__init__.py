"""Class-balanced ridge regression on frozen features: a head that is exact, and learned in one step.

    head = fit(x, labels, classes)
    head.logits(x)          # softmax of these is calibrated by leave-one-out

`fit` has the whole of it; `loo` what every example would get if it were left out; `temperature` the calibration.
"""

from accuacl.ridge.fit import Head, fit
from accuacl.ridge.temperature import sharpness

__all__ = ["Head", "fit", "sharpness"]
