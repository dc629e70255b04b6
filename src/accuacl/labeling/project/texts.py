"""Texts as the mean of trained token vectors: 32,000 of them, 256 numbers each, in the package wordllama.

Only two of its files are read, the vectors and the tokenizer; its code, which looks for them elsewhere, is not run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, install
from accuacl.base.files import reading, write_text
from accuacl.base.userfile import load_function
from accuacl.labeling.project import settings, settings as trust
from accuacl.labeling.project.settings import WORD_VECTORS, ProjectSettings
from accuacl.labeling.project.tasks import Tasks

BLOCK = 4096  # tokens whose vectors are summed at a time


class TokenVectors:
    """Call it with texts of any length: a row of length 1 for each, all zeros for a text without tokens."""

    def __init__(self) -> None:
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        paths = settings.files()
        if paths is None:
            raise InputError(
                f"this project sees texts through the word vectors of the extra `label`; {install('label')}."
            )
        with reading(paths[0]):
            (self.table,) = load(paths[0].read_bytes()).values()
        self.tokenizer: Any = Tokenizer.from_file(str(paths[1]))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.table.shape[1]))
        for row, encoding in zip(rows, self.tokenizer.encode_batch(texts, add_special_tokens=False), strict=True):
            for start in range(0, len(encoding.ids), BLOCK):
                row += self.table[encoding.ids[start : start + BLOCK]].astype(np.float64).sum(axis=0)
        return (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).astype(np.float32)


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


Encode = Callable[[list[str]], NDArray[np.float32]]


def text_encoder(settings: ProjectSettings, tasks: Tasks) -> Encode:
    """From texts to vectors, one row each. The weights of words are learned from the first task, and then stay."""
    if settings.own:
        return own_encoder(settings)
    idf = tasks.folder_of(0) / "words.json"
    if not idf.exists():
        fit(tasks.table(0)["text"], settings.text_features, idf)
    if settings.model != WORD_VECTORS:
        return lambda texts: vectors(texts, idf)
    settings.check_files()
    tokens = TokenVectors()
    return lambda texts: np.hstack([tokens(texts), vectors(texts, idf)])


def own_encoder(settings: ProjectSettings) -> Encode:
    """The user's function makes a model: something that takes a list of texts and gives a row of numbers for each."""
    settings.check_files()
    trust.check(settings)
    model: Any = load_function(settings.model, fresh=True)()
    if not callable(model):
        raise InputError(
            f"{settings.model} returned {type(model).__name__}; return a function that takes a list of texts and "
            "gives an array with one row for each."
        )

    def encode(texts: list[str]) -> NDArray[np.float32]:
        rows: NDArray[Any] = np.asarray(model(list(texts)))
        if rows.ndim != 2 or len(rows) != len(texts) or rows.dtype.kind not in "fiu":
            raise InputError(
                f"{settings.model} gave {rows.dtype} {rows.shape} for {len(texts)} texts; give numbers, one row a text."
            )
        if not np.isfinite(rows).all():
            raise InputError(f"{settings.model} gave numbers that are not finite; fix the model.")
        return rows.astype(np.float32)

    return encode
