"""How a project sees texts: trained word vectors beside TF-IDF columns, TF-IDF alone, or the user's own model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.userfile import load_function
from accuacl.labeling.project.inputs import trust, words
from accuacl.labeling.project.inputs.token_vectors import TokenVectors
from accuacl.labeling.project.items.tasks import Tasks
from accuacl.labeling.project.settings import WORD_VECTORS, ProjectSettings

Encode = Callable[[list[str]], NDArray[np.float32]]


def text_encoder(settings: ProjectSettings, tasks: Tasks) -> Encode:
    """From texts to vectors, one row each. The weights of words are learned from the first task, and then stay."""
    if settings.own:
        return own_encoder(settings)
    idf = tasks.folder_of(0) / "words.json"
    if not idf.exists():
        words.fit(tasks.table(0)["text"], settings.text_features, idf)
    if settings.model != WORD_VECTORS:
        return lambda texts: words.vectors(texts, idf)
    settings.check_files()
    tokens = TokenVectors()
    return lambda texts: np.hstack([tokens(texts), words.vectors(texts, idf)])


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
