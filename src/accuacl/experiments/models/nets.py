"""The nets by name: ResNet18 with three stems, small conv nets, nets for vectors, and a user's own."""

from __future__ import annotations

import copy
import functools
import hashlib
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from accuacl.base.errors import InputError, no_such, one_line
from accuacl.base.userfile import check_function, is_own, load_function
from accuacl.experiments.models import IMAGES, NAMES, PRETRAINED, PROJECTED
from accuacl.experiments.models.classifier import Classifier, new_head, wrap

Shape = tuple[int, ...]


def build(name: str, classes: int, *, seed: int, input_shape: Shape, width: int | None = None) -> Classifier:
    """The net called `name` for inputs of `input_shape`: (3, 32, 32) for images, (64,) for vectors.

    Its weights depend on the seed alone, and torch's global random generator is neither used nor changed.

    resnet18: 7x7 stride-2 stem and max-pool, as for ImageNet. resnet18-3x3: 3x3 stride-1 stem, no pool.
    resnet18-3x3-pool: that stem, then max-pool. conv4, conv3: blocks of conv3x3, BatchNorm, ReLU, max-pool.
    mlp: two hidden layers. projection: one, wide. linear, pretrained: the head alone. `width` is that of the first
    block or of the hidden layers. net.py:build: what the user's function returns, with a new head.

    >>> build("conv4", 10, seed=0, input_shape=(3, 32, 32)).head
    Linear(in_features=192, out_features=10, bias=True)
    """
    if is_own(name):
        return _build_own(name, classes, seed=seed, input_shape=input_shape)
    if name not in NETS:
        raise no_such("net", name, NAMES)
    make, default = NETS[name]
    wanted = 3 if name in IMAGES else 1
    if (len(input_shape), wanted) == (1, 3):
        raise InputError(
            f"{name} is a net for images, but the data are vectors of {input_shape[0]:,} numbers; use --model mlp."
        )
    if len(input_shape) != wanted or min(input_shape) < 1:
        expected = "the length of a vector, such as (64,)" if wanted == 1 else "an image's, such as (3, 32, 32)"
        raise InputError(f"{name} was given input_shape {input_shape}; give {expected}.")
    with torch.random.fork_rng(devices=[]):  # new layers draw from the global generator
        try:
            embed, d = make(input_shape, width or default)
        except RuntimeError as error:  # what torch raises where memory ends
            raise InputError(
                f"{name} of width {width or default} does not fit into memory; reduce the width."
            ) from error
    _initialise(embed, torch.Generator().manual_seed(seed))
    return Classifier(embed, new_head(d, classes, seed))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut, which is a 1x1 projection where the shape changes."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *_conv(channels_in, channels_out, 3, stride),
            nn.ReLU(inplace=True),
            *_conv(channels_out, channels_out, 3, 1),
        )
        same = stride == 1 and channels_in == channels_out
        self.shortcut = nn.Identity() if same else nn.Sequential(*_conv(channels_in, channels_out, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu_(self.body(x) + self.shortcut(x))


def _resnet18(shape: Shape, width: int, *, kernel: int, stride: int, pool: bool) -> tuple[nn.Module, int]:
    layers = [*_conv(shape[0], width, kernel, stride), nn.ReLU(inplace=True)]
    if pool:
        layers.append(nn.MaxPool2d(3, 2, 1))
    channels_in = width
    for stage in range(4):
        channels_out = width * 2**stage
        layers += [
            BasicBlock(channels_in, channels_out, 1 if stage == 0 else 2),
            BasicBlock(channels_out, channels_out, 1),
        ]
        channels_in = channels_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), channels_in


def _convnet(shape: Shape, width: int, *, blocks: int, stride: int = 1) -> tuple[nn.Module, int]:
    least = stride * 2**blocks
    if min(shape[1:]) < least:
        raise InputError(
            f"this net of {blocks} blocks divides an image's side by {least}; give images of at least {least} pixels."
        )
    layers: list[nn.Module] = []
    channels_in = shape[0]
    for block in range(blocks):
        channels_out = width * 2**block
        # Pooling before ReLU gives the same numbers (both are monotone), for a quarter of the work.
        layers += [*_conv(channels_in, channels_out, 3, 1 if block else stride), nn.MaxPool2d(2), nn.ReLU(inplace=True)]
        channels_in = channels_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), channels_in


