"""Corruptions of images, one for each domain of a stream, made when an image is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import numpy_generator

Images = NDArray[Any]  # float32 (n, H, W, 3) from 0 to 255
Corruption = Callable[[Images, int, NDArray[np.int64]], Images]  # images, the seed and their row numbers


class Corrupted:
    """An array of images that are corrupted as they are read: `images[rows]`; row i by corruption `which[i]`.

    It has what the package uses of an array: its length, shape, type and rows.
    """

    def __init__(self, images: NDArray[np.uint8], which: NDArray[np.int64], seed: int) -> None:
        self.images, self.which, self.seed = images, which, seed
        self.shape, self.dtype, self.ndim = images.shape, images.dtype, images.ndim

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, key: Any) -> NDArray[np.uint8]:
        rows = np.arange(len(self))[key]
        flat = np.atleast_1d(rows)
        images = np.array(self.images[flat])
        for number in np.unique(self.which[flat]):
            inside = self.which[flat] == number
            corruption = list(CORRUPTIONS.values())[number]
            corrupted = corruption(images[inside].astype(np.float32), self.seed, flat[inside])
            images[inside] = np.clip(np.rint(corrupted), 0, 255).astype(np.uint8)
        return cast(NDArray[np.uint8], images if np.ndim(rows) else images[0])


def _plain(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    return images


def _dark(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    return images * np.float32(0.35)


def _noisy(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    drawn = [numpy_generator(seed, int(row)).standard_normal(images.shape[1:], np.float32) for row in rows]
    return images + 40 * np.stack(drawn)


def _smooth(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    """Each pixel the mean of the 3 x 3 around it, twice."""
    for _ in range(2):
        for axis in (1, 2):
            padded = np.pad(images, [(1, 1) if a == axis else (0, 0) for a in range(4)], mode="edge")
            size = images.shape[axis]
            images = np.stack([np.take(padded, range(i, i + size), axis) for i in range(3)]).mean(axis=0)
    return images


def _grey(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    return np.broadcast_to(images.mean(axis=3, keepdims=True), images.shape)


def _faint(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    """Little contrast, as in fog."""
    return 180 + (images - 128) * np.float32(0.3)


def _coarse(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    """Blocks of 4 x 4 pixels."""
    coarse = images[:, ::4, ::4]
    return np.repeat(np.repeat(coarse, 4, 1), 4, 2)[:, : images.shape[1], : images.shape[2]]


def _negative(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    return 255 - images


def _other_colours(images: Images, seed: int, rows: NDArray[np.int64]) -> Images:
    return images[..., [2, 0, 1]]


# In this order, so that a stream of few domains has those that differ most.
CORRUPTIONS: dict[str, Corruption] = {
    "plain": _plain,
    "dark": _dark,
    "noisy": _noisy,
    "smooth": _smooth,
    "negative": _negative,
    "grey": _grey,
    "faint": _faint,
    "coarse": _coarse,
    "other colours": _other_colours,
}
