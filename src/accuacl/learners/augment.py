"""Raw examples to what a net takes: normalised, and in training cropped and flipped, a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from accuacl.base.errors import InputError


@dataclass(frozen=True)
class Transform:
    """Images come as uint8 (n, H, W, C) and leave as float32 (n, C, H, W), channels last; vectors stay (n, d).

    mean, std: of pixels in [0, 1] per channel, or of a vector's entries. crop: zero padding around the image, out of
    which one of its own size is cut. flip: left to right for half of the images.

    >>> Transform(mean=(0.5,), std=(0.5,)).plain(torch.full((1, 2, 2, 1), 255, dtype=torch.uint8)).unique()
    tensor([1.])
    """

    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    crop: int = 0
    flip: bool = False

    def plain(self, x: Tensor) -> Tensor:
        """Normalised, nothing else."""
        if x.ndim == 4 and x.dtype == torch.uint8:
            scale, shift = self._scale(x.shape[3], 255.0, x.device)
            # A view, already channels last; the copy to float keeps that order.
            return x.permute(0, 3, 1, 2).float().mul_(scale[:, None, None]).add_(shift[:, None, None])
        if x.ndim == 2 and x.is_floating_point():
            if self.mean is None and self.std is None:
                return x.float()
            scale, shift = self._scale(x.shape[1], 1.0, x.device)
            return x.float() * scale + shift
        raise InputError(
            f"inputs are {x.dtype} of shape {tuple(x.shape)}; give images as uint8 (n, H, W, channels) "
            "or vectors as floats (n, d)."
        )

    def augmented(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """Each image cropped and flipped on its own, then normalised. Vectors are only normalised."""
        if x.ndim == 4 and (self.crop or self.flip):
            x = self._crop_and_flip(x, generator)
        return self.plain(x)

    def _crop_and_flip(self, x: Tensor, generator: torch.Generator) -> Tensor:
        n, height, width, channels = x.shape
        pad = self.crop
        # Drawn on the CPU whatever the device, so that the same seed gives the same crops everywhere.
        top, left = torch.randint(0, 2 * pad + 1, (2, n, 1), generator=generator)
        mirrored = (torch.rand(n, 1, generator=generator) < 0.5) & self.flip
        rows = top + torch.arange(height)
        columns = left + torch.where(mirrored, torch.arange(width - 1, -1, -1), torch.arange(width))
        if pad:
            padded = x.new_zeros(n, height + 2 * pad, width + 2 * pad, channels)
            padded[:, pad : pad + height, pad : pad + width] = x
            x = padded
        # One gather of whole pixels from the flattened batch.
        first = torch.arange(n)[:, None] * x.shape[1]
        pixels = (first + rows)[:, :, None] * x.shape[2] + columns[:, None, :]
        return x.reshape(-1, channels)[pixels.flatten().to(x.device)].view(n, height, width, channels)

    def _scale(self, channels: int, top: float, device: torch.device) -> tuple[Tensor, Tensor]:
        """scale and shift such that x * scale + shift = (x / top - mean) / std."""
        mean, std = torch.tensor(self.mean or (0.0,)), torch.tensor(self.std or (1.0,))
        for name, values in (("mean", mean), ("std", std)):
            if len(values) not in (1, channels):
                raise InputError(f"{name} has {len(values)} values and an input {channels}; give one for each.")
        return (1 / (top * std)).expand(channels).to(device), (-mean / std).expand(channels).to(device)
