"""A model's embeddings and probabilities of a set of examples."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from accuacl.base.errors import InputError
from accuacl.experiments.models.classifier import Classifier
from accuacl.torch import evaluating


class Sliceable(Protocol):
    """Raw inputs that can be taken a slice at a time: a tensor, an array, or rows that are read on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Any: ...


class Preprocessing(Protocol):
    """Anything that turns raw inputs into the model's inputs, deterministically."""

    def plain(self, x: Tensor) -> Tensor: ...


def predict(
    model: Classifier, inputs: Sliceable, transform: Preprocessing, seen: Any, batch: int = 128, device: str = "cpu"
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(embeddings h, n x d; probabilities p, n x len(seen)) in eval mode, over un-augmented inputs.

    p is the softmax over the logits of the classes `seen`, its columns in their order. At most `batch` inputs are
    read at a time; with 128, small networks stay in the cache.
    """
    columns = torch.as_tensor(seen, dtype=torch.int64).flatten()
    if len(columns) == 0:
        raise InputError("no class has been seen; predict needs at least one.")
    if columns.min() < 0 or columns.max() >= model.head.out_features:
        raise InputError(
            f"seen has class {int(columns.max())}; the head has {model.head.out_features}, so grow it first."
        )
    if batch < 1:
        raise InputError(f"batch is {batch}; give at least 1.")
    h = np.empty((len(inputs), model.head.in_features), np.float32)
    p = np.empty((len(inputs), len(columns)), np.float32)
    model.to(device)
    columns = columns.to(device)
    with torch.inference_mode(), evaluating(model):
        for start in range(0, len(inputs), batch):
            x = torch.as_tensor(inputs[start : start + batch]).to(device)
            embedding, logits = model.both(transform.plain(x))
            h[start : start + batch] = embedding.float().cpu().numpy()
            p[start : start + batch] = logits.float().index_select(1, columns).softmax(1).cpu().numpy()
    return h, p
