"""A classifier whose last linear layer is separate."""

from __future__ import annotations

import copy
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError, one_line
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import numpy_generator
from accuacl.base.userfile import check_function, load_function
from accuacl.torch import linear_layers, output_layer, tensor_of


class Classifier(nn.Module):
    """An embedding x -> h (n x d) and a linear head h -> logits (n x K).

    >>> model = Classifier(nn.Identity(), new_head(4, classes=2, seed=0))
    >>> model.grow(3, seed=0)
    >>> model(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    embed: nn.Module
    head: nn.Linear

    def __init__(self, embed: nn.Module, head: nn.Linear) -> None:
        super().__init__()
        self.embed, self.head = embed, head
        # Only 4-D weights change. Done once, here, so that a model and its copy loaded from disk compute the same bits.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, x: Tensor) -> Tensor:
        """Logits over all classes of the head."""
        return self.head(self.embed(x))

    def both(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(h, logits)."""
        h = self.embed(x)
        return h, self.head(h)

    def grow(self, classes: int, seed: int) -> None:
        """Give the head at least `classes` rows. A new row k depends on (seed, k) alone; none is ever dropped."""
        old = self.head
        if classes <= old.out_features:
            return
        head = new_head(old.in_features, classes, seed, bias=old.bias is not None, like=old.weight)
        with torch.no_grad():
            head.weight[: old.out_features] = old.weight
            if old.bias is not None:
                head.bias[: old.out_features] = old.bias
        self.head = head.requires_grad_(old.weight.requires_grad)


def new_head(d: int, classes: int, seed: int, bias: bool = True, like: Tensor | None = None) -> nn.Linear:
    """A linear layer, each row uniform in +-1/sqrt(d) (torch's default), row k drawn from (seed, k)."""
    if classes < 1:
        raise InputError(f"a head of {classes} classes was asked for; give at least 1.")
    if seed < 0:
        raise InputError(f"seed is {seed}; give a whole number of at least 0.")
    bound = d**-0.5
    rows = np.stack([numpy_generator(seed, k).uniform(-bound, bound, d + 1) for k in range(classes)])
    device, dtype = (like.device, like.dtype) if like is not None else (torch.device("cpu"), torch.float32)
    head = nn.Linear(d, classes, bias=bias, device="meta")  # draws nothing
    head.weight = nn.Parameter(torch.tensor(rows[:, :d], dtype=dtype, device=device))
    if bias:
        head.bias = nn.Parameter(torch.tensor(rows[:, d], dtype=dtype, device=device))
    return head


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


class Frozen:
    """A backbone (any module or function from a batch to n x d or n x d x H x W) that is never trained.

    `prepare` turns a slice of the raw inputs into what the backbone takes, for instance `Transform(...).plain`.

    >>> Frozen(nn.Flatten()).embed_all(torch.ones(5, 2, 3), batch=2).shape
    torch.Size([5, 6])
    """

    def __init__(self, backbone: Callable[[Tensor], Any], prepare: Callable[[Tensor], Tensor] | None = None) -> None:
        self.backbone = backbone.eval() if isinstance(backbone, nn.Module) else backbone
        self.prepare = prepare

    def embed_all(
        self,
        inputs: Tensor,
        batch: int = 256,
        device: str = "cpu",
        progress: OnProgress | None = None,
    ) -> Tensor:
        """The embeddings of all inputs, float32 on the CPU. progress: called after every batch."""
        if len(inputs) == 0 or batch < 1:
            raise InputError(f"got {len(inputs)} inputs and batch={batch}; give at least one of each.")
        if isinstance(self.backbone, nn.Module):
            self.backbone.to(device)
        embeddings: Tensor | None = None
        with torch.inference_mode():
            for start in range(0, len(inputs), batch):
                x = inputs[start : start + batch].to(device)
                h = tensor_of(self.backbone(self.prepare(x) if self.prepare else x))
                if h.ndim == 4:
                    h = h.mean(dim=(2, 3))
                if h.ndim != 2:
                    raise InputError(f"the backbone gave {tuple(h.shape)} for {len(x)} inputs; expected one row each.")
                if embeddings is None:
                    embeddings = torch.empty(len(inputs), h.shape[1])
                embeddings[start : start + len(x)] = h
                if progress:
                    progress(Progress(start + len(x), len(inputs), "embedding", "preparing"))
        assert embeddings is not None
        return embeddings.clone()  # a tensor made in inference mode cannot be trained on
