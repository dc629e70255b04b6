"""Corruptions of images, one for each domain of a stream, made when an image is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import numpy_generator
from accuacl.experiments.data.dataset import LazyImages

Images = NDArray[Any]  # float32 (n, H, W, 3) from 0 to 255
Corruption = Callable[[Images, int, NDArray[np.int64]], Images]  # images, the seed and their row numbers


def corrupted(images: NDArray[np.uint8], which: NDArray[np.int64], seed: int) -> LazyImages:
    """The images, row i by corruption number `which[i]`."""

    def read(rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        made = np.array(images[rows])
        for number in np.unique(which[rows]):
            inside = which[rows] == number
            corruption = list(CORRUPTIONS.values())[number]
            changed = corruption(made[inside].astype(np.float32), seed, rows[inside])
            made[inside] = np.clip(np.rint(changed), 0, 255).astype(np.uint8)
        return made

    return LazyImages(images.shape, read)


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
