"""scikit-learn's digits: 1797 images of 8 x 8 as vectors, always at hand, so that all can be tried at once."""

from __future__ import annotations

import numpy as np

from accuacl.base.randomness import rank
from accuacl.data.dataset import Dataset, Split


def digits() -> Dataset:
    """Vectors of 64 numbers in [0, 1]; a third of every class is the test split, always the same one."""
    from sklearn.datasets import load_digits  # takes a second, and nothing else here needs it

    vectors, labels = load_digits(return_X_y=True)
    test = np.zeros(len(labels), bool)
    for c in range(10):
        rows = sorted(np.flatnonzero(labels == c), key=lambda row: rank("digits", int(row)))
        test[rows[: len(rows) // 3]] = True
    inputs, labels = (vectors / 16).astype(np.float32), labels.astype(np.int64)
    return Dataset(
        "digits",
        train=Split(inputs[~test], labels[~test]),
        test=Split(inputs[test], labels[test]),
        classes=tuple("0123456789"),
    )
