"""A classifier whose last linear layer is separate."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from accuacl.base.errors import InputError
from accuacl.base.randomness import numpy_generator


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
