"""Texts as vectors: scikit-learn's sublinear TF-IDF over hashed words.

Hashing needs no vocabulary, so words that first appear in a later task count too. The weights of words (idf) are
learned from the first task's texts and then stay, so that the vector of a text never changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.files import reading, write_text


def fit(texts: list[str], columns: int, path: Path) -> None:
    """Learn the weights of words and write them to a file."""
    from sklearn.feature_extraction.text import TfidfTransformer

    fitted = TfidfTransformer().fit(_counts(texts, columns))
    write_text(path, json.dumps({"columns": columns, "idf": [round(float(x), 6) for x in fitted.idf_]}) + "\n")


def vectors(texts: list[str], path: Path) -> NDArray[np.float32]:
    """A row of length 1 for each text; all zeros for a text without words."""
    from sklearn.feature_extraction.text import TfidfTransformer

    idf = weights(path)
    weighting = TfidfTransformer(norm=None, sublinear_tf=True)
    weighting.idf_ = idf
    rows = weighting.transform(_counts(texts, len(idf))).toarray()
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def weights(path: Path) -> NDArray[np.float64]:
    """The weights of words that `fit` has written."""
    with reading(path):
        return np.array(json.loads(path.read_text())["idf"], np.float64)


def _counts(texts: list[str], columns: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        n_features=columns, alternate_sign=False, norm=None, token_pattern=r"(?u)\b\w+\b"
    ).transform(texts)
