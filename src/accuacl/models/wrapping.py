"""A user's own torch module as a `Classifier`."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.models.classifier import Classifier
from accuacl.models.output import linear_layers, output_layer, tensor_of


def wrap(module: nn.Module, *, example: Tensor | None = None) -> Classifier:
    """A copy of `module` as a `Classifier`: its last linear layer becomes the head, the rest the embedding.

    Works for torchvision, timm and Hugging Face style models (which return an object with `.logits`). The last linear
    layer is the last one in module order. If the module has several outputs or calls its layers in another order, give
    an `example` input: the layer whose output is also the module's output is then taken.

    >>> model = wrap(nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.ReLU(), nn.Linear(5, 2)))
    >>> [tuple(part.shape) for part in model.both(torch.zeros(7, 3, 4))]
    [(7, 5), (7, 2)]
    """
    module = copy.deepcopy(module)
    layers = linear_layers(module)
    name = list(layers)[-1] if example is None else output_layer(module, lambda: module(example))
    head = layers[name]
    if name == "":
        return Classifier(nn.Identity(), head)
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, _Tap())
    return Classifier(_Embedding(module, head.in_features, name, example is not None), head)


class _Tap(nn.Module):
    """Stands where the head was, gives what it is given, and keeps it to be looked at."""

    given: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.given = x
        return x


class _Embedding(nn.Module):
    """A module without its head."""

    def __init__(self, module: nn.Module, d: int, name: str, found: bool) -> None:
        """found: the head was found with an example, and not only taken for the last layer."""
        super().__init__()
        self.module, self.d, self.name, self.found = module, d, name, found

    def forward(self, x: Tensor) -> Tensor:
        tap = self.module.get_submodule(self.name)
        assert isinstance(tap, _Tap)
        h = tensor_of(self.module(x))
        given, tap.given = tap.given, None
        if h.ndim != 2 or h.shape[1] != self.d:
            raise InputError(
                f"without its layer {self.name!r} the module gives {tuple(h.shape)}, not (n, {self.d}): that layer's "
                "output is not the module's; "
                + ("return it." if self.found else "give wrap an example input so that it can find the right one.")
            )
        if h is not given and (given is None or not torch.allclose(h, given, 0, 0, equal_nan=True)):
            raise InputError(
                f"the module changes what its last linear layer {self.name!r} gives, as a softmax after it does; "
                "give a module that returns logits"
                + ("." if self.found else ", or give wrap an example input if another layer is the last.")
            )
        return h
