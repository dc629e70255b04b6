"""The features of all examples that a loader gives, by running the model once over them."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress, check_progress
from accuacl.features import Features
from accuacl.models import evaluating, output_layer
from accuacl.torch.batch import GivenBatch
from accuacl.torch.head import in_and_out, output_scale


def features(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    classes: Iterable[int],
    layer: str = "",
    progress: OnProgress | None = None,
) -> Features:
    """The input of the model's last linear layer, and the softmax of its output, for all examples of a loader.

    loader: gives batches, in the order in which rows are wanted (no shuffling): tensors; tuples or lists whose first
    entry is the input; or dictionaries, which the model gets as keyword arguments, without their labels.
    classes: the outputs that stand for classes seen so far. The softmax is over these alone: a strategy must not take
    a class that nobody has labelled yet for a possible answer.
    layer: the name of the last linear layer, as in `model.named_modules()`. Unset, it is found by running the first
    batch. Models that return the mean of two heads, such as distilled ones (deit, levit), need it: layer="head"; so do
    those that scale their logits. What the layer gives must be part of what the model returns.
    progress: called after every batch.

    For mixed precision, call it inside `torch.autocast`. The model's mode and hooks stay as they were.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))
    >>> features(net, torch.ones(6, 4).split(2), classes=[0, 1])
    Features(n=6, d=3, K=2, float32/float32)
    """
    _check(model, loader)
    check_progress(progress)
    columns = _columns(classes)
    total = float(len(loader)) if isinstance(loader, Sized) else 0.0
    scale = 0.0  # of the model's output, in multiples of what the layer gives; 0: not known yet
    embeddings: list[NDArray[Any]] = []
    probabilities: list[NDArray[Any]] = []
    with torch.inference_mode(), evaluating(model):
        for number, each in enumerate(loader, 1):
            batch = GivenBatch(model, each)
            if batch.rows or not embeddings:
                if batch.rows and not scale:  # an empty one shows nothing of it
                    scale = output_scale(model, layer, batch.run, columns) if layer else 1.0
                layer = layer or output_layer(model, batch.run)
                h, z = in_and_out(model, layer, batch.run)
                embeddings.append(h.float().cpu().numpy())
                probabilities.append((_seen(z, columns).float() * scale).softmax(1).cpu().numpy())
            if progress:
                progress(Progress(number, max(total, number), "embedding", "preparing"))
    if not embeddings:
        raise InputError("the loader gave no batch; give at least one, which may be empty.")
    return Features(np.concatenate(embeddings), np.concatenate(probabilities))


def _check(model: Any, loader: Any) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is a {type(model).__name__}; give a torch.nn.Module.")
    if isinstance(loader, Tensor | np.ndarray):
        what = "a tensor" if isinstance(loader, Tensor) else "an array"
        split = "x.split(256)" if isinstance(loader, Tensor) else "torch.from_numpy(x).split(256)"
        raise InputError(f"the loader is {what}, which gives its rows one by one; give batches, such as {split}.")
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise InputError("the loader is a data set, not a loader; give DataLoader(dataset, batch_size=256).")
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise InputError(
            f"the loader is a {type(loader).__name__}, which gives no batches; give a DataLoader, or a list of batches."
        )


def _columns(classes: Iterable[int]) -> Tensor:
    try:
        columns = torch.as_tensor(list(classes) if not isinstance(classes, Tensor) else classes)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a number of more than 64 bits
        columns = torch.empty(0)
    if columns.ndim != 1 or len(columns) == 0 or columns.is_floating_point() or columns.dtype == torch.bool:
        raise InputError(f"classes are {classes!r}; give the outputs of the classes seen so far, such as range(10).")
    if len(set(columns.tolist())) != len(columns):
        raise InputError("classes has an entry twice; give each class that was seen once.")
    return columns.to(torch.int64)


def _seen(z: Tensor, columns: Tensor) -> Tensor:
    if columns.min() < 0 or columns.max() >= z.shape[1]:
        raise InputError(
            f"classes has {int(columns.min())} to {int(columns.max())} and the model {z.shape[1]} outputs, from 0 on; "
            "give the outputs of the classes seen so far."
        )
    return z.index_select(1, columns.to(z.device))
