"""The linear layer that a user names: what it is given and gives, and whether that is what the model returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.models import linear_outputs, no_logits, softmax_of, tensor_of


def in_and_out(model: nn.Module, layer: str, run: Callable[[], Any]) -> tuple[Tensor, Tensor]:
    """What the layer was given and what it gave when the model ran."""
    with _listening(model, layer) as heard:
        run()
    if not heard:
        raise _not_called(layer)
    h, z = heard[-1]
    if h.ndim != 2:
        raise InputError(
            f"the layer {layer!r} was given {tuple(h.shape)}; it must be given one row for each example, so give a "
            "model that pools before its last layer."
        )
    return h, z


@contextmanager
def _listening(model: nn.Module, layer: str) -> Iterator[list[tuple[Tensor, Tensor]]]:
    heard: list[tuple[Tensor, Tensor]] = []
    # a copy of the output: the model may change it in place
    hook = _named(model, layer).register_forward_hook(lambda _, given, out: heard.append((given[0], out.clone())))
    try:
        yield heard
    finally:
        hook.remove()


def _named(model: nn.Module, layer: str) -> nn.Linear:
    if not isinstance(layer, str):
        raise InputError(f"layer is {layer!r}; give the layer's name as text, as `model.named_modules()` has it.")
    try:
        head = model.get_submodule(layer)
    except AttributeError:
        raise InputError(f"the model has no layer {layer!r}; `model.named_modules()` names all that it has.") from None
    if not isinstance(head, nn.Linear):
        raise InputError(f"the layer {layer!r} is a {type(head).__name__}; name an nn.Linear.")
    return head


def _not_called(layer: str) -> InputError:
    return InputError(f"the model did not call its layer {layer!r}; name the layer that makes its output.")


def output_scale(model: nn.Module, layer: str, run: Callable[[], Any], columns: Tensor) -> float:
    """What the model's output is in multiples of the layer's; refuses a layer whose output the model does not return.

    A model may return several tensors: any of them may be the layer's output, times a positive number. Or the model
    returns the mean of two or more layers of which the named one is one; then that one stands for itself (1.0).
    Only the columns of seen classes are compared: continual learners often mask the others.
    """
    _named(model, layer)
    returned, outputs = linear_outputs(model, run)
    if layer not in outputs:
        raise _not_called(layer)
    z, first = outputs[layer], tensor_of(returned)
    results = [tensor for tensor in _tensors(returned) if tensor.shape == z.shape]
    if z.ndim != 2 or bool(z.isnan().any()):
        return 1.0  # `in_and_out` refuses the one, `Features` the other
    inside = columns[(columns >= 0) & (columns < z.shape[1])].to(z.device)
    for result in results:
        if factor := _factor(z[:, inside], result[:, inside]):
            return factor
    others = [output for name, output in outputs.items() if name != layer and output.shape == z.shape]
    means = [(z + other) / 2 for other in others] + [(z + sum(others)) / (len(others) + 1)]
    for mean in means:
        if any(_alike(mean[:, inside], result[:, inside]) for result in results):
            return 1.0
    raise InputError(_not_the_output(model, layer, z, first, outputs))


def _tensors(output: Any) -> Iterator[Tensor]:
    """All tensors in what a model returns: itself, or in tuples, lists, dictionaries and objects with attributes."""
    if isinstance(output, Tensor):
        yield output
        return
    parts: Any = ()
    if isinstance(output, Mapping):
        parts = output.values()
    elif isinstance(output, tuple | list):
        parts = output
    elif hasattr(output, "__dict__"):
        parts = vars(output).values()
    for part in parts:
        if isinstance(part, Tensor | Mapping | tuple | list):
            yield from _tensors(part)


def _factor(z: Tensor, result: Tensor) -> float:
    """The positive number by which `z` must be multiplied to be the result; 0 if there is none."""
    if z.shape == result.shape and torch.allclose(z, result.to(z.dtype), 0, 0, equal_nan=True):
        return 1.0
    a, b = z.cpu().double(), result.cpu().double()
    square = float(a.square().sum())
    factor = float((a * b).sum()) / square if square else 0.0
    return factor if factor > 0 and _alike(z * factor, result) else 0.0


def _alike(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors differ by no more than the rounding of the coarser type."""
    coarse = 8 * max(torch.finfo(each.dtype).eps for each in (a, b) if each.is_floating_point())
    a, b = a.cpu().double(), b.cpu().double()
    return bool((a - b).abs().max() <= coarse * b.abs().max())


def _not_the_output(model: nn.Module, layer: str, z: Tensor, first: Tensor, outputs: Mapping[str, Tensor]) -> str:
    if softmax_of(first):
        return no_logits(model, first)
    gives, returns = tuple(z.shape), tuple(first.shape)
    other = f"{returns}" if returns != gives else "other numbers of that shape"
    near = [name for name, output in outputs.items() if name != layer and output.shape == first.shape]
    choice = f", such as layer={near[-1]!r}" if near else ""
    return (
        f"the layer {layer!r} gives {gives}, and the model returns {other}; name the linear layer whose output the "
        f"model returns{choice}, or leave the layer out so that it is found."
    )
