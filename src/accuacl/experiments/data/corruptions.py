"""What is wrong with the examples of a stream: corrupted images, one kind for each domain, and wrong answers.

Images are corrupted when they are read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import derive, hash_ids, numpy_generator
from accuacl.experiments.data.dataset import LazyImages

if TYPE_CHECKING:
    from accuacl.experiments.data.streams import Stream

Ids = NDArray[np.int64]
Images = NDArray[Any]  # float32 (n, H, W, 3) from 0 to 255
Corruption = Callable[[Images, int, Ids], Images]  # images, the seed and their row numbers
ROWS = 4096  # read at a time


def corrupted(images: NDArray[np.uint8], which: Ids, seed: int) -> LazyImages:
    """The images, row i by corruption number `which[i]`."""

    def read(rows: Ids) -> NDArray[np.uint8]:
        made = np.array(images[rows])
        for number in np.unique(which[rows]):
            inside = which[rows] == number
            corruption = list(CORRUPTIONS.values())[number]
            changed = corruption(made[inside].astype(np.float32), seed, rows[inside])
            made[inside] = np.clip(np.rint(changed), 0, 255).astype(np.uint8)
        return made

    return LazyImages(images.shape, read)


def _noisy(images: Images, seed: int, rows: Ids) -> Images:
    drawn = [numpy_generator(seed, int(row)).standard_normal(images.shape[1:], np.float32) for row in rows]
    return images + 40 * np.stack(drawn)


def _smooth(images: Images, seed: int, rows: Ids) -> Images:
    """Each pixel the mean of the 3 x 3 around it, twice."""
    for _ in range(2):
        for axis in (1, 2):
            padded = np.pad(images, [(1, 1) if a == axis else (0, 0) for a in range(4)], mode="edge")
            size = images.shape[axis]
            images = np.stack([np.take(padded, range(i, i + size), axis) for i in range(3)]).mean(axis=0)
    return images


def _coarse(images: Images, seed: int, rows: Ids) -> Images:
    """Blocks of 4 x 4 pixels."""
    coarse = images[:, ::4, ::4]
    return np.repeat(np.repeat(coarse, 4, 1), 4, 2)[:, : images.shape[1], : images.shape[2]]


# In this order, so that a stream of few domains has those that differ most.
CORRUPTIONS: dict[str, Corruption] = {
    "plain": lambda images, seed, rows: images,
    "dark": lambda images, seed, rows: images * np.float32(0.35),
    "noisy": _noisy,
    "smooth": _smooth,
    "negative": lambda images, seed, rows: 255 - images,
    "grey": lambda images, seed, rows: np.broadcast_to(images.mean(axis=3, keepdims=True), images.shape),
    "faint": lambda images, seed, rows: 180 + (images - 128) * np.float32(0.3),  # little contrast, as in fog
    "coarse": _coarse,
    "other colours": lambda images, seed, rows: images[..., [2, 0, 1]],
}


def wrong_answers(stream: Stream, share: float, alike: bool, seed: int) -> Ids:
    """The answers to all training rows, each wrong with probability `share`.

    A wrong answer is a class that has arrived by then: any, or with `alike` the one whose mean is nearest. While only
    one class has arrived, all answers are right.
    """
    labels = stream.dataset.train.labels
    answers = labels.copy()
    odds = hash_ids(derive(seed, "odds"), np.arange(len(labels))).astype(np.float64) / 2.0**64
    draws = hash_ids(derive(seed, "class"), np.arange(len(labels)))
    means = class_means(stream) if alike else None
    arrived = np.empty(0, np.int64)
    for task in stream:
        arrived = np.union1d(arrived, labels[task.train])
        wrong = task.train[odds[task.train] < share]
        if len(arrived) < 2:
            continue
        if means is not None:
            answers[wrong] = nearest(means, arrived)[labels[wrong]]
        else:
            other = (draws[wrong] % np.uint64(len(arrived) - 1)).astype(np.int64)
            answers[wrong] = arrived[other + (other >= np.searchsorted(arrived, labels[wrong]))]
    return answers


def nearest(means: NDArray[np.float64], classes: Ids) -> Ids:
    """By class id, for each of the classes: which other one of them has the nearest mean.

    >>> nearest(np.array([[0.0], [9.0], [4.0], [1.0]]), np.array([0, 1, 2]))[[0, 1, 2]]
    array([2, 2, 0])
    """
    inside = means[classes]
    squares = np.square(inside).sum(axis=1)
    distance = squares[:, None] + squares - 2 * inside @ inside.T
    np.fill_diagonal(distance, np.inf)
    table = np.full(len(means), -1)
    table[classes] = classes[distance.argmin(axis=1)]
    return table


def class_means(stream: Stream) -> NDArray[np.float64]:
    """The mean input of each class, by its id, over the training rows of all tasks."""
    data = stream.dataset
    rows = np.sort(np.concatenate([task.train for task in stream]))
    sums = np.zeros((len(data.classes), int(np.prod(data.train.inputs.shape[1:]))))
    counts = np.bincount(data.train.labels[rows], minlength=len(data.classes))
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        inputs = np.asarray(data.train.inputs[part], np.float64).reshape(len(part), -1)
        for c in np.unique(data.train.labels[part]):
            sums[c] += inputs[data.train.labels[part] == c].sum(axis=0)
    return sums / np.maximum(counts, 1)[:, None]
