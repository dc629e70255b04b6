"""A user's own torch module as a `Classifier`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from accuacl.base.errors import InputError
from accuacl.models.classifier import Classifier
from accuacl.models.eval_mode import evaluating


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
    layers = _linear_layers(module)
    name = list(layers)[-1] if example is None else output_layer(module, lambda: module(example))
    head = layers[name]
    if name == "":
        return Classifier(nn.Identity(), head)
    parent, _, child = name.rpartition(".")
    setattr(module.get_submodule(parent), child, _Tap())
    return Classifier(_Embedding(module, head.in_features, name), head)


class _Tap(nn.Module):
    """Stands where the head was, gives what it is given, and keeps it to be looked at."""

    given: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.given = x
        return x


class _Embedding(nn.Module):
    """A module without its head."""

    def __init__(self, module: nn.Module, d: int, name: str) -> None:
        super().__init__()
        self.module, self.d, self.name = module, d, name

    def forward(self, x: Tensor) -> Tensor:
        tap = self.module.get_submodule(self.name)
        assert isinstance(tap, _Tap)
        h = tensor_of(self.module(x))
        given, tap.given = tap.given, None
        if h.ndim != 2 or h.shape[1] != self.d:
            raise InputError(
                f"without its layer {self.name!r} the module gives {tuple(h.shape)}, not (n, {self.d}): that layer's "
                "output is not the module's; give wrap an example input so that it can find the right one."
            )
        if h is not given and (given is None or not torch.allclose(h, given, 0, 0, equal_nan=True)):
            raise InputError(
                f"the module changes what its last linear layer {self.name!r} gives, as a softmax after it does; "
                "give a module that returns logits, or give wrap an example input if another layer is the last."
            )
        return h


def tensor_of(output: Any) -> Tensor:
    """The tensor in what a module returns: itself, its `.logits` or `.pooler_output`, or the first of several."""
    for name in ("logits", "pooler_output"):
        part = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(part, Tensor):
            output = part
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise InputError(f"the module gave a {type(output).__name__}; expected a tensor, or logits in an object.")
    return output


def _linear_layers(module: nn.Module) -> dict[str, nn.Linear]:
    layers = {
        name: layer
        for name, layer in module.named_modules()
        # the projection inside an attention layer is never called as a layer
        if isinstance(layer, nn.Linear) and not isinstance(layer, NonDynamicallyQuantizableLinear)
    }
    if not layers:
        raise InputError(f"{type(module).__name__} has no nn.Linear; give a module that ends in a linear layer.")
    return layers


def output_layer(module: nn.Module, run: Callable[[], Any]) -> str:
    """The name of the last linear layer called whose output is what the module returns when it is `run`."""
    layers = _linear_layers(module)
    outputs: list[tuple[str, Tensor]] = []

    def record(name: str) -> Any:
        return layers[name].register_forward_hook(lambda layer, given, output: outputs.append((name, output)))

    hooks = [record(name) for name in layers]
    try:
        with torch.no_grad(), evaluating(module):
            returned = tensor_of(run())
    finally:
        for hook in hooks:
            hook.remove()
    for name, output in reversed(outputs):
        if output.shape == returned.shape and torch.allclose(output, returned, 0, 0, equal_nan=True):
            return name
    alike = [name for name, output in outputs if output.shape == returned.shape]
    raise InputError(no_logits(module, returned, alike))


def no_logits(module: nn.Module, returned: Tensor, heads: Sequence[str] = ()) -> str:
    """What to say of a module that returns something else than the output of a linear layer; heads: which it may be."""
    p = returned.detach().double()
    what, choice = "something else than the output of a linear layer", ""
    if len(heads) > 1:
        named = " or ".join(f"layer={name!r}" for name in heads)
        choice = f" If it has several heads, name one for accuacl.torch.features: {named}."
    if p.ndim == 2 and len(p):
        one = torch.ones(len(p), dtype=p.dtype, device=p.device)
        if bool((p >= 0).all()) and torch.allclose(p.sum(1), one, atol=1e-2):
            what, choice = "probabilities: it ends in a softmax", ""
        elif bool((p <= 0).all()) and torch.allclose(p.exp().sum(1), one, atol=1e-2):
            what, choice = "logarithms of probabilities: it ends in a log_softmax", ""
    name = type(module).__name__
    return f"{name} returns {what}; give a module that returns logits, without a softmax after them.{choice}"
