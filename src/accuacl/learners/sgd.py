"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


class SGD:
    """torch.optim.SGD to the bit, without the second or two that torch takes to import its optimisers' machinery."""

    def __init__(self, parameters: Iterable[Tensor], momentum: float, weight_decay: float) -> None:
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.momentum, self.weight_decay = momentum, weight_decay
        self.velocity: list[Tensor | None] = [None] * len(self.parameters)

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self, lr: float) -> None:
        """One step against the gradients."""
        with torch.no_grad():
            for i, parameter in enumerate(self.parameters):
                gradient = parameter.grad
                if gradient is None:
                    continue
                if self.weight_decay:
                    gradient = gradient.add(parameter, alpha=self.weight_decay)
                if self.momentum:
                    velocity = self.velocity[i]
                    if velocity is None:
                        velocity = self.velocity[i] = gradient.clone()
                    else:
                        velocity.mul_(self.momentum).add_(gradient)
                    gradient = velocity
                parameter.add_(gradient, alpha=-lr)
