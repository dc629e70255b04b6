"""Features of any torch model: the input of its last linear layer, and the softmax of its output.

    from accuacl.torch import features
    pool = features(model, loader, classes=range(10))

The layer is found by running the model once and comparing what its linear layers give with what it returns. Needs the
extra `train`.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.errors import InputError, a_type, install
from accuacl.base.progress import OnProgress, Progress, check_progress
from accuacl.features import Features

try:
    import torch
    from torch import Tensor, nn
    from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
    from torch.utils.data import Dataset, IterableDataset
except ModuleNotFoundError as error:
    raise InputError(f"accuacl.torch needs the extra `train` ({error}); {install('train')}.") from None

LABELS = ("labels", "label", "targets", "target", "y")  # of a batch that is a dictionary: not for the model
HALF = (torch.float16, torch.bfloat16)


def features(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    classes: Iterable[int],
    layer: str = "",
    progress: OnProgress | None = None,
) -> Features:
    """The input of the model's last linear layer, and the softmax of its output, for all examples of a loader.

    loader: yields batches in the order in which rows are wanted (no shuffling): tensors; tuples or lists whose first
    entry is the input; or dictionaries, which the model gets as keyword arguments, without their labels.
    classes: the outputs that stand for classes seen so far. The softmax is taken over these alone, so that no strategy
    treats a class that nobody has labelled yet as a possible answer.
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
    scale = 0.0  # of the model's output, in multiples of the layer's output; 0: not known yet
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
        raise InputError(f"the model is {a_type(model)}; give a torch.nn.Module.")
    if isinstance(loader, Tensor | np.ndarray):
        what = "a tensor" if isinstance(loader, Tensor) else "an array"
        split = "x.split(256)" if isinstance(loader, Tensor) else "torch.from_numpy(x).split(256)"
        raise InputError(f"the loader is {what}, which gives its rows one by one; give batches, such as {split}.")
    if isinstance(loader, Dataset) and not isinstance(loader, IterableDataset):
        raise InputError("the loader is a data set, not a loader; give DataLoader(dataset, batch_size=256).")
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise InputError(
            f"the loader is {a_type(loader)}, which gives no batches; give a DataLoader, or a list of batches."
        )
    sampler = getattr(getattr(loader, "batch_sampler", None), "sampler", None) or getattr(loader, "sampler", None)
    if isinstance(sampler, SHUFFLING) or getattr(sampler, "shuffle", False) is True:
        raise InputError(
            f"the loader shuffles ({type(sampler).__name__}), so that row 0 would not be example 0; give one with "
            "shuffle=False."
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
    if wrong := [column for column in columns.tolist() if not 0 <= column < z.shape[1]]:
        raise InputError(
            f"classes contains {wrong[0]}, but the model's outputs are numbered 0 to {z.shape[1] - 1}; give the "
            "outputs of the classes seen so far."
        )
    return z.index_select(1, columns.to(z.device))


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
                f"the loader gave {a_type(batch)}; give tensors, tuples that begin with one, or dictionaries "
                "of the model's arguments."
            )

    @property
    def rows(self) -> int:
        """How many examples it has; a batch that cannot be counted counts as one."""
        given = [*self.arguments, *self.keywords.values()]
        return next((len(value) for value in given if isinstance(value, Tensor) and value.ndim), 1)

    def run(self) -> Any:
        """What the model returns. Input that one of its layers cannot take is an InputError."""
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
        """The sentence for arguments that the model's `forward` does not take; "" if it takes them."""
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
        """The sentence for a layer of torch's that failed; "" if the model's own code did."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        calls = [frame.f_locals for frame in frames if frame.f_code.co_name == "_call_impl"]  # of a module each
        layer = calls[-1]["self"] if calls else None
        if layer is None or not type(layer).__module__.startswith("torch."):
            return ""
        name = next((name for name, module in self.model.named_modules() if module is layer), "")
        weight = next((p for p in layer.parameters() if p.is_floating_point()), None)
        wants = f", whose weights are {_dtype(weight.dtype)}," if weight is not None else ""
        inputs = [*self.arguments, *self.keywords.values()]
        return (
            f"the loader gave {_described(inputs)}, with which the model's layer {name!r}, {layer}{wants} was given "
            f"{_described(calls[-1]['args'])} and failed; give inputs of the type and shape that the model was trained "
            "with."
        )


def _described(values: Any) -> str:
    return " and ".join(
        f"{_dtype(value.dtype)} of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        for value in values
    )


def _dtype(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def tensor_of(output: Any) -> Tensor:
    """The tensor in what a module returns: itself, its `.logits` or `.pooler_output`, or the first of several."""
    for name in ("logits", "pooler_output"):
        part = output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)
        if isinstance(part, Tensor):
            output = part
    if isinstance(output, tuple | list) and output:
        output = output[0]
    if not isinstance(output, Tensor):
        raise InputError(f"the module gave {a_type(output)}; expected a tensor, or logits in an object.")
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
    """The sentence for a module that does not return the output of a linear layer. heads: layers that may be meant."""
    what, choice = softmax_of(returned), ""
    if len(heads) > 1 and not what:
        named = " or ".join(f"layer={name!r}" for name in heads)
        choice = f" If it has several heads, name one for accuacl.torch.features: {named}."
    what = what or "something else than the output of a linear layer"
    name = type(module).__name__
    return f"{name} returns {what}; give a module that returns logits, without a softmax after them.{choice}"


def softmax_of(returned: Tensor) -> str:
    """What is wrong with the output of a module that ends in a softmax or log_softmax; "" for one that does not.

    >>> softmax_of(torch.tensor([[0.25, 0.75]])), softmax_of(torch.tensor([[0.25, 0.5]]))
    ('probabilities: it ends in a softmax', '')
    """
    p = returned.detach().double()
    if p.ndim == 2 and len(p):
        ones = torch.ones(len(p), dtype=p.dtype, device=p.device)
        if bool((p >= 0).all()) and torch.allclose(p.sum(1), ones, atol=1e-2):
            return "probabilities: it ends in a softmax"
        if bool((p <= 0).all()) and torch.allclose(p.exp().sum(1), ones, atol=1e-2):
            return "logarithms of probabilities: it ends in a log_softmax"
    return ""


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """The model in eval mode: BatchNorm neither mixes examples nor moves its statistics.

    Afterwards each of its modules is in the mode that it was in; a user may have frozen some.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def in_and_out(model: nn.Module, layer: str, run: Callable[[], Any]) -> tuple[Tensor, Tensor]:
    """What the layer was given and what it gave when the model ran."""
    recorded: list[tuple[Tensor, Tensor]] = []
    # a copy of the output: the model may change it in place
    hook = _named(model, layer).register_forward_hook(lambda _, given, out: recorded.append((given[0], out.clone())))
    try:
        run()
    finally:
        hook.remove()
    if not recorded:
        raise _not_called(layer)
    h, z = recorded[-1]
    if h.ndim != 2:
        raise InputError(
            f"the layer {layer!r} was given {tuple(h.shape)}; it must be given one row for each example, so give a "
            "model that pools before its last layer."
        )
    return h, z


def _named(model: nn.Module, layer: str) -> nn.Linear:
    if not isinstance(layer, str):
        raise InputError(f"layer is {layer!r}; give the layer's name as text, as `model.named_modules()` has it.")
    try:
        head = model.get_submodule(layer)
    except AttributeError:
        raise InputError(f"the model has no layer {layer!r}; `model.named_modules()` names all that it has.") from None
    if not isinstance(head, nn.Linear):
        raise InputError(f"the layer {layer!r} is {a_type(head)}; name an nn.Linear.")
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


SHUFFLING = (
    torch.utils.data.RandomSampler,
    torch.utils.data.SubsetRandomSampler,
    torch.utils.data.WeightedRandomSampler,
)
