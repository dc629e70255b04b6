"""A user's own network, `file.py:function`, with a head for as many classes as there are."""

from __future__ import annotations

import copy
import functools
import hashlib
from pathlib import Path
from typing import Any

import torch
from torch import nn

from accuacl.base.errors import InputError, one_line
from accuacl.base.userfile import check_function, load_function
from accuacl.models.classifier import Classifier, new_head
from accuacl.models.wrapping import wrap


def build_own(place: str, classes: int, *, seed: int, input_shape: tuple[int, ...]) -> Classifier:
    """What the function at `place` returns, an nn.Module that ends in nn.Linear, with a new last layer.

    The function is called without arguments, with torch's global generator seeded, which is as it was afterwards.
    """
    file, _ = check_function(place)
    make = _function(place, hashlib.sha256(Path(file).read_bytes()).hexdigest())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: Any = make()
    if not isinstance(module, nn.Module):
        raise InputError(f"{place} returned {type(module).__name__}; return an nn.Module that ends in nn.Linear.")
    example = torch.rand(2, *input_shape, generator=torch.Generator().manual_seed(0))
    try:
        model = wrap(module, example=example)
    except (RuntimeError, IndexError) as error:  # torch's ways to say that the shapes do not fit
        raise InputError(
            f"{place} does not take inputs of shape {input_shape}: {one_line(error)}; give a network for these."
        ) from None
    _check_training(place, model, example)
    return Classifier(model.embed, new_head(model.head.in_features, classes, seed))


def _check_training(place: str, model: Classifier, example: torch.Tensor) -> None:
    """Refuse a network that returns logits when it is evaluated, but something else when it is trained."""
    tried = copy.deepcopy(model.embed).train()  # training mode changes the statistics of batch normalisation
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        try:
            tried(example)
        except InputError:
            raise InputError(
                f"{place} returns logits in evaluation and something else in training, such as a softmax of them; "
                "return logits in both."
            ) from None


@functools.lru_cache(maxsize=16)
def _function(place: str, digest: str) -> Any:
    """The function; its file is imported once for each content that it has."""
    return load_function(place, fresh=True)
