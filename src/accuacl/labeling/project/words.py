"""Texts as vectors: scikit-learn's TF-IDF over hashed words.

Hashing has no vocabulary to run out: words that first come up in a later task count too. How telling a word is (idf)
is learned from the first task's texts and then stays, so that a text's vector never changes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.files import write_text


def fit(texts: list[str], columns: int, path: Path) -> None:
    """Learn how telling words are and write it down."""
    from sklearn.feature_extraction.text import TfidfTransformer

    fitted = TfidfTransformer().fit(_counts(texts, columns))
    write_text(path, json.dumps({"columns": columns, "idf": [round(float(x), 6) for x in fitted.idf_]}) + "\n")


def vectors(texts: list[str], path: Path) -> NDArray[np.float32]:
    """A row of length 1 for each text; of length 0 where it has no word."""
    idf = np.array(json.loads(path.read_text())["idf"])
    counts = _counts(texts, len(idf))
    counts.data = (1 + np.log(counts.data)) * idf[counts.indices]
    rows = counts.toarray()
    return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _counts(texts: list[str], columns: int) -> Any:
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        n_features=columns, alternate_sign=False, norm=None, token_pattern=r"(?u)\b\w+\b"
    ).transform(texts)