def _mlp(shape: Shape, width: int) -> tuple[nn.Module, int]:
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()), width


def _projection(shape: Shape, width: int) -> tuple[nn.Module, int]:
    """A random projection and ReLU, which the learner ridge leaves as it is drawn (RanPAC, McDonnell et al., 2023)."""
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU()), width


def _linear(shape: Shape, width: int) -> tuple[nn.Module, int]:
    return nn.Identity(), shape[0]


def _conv(channels_in: int, channels_out: int, kernel: int, stride: int) -> list[nn.Module]:
    """A convolution without bias that keeps the size (but for the stride), and its BatchNorm."""
    return [_Conv(channels_in, channels_out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(channels_out)]


class _Conv(nn.Conv2d):
    """A convolution that, on a single pixel, computes the kernel's centre alone: the rest would only meet padding.

    The bits are the same. A step of ResNet18 on images of 32 pixels, whose last blocks see one pixel, takes a fifth to
    a third less time, since the gradient of all other weights is known to be 0.
    """

    def forward(self, input: Tensor) -> Tensor:
        if input.shape[2:] == (1, 1) and self.kernel_size == (3, 3):
            return conv2d(input, _Centre.apply(self.weight))  # type: ignore[no-untyped-call]
        return super().forward(input)


class _Centre(torch.autograd.Function):
    """The centre of each 3x3 kernel. Indexing would do, but its gradient has another memory layout than the weight."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor) -> Tensor:
        return weight[:, :, 1:2, 1:2].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (centre,) = gradients
        shape = (centre.shape[0], centre.shape[1], 3, 3)
        whole = torch.empty(shape, dtype=centre.dtype, device=centre.device, memory_format=torch.channels_last).zero_()
        whole[:, :, 1:2, 1:2] = centre
        return whole


def _initialise(module: nn.Module, generator: torch.Generator) -> None:
    """Kaiming's normal weights (convolutions by fan-out, linear layers by fan-in), zero biases."""
    with torch.no_grad():
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                fan = layer.out_channels * layer.kernel_size[0] * layer.kernel_size[1]
                layer.weight.normal_(0, math.sqrt(2 / fan), generator=generator)
            elif isinstance(layer, nn.Linear):
                layer.weight.normal_(0, math.sqrt(2 / layer.in_features), generator=generator)
                layer.bias.zero_()


# name: (maker of (embedding, its width d) from the input's shape and the net's width, that width by default)
NETS: dict[str, tuple[Callable[[Shape, int], tuple[nn.Module, int]], int]] = {
    "resnet18": (partial(_resnet18, kernel=7, stride=2, pool=True), 64),
    "resnet18-3x3": (partial(_resnet18, kernel=3, stride=1, pool=False), 64),
    "resnet18-3x3-pool": (partial(_resnet18, kernel=3, stride=1, pool=True), 64),
    "conv4": (partial(_convnet, blocks=4), 24),
    "conv4-stride2": (partial(_convnet, blocks=4, stride=2), 24),
    "conv3": (partial(_convnet, blocks=3), 16),
    "mlp": (_mlp, 128),
    "projection": (_projection, PROJECTED),
    "linear": (_linear, 1),
    PRETRAINED: (_linear, 1),
}


def _build_own(place: str, classes: int, *, seed: int, input_shape: Shape) -> Classifier:
    """What the function at `place` returns, an nn.Module that ends in nn.Linear, with a new last layer.

    The function is called without arguments and with torch's global generator seeded, which is then restored.
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
    except (RuntimeError, IndexError) as error:  # what torch raises where shapes do not fit
        raise InputError(
            f"{place} does not take inputs of shape {input_shape}: {one_line(error)}; give a network for these."
        ) from None
    _check_training(place, model, example)
    return Classifier(model.embed, new_head(model.head.in_features, classes, seed))


def _check_training(place: str, model: Classifier, example: Tensor) -> None:
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
