"""Texts as the mean of trained token vectors: 32,000 of them, 256 numbers each, in the package wordllama.

Only two of its files are read, the vectors and the tokenizer; its code, which looks for them elsewhere, is not run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError
from accuacl.base.extras import install
from accuacl.base.files import reading
from accuacl.labeling.project.inputs import token_files

BLOCK = 4096  # tokens whose vectors are summed at a time


class TokenVectors:
    """Call it with texts of any length: a row of length 1 for each, all zeros for a text without tokens."""

    def __init__(self) -> None:
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        paths = token_files.files()
        if paths is None:
            raise InputError(
                f"this project sees texts through the word vectors of the extra `texts`; {install('texts')}."
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
