"""Wrong answers: labels that differ from the data set's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accuacl.base.randomness import derive, hash_ids

if TYPE_CHECKING:
    from accuacl.experiments.data.streams import Stream

Ids = NDArray[np.int64]
ROWS = 4096  # read at a time


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
