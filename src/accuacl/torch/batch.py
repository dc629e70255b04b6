"""One batch of a user's loader, as the model takes it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError

LABELS = ("labels", "label", "targets", "target", "y")  # of a batch that is a dictionary: not for the model
HALF = (torch.float16, torch.bfloat16)


class GivenBatch:
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

    @property
    def rows(self) -> int:
        """How many examples it has; what cannot be counted is taken for one."""
        given = [*self.arguments, *self.keywords.values()]
        return next((len(value) for value in given if isinstance(value, Tensor) and value.ndim), 1)

    def run(self) -> Any:
        """What the model returns. Input that one of its layers cannot take is the user's to mend, and said so."""
        try:
            return self.model(*self.arguments, **self.keywords)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            refusal = self._refused_arguments() or self._refused_by_a_layer(error)
            if not refusal:
                raise  # the model's own code, whose author needs the traceback
            raise InputError(refusal) from error

    def _moved(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        half = value.is_floating_point() and self.dtype in HALF
        return value.to(self.device, self.dtype if half else value.dtype)

    def _refused_arguments(self) -> str:
        """What to say if the model's `forward` does not take these arguments."""
        signature = inspect.signature(self.model.forward)
        try:
            signature.bind(*self.arguments, **self.keywords)
        except TypeError:
            takes = ", ".join(signature.parameters) or "nothing"
            given = f"a dictionary of {', '.join(map(str, self.keywords))}" if self.keywords else "one tensor"
            if not self.arguments and not self.keywords:
                given = "a dictionary without inputs"
            return f"the loader gave {given}, and the model's forward takes {takes}; give it what it takes, by name."
        return ""

    def _refused_by_a_layer(self, error: Exception) -> str:
        """What to say if it was a layer of torch's that failed; it is found by running the model once more."""
        with _entering(self.model) as inside:
            try:
                self.model(*self.arguments, **self.keywords)
            except type(error):
                pass
            else:
                return ""
            if not inside:
                return ""
            name, layer, given = inside[-1]
        weight = next((p for p in layer.parameters() if p.is_floating_point()), None)
        wants = f", whose weights are {_dtype(weight.dtype)}," if weight is not None else ""
        inputs = [*self.arguments, *self.keywords.values()]
        return (
            f"the loader gave {_said(inputs)}, with which the model's layer {name!r}, {layer}{wants} was given "
            f"{_said(given)} and failed; give inputs of the type and shape that the model was trained with."
        )


@contextmanager
def _entering(model: nn.Module) -> Iterator[list[tuple[str, nn.Module, tuple[Any, ...]]]]:
    """The layers without parts of their own that were called and have not returned yet, with what they were given."""
    inside: list[tuple[str, nn.Module, tuple[Any, ...]]] = []
    hooks = []
    for name, module in model.named_modules():
        if not any(module.children()) and type(module).__module__.startswith("torch."):

            def enter(layer: nn.Module, given: tuple[Any, ...], name: str = name) -> None:
                inside.append((name, layer, given))

            hooks.append(module.register_forward_pre_hook(enter))
            hooks.append(module.register_forward_hook(lambda *_: inside.pop() and None))
    try:
        yield inside
    finally:
        for hook in hooks:
            hook.remove()


def _said(values: Any) -> str:
    return " and ".join(
        f"{_dtype(value.dtype)} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        for value in values
    )


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
