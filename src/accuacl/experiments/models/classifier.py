"""A classifier whose last linear layer is separate, made of any network, and what it predicts for many examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.randomness import numpy_generator
from accuacl.experiments.models.kernel_layer import KernelLayer
from accuacl.torch import evaluating, linear_layers, output_layer, tensor_of


class Sliceable(Protocol):
    """Raw inputs that can be taken a slice at a time: a tensor, an array, or rows that are read on demand."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Any: ...


class Preprocessing(Protocol):
    """Anything that turns raw inputs into the model's inputs, deterministically."""

    def plain(self, x: Tensor) -> Tensor: ...


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

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Load weights; those of a kernel head come with the rows that it is made of."""
        if "head.support" in state_dict:
            own = {key.removeprefix("head."): value for key, value in state_dict.items() if key.startswith("head.")}
            self.head = KernelLayer(own)
            rest = {key.removeprefix("embed."): value for key, value in state_dict.items() if key[:5] != "head."}
            return self.embed.load_state_dict(rest, strict, assign)
        return super().load_state_dict(state_dict, strict, assign)

    def grow(self, classes: int, seed: int) -> None:
        """Give the head at least `classes` rows. A new row k depends on (seed, k) alone; none is ever dropped."""
        old = self.head
        if classes <= old.out_features:
            return
        if isinstance(old, KernelLayer):
            self.head = old.grown(classes)
            return
        head = new_head(old.in_features, classes, seed, bias=old.bias is not None, like=old.weight)
        with torch.no_grad():
            head.weight[: old.out_features] = old.weight
            if old.bias is not None:
                head.bias[: old.out_features] = old.bias
        self.head = head.requires_grad_(old.weight.requires_grad)


def new_head(d: int, classes: int, seed: int, bias: bool = True, like: Tensor | None = None) -> nn.Linear:
    """A linear layer, each row uniform in +-1/sqrt(d) (torch's default), row k drawn from (seed, k)."""
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
    return Classifier(_Embedding(module, head.in_features, name), head)


def predict(
    model: Classifier, inputs: Sliceable, transform: Preprocessing, seen: Any, batch: int = 128, device: str = "cpu"
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(embeddings h, n x d; probabilities p, n x len(seen)) in eval mode, over un-augmented inputs.

    p is the softmax over the logits of the classes `seen`, its columns in their order. At most `batch` inputs are
    read at a time; with 128, small networks stay in the cache.
    """
    columns = torch.as_tensor(seen, dtype=torch.int64).flatten().to(device)
    h = np.empty((len(inputs), model.head.in_features), np.float32)
    p = np.empty((len(inputs), len(columns)), np.float32)
    model.to(device)
    with torch.inference_mode(), evaluating(model):
        for start in range(0, len(inputs), batch):
            x = torch.as_tensor(inputs[start : start + batch]).to(device)
            embedding, logits = model.both(transform.plain(x))
            h[start : start + batch] = embedding.float().cpu().numpy()
            p[start : start + batch] = logits.float().index_select(1, columns).softmax(1).cpu().numpy()
    return h, p


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
        if isinstance(self.backbone, nn.Module):
            self.backbone.to(device)
        parts = []
        with torch.inference_mode():
            for start in range(0, len(inputs), batch):
                x = inputs[start : start + batch].to(device)
                h = tensor_of(self.backbone(self.prepare(x) if self.prepare else x))
                if h.ndim == 4:
                    h = h.mean(dim=(2, 3))
                if h.ndim != 2:
                    raise InputError(f"the backbone gave {tuple(h.shape)} for {len(x)} inputs; expected one row each.")
                parts.append(h.float().cpu())
                if progress:
                    progress(Progress(start + len(x), len(inputs), "embedding", "preparing"))
        return torch.cat(parts)  # not in inference mode, whose tensors cannot be trained on


class _Tap(nn.Module):
    """Takes the place of the head: returns its input, and keeps it for a comparison."""

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
                "output is not the module's; return it, or give wrap an example input to find the right layer."
            )
        if h is not given and (given is None or not torch.allclose(h, given, 0, 0, equal_nan=True)):
            raise InputError(
                f"the module changes what its last linear layer {self.name!r} gives, as a softmax after it does; give "
                "a module that returns logits, or give wrap an example input if another layer is the last."
            )
        return h
