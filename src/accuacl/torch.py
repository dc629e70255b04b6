"""From a torch model to `Features`: what strategies see of the examples that a loader gives.

    from accuacl import select
    from accuacl.torch import features

    pool = features(model, loader, classes=seen)
    picked = select("badge", pool=pool, budget=100)

The model is neither copied nor changed, nor moved to another device; afterwards its hooks and modes are as they were.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.features import Features
from accuacl.models import evaluating, output_layer, tensor_of

__all__ = ["features"]

LABELS = ("labels", "label", "targets", "target", "y")  # of a batch that is a dictionary: not for the model


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
    batch; models with two heads, such as distilled ones (deit, levit), need it: layer="head".
    progress: called after every batch.

    For mixed precision, call it inside `torch.autocast`. The model's mode and hooks stay as they were.

    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 5))
    >>> features(net, torch.ones(6, 4).split(2), classes=[0, 1])
    Features(n=6, d=3, K=2, float32/float32)
    """
    _check(model, loader)
    columns = _columns(classes)
    total = float(len(loader)) if isinstance(loader, Sized) else 0.0
    embeddings, probabilities = [], []
    with torch.inference_mode(), evaluating(model):
        for number, batch in enumerate(loader, 1):
            given = _Given(model, batch)
            if not layer:
                layer = output_layer(model, given.run)
            h, z = _both(model, layer, given)
            embeddings.append(h.float().cpu().numpy())
            probabilities.append(_seen(z, columns).float().softmax(1).cpu().numpy())
            if progress:
                progress(Progress(number, max(total, number), "embedding", "preparing"))
    if not embeddings:
        raise InputError("the loader gave no batch; give at least one example.")
    return Features(np.concatenate(embeddings), np.concatenate(probabilities))


def _check(model: Any, loader: Any) -> None:
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is a {type(model).__name__}; give a torch.nn.Module.")
    if isinstance(loader, Tensor):
        raise InputError("the loader is a tensor, which gives its rows one by one; give batches, such as x.split(256).")
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise InputError("the loader is a data set, not a loader; give DataLoader(dataset, batch_size=256).")


class _Given:
    """A batch as the model takes it: on its device, and in its type where that is a half precision."""

    def __init__(self, model: nn.Module, batch: Any) -> None:
        self.model = model
        parameter = next((each for each in model.parameters() if each.is_floating_point()), torch.empty(0))
        self.device, self.dtype = parameter.device, parameter.dtype
        if isinstance(batch, list | tuple):
            if not batch:
                raise InputError("the loader gave an empty tuple; give (inputs, labels) or inputs alone.")
            batch = batch[0]
        if isinstance(batch, Mapping):
            names = [name for name in batch if name not in LABELS]
            self.arguments: tuple[Any, ...] = ()
            self.keywords = {name: self._moved(batch[name]) for name in names}
        elif isinstance(batch, Tensor):
            self.arguments, self.keywords = (self._moved(batch),), {}
        else:
            raise InputError(
                f"the loader gave a {type(batch).__name__}; give tensors, tuples that begin with one, or dictionaries "
                "of the model's arguments."
            )

    def run(self) -> Any:
        return self.model(*self.arguments, **self.keywords)

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        half = value.is_floating_point() and self.dtype in (torch.float16, torch.bfloat16)
        return value.to(self.device, self.dtype if half else value.dtype)


def _both(model: nn.Module, layer: str, given: _Given) -> tuple[Tensor, Tensor]:
    """What the layer was given and what it gave when the model ran."""
    with _listening(model, layer) as heard:
        tensor_of(given.run())
    if not heard:
        raise InputError(f"the model did not call its layer {layer!r}; name the layer that makes its output.")
    h, z = heard[-1]
    if h.ndim != 2:
        raise InputError(
            f"the layer {layer!r} was given {tuple(h.shape)}; it must be given one row for each example, so give a "
            "model that pools before its last layer."
        )
    return h, z


@contextmanager
def _listening(model: nn.Module, layer: str) -> Iterator[list[tuple[Tensor, Tensor]]]:
    try:
        head = model.get_submodule(layer)
    except AttributeError:
        raise InputError(f"the model has no layer {layer!r}; `model.named_modules()` names all that it has.") from None
    if not isinstance(head, nn.Linear):
        raise InputError(f"the layer {layer!r} is a {type(head).__name__}; name an nn.Linear.")
    heard: list[tuple[Tensor, Tensor]] = []
    hook = head.register_forward_hook(lambda _, given, output: heard.append((given[0], output)))
    try:
        yield heard
    finally:
        hook.remove()


def _columns(classes: Iterable[int]) -> Tensor:
    try:
        columns = torch.as_tensor(list(classes) if not isinstance(classes, Tensor) else classes)
    except (TypeError, ValueError):
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
