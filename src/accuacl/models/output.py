"""What a module returns, and the linear layer that made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from accuacl.base.errors import InputError
from accuacl.models.eval_mode import evaluating


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


def linear_layers(module: nn.Module) -> dict[str, nn.Linear]:
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
    anything, outputs = linear_outputs(module, run)
    returned = tensor_of(anything)
    for name, output in reversed(outputs.items()):
        if output.shape == returned.shape and torch.allclose(output, returned, 0, 0, equal_nan=True):
            return name
    alike = [name for name, output in outputs.items() if output.shape == returned.shape]
    raise InputError(no_logits(module, returned, alike))


def linear_outputs(module: nn.Module, run: Callable[[], Any]) -> tuple[Any, dict[str, Tensor]]:
    """What the module returns when it is `run`, and what each of its linear layers gave, in the order of their calls.

    Of a layer that is called several times, it is what the last call gave.
    """
    outputs: dict[str, Tensor] = {}

    def record(name: str, output: Tensor) -> None:
        outputs.pop(name, None)
        # a copy of what may be the module's output, as it may yet be changed in place; activations of tokens are large
        outputs[name] = output.clone() if output.ndim == 2 else output

    hooks = [
        layer.register_forward_hook(lambda layer, given, output, name=name: record(name, output))
        for name, layer in linear_layers(module).items()
    ]
    try:
        with torch.no_grad(), evaluating(module):
            returned = run()
    finally:
        for hook in hooks:
            hook.remove()
    return returned, outputs


def no_logits(module: nn.Module, returned: Tensor, heads: Sequence[str] = ()) -> str:
    """What to say of a module that returns something else than the output of a linear layer; heads: which it may be."""
    what, choice = softmax_of(returned), ""
    if len(heads) > 1 and not what:
        named = " or ".join(f"layer={name!r}" for name in heads)
        choice = f" If it has several heads, name one for accuacl.torch.features: {named}."
    what = what or "something else than the output of a linear layer"
    name = type(module).__name__
    return f"{name} returns {what}; give a module that returns logits, without a softmax after them.{choice}"


def softmax_of(returned: Tensor) -> str:
    """What a module returns that ends in a softmax or log_softmax, in words; "" for one that does not.

    >>> softmax_of(torch.tensor([[0.25, 0.75]])), softmax_of(torch.tensor([[0.25, 0.5]]))
    ('probabilities: it ends in a softmax', '')
    """
    p = returned.detach().double()
    if p.ndim == 2 and len(p):
        one = torch.ones(len(p), dtype=p.dtype, device=p.device)
        if bool((p >= 0).all()) and torch.allclose(p.sum(1), one, atol=1e-2):
            return "probabilities: it ends in a softmax"
        if bool((p <= 0).all()) and torch.allclose(p.exp().sum(1), one, atol=1e-2):
            return "logarithms of probabilities: it ends in a log_softmax"
    return ""
