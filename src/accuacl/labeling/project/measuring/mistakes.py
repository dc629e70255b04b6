"""Labels that are probably wrong, by what the model says of an example without having learned from it.

The rule is that of confident learning (Northcutt, Jiang and Chuang, 2021): a label is doubted if the model gives
another class at least the probability that it gives, on average, to examples with that class's label. Where the
network is kept as it is, the probabilities are those of ridge regression with each example left out. Elsewhere they are
what the model said when it had not learned from the example yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accuacl.experiment import read_steps
from accuacl.labeling.project.settings import STATISTICS
from accuacl.labeling.store import counts_as

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

FEWEST = 5  # labels, below which the model knows too little to doubt one


def likely_mistakes(project: Project) -> dict[int, tuple[float, int]]:
    """{item: (how doubtful, the class that it probably is)}, the most doubtful first; from 0 to 1."""
    labels = project.store.labels()
    frozen = project.settings.frozen and project.settings.keep != STATISTICS
    doubts = _left_out(project, labels) if frozen else _said_before(project, labels)
    return dict(sorted(doubts.items(), key=lambda pair: (-pair[1][0], pair[0])))


def doubtful(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> list[tuple[int, float, int]]:
    """(row, how much more probable another label is, which), for rows whose label is doubted; NaN: nothing is known.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.95, 0.05]])
    >>> doubtful(p, np.array([0, 0, 1, 1]))
    [(3, 0.9, 0)]
    """
    known = ~np.isnan(probabilities).any(axis=1)
    usual = np.full(probabilities.shape[1], np.inf)  # what the model gives a class where it is the label
    for label in np.unique(labels[known]):
        usual[label] = probabilities[known & (labels == label), label].mean()
    found = []
    for row in np.flatnonzero(known):
        p, own = probabilities[row], int(labels[row])
        others = np.where((p >= usual) & (p > p[own]), p, -1.0)
        others[own] = -1.0
        best = int(others.argmax())
        if others[best] > 0:
            found.append((int(row), round(float(p[best] - p[own]), 12), best))
    return found


def _left_out(project: Project, labels: dict[int, int]) -> dict[int, tuple[float, int]]:
    """By ridge regression on the embeddings, each example left out."""
    import torch

    from accuacl.labeling.project.learning import learned
    from accuacl.ridge import fit

    ready = {item for step in read_steps(project.journal, "label") for item, _ in step.result["labels"]}
    items = sorted(labels.keys() & ready)
    classes = sorted({labels[item] for item in items})
    if len(items) < FEWEST or len(classes) < 2:
        return {}
    own = np.array([classes.index(labels[item]) for item in items])
    x = torch.from_numpy(learned.rows(project.settings, project.tasks, items))
    left_out = torch.softmax(fit(x, torch.from_numpy(own), len(classes)).loo, 1).numpy()
    return {items[row]: (doubt, classes[best]) for row, doubt, best in doubtful(left_out, own)}


def _said_before(project: Project, labels: dict[int, int]) -> dict[int, tuple[float, int]]:
    """By the guess of the time when the item was picked, or for held-out items that of the last training."""
    final = counts_as(project.store.classes())
    said: dict[int, tuple[int, float]] = {}
    for step in read_steps(project.journal, "query", "test"):
        for item, guess, confidence in _guesses(step.kind, step.result):
            if item in labels:
                said[item] = (final[guess], confidence)
    right: dict[int, list[float]] = {}
    for item, (guess, confidence) in said.items():
        if guess == labels[item]:
            right.setdefault(guess, []).append(confidence)
    usual = {guess: float(np.mean(values)) for guess, values in right.items()}
    return {
        item: (confidence, guess)
        for item, (guess, confidence) in said.items()
        if guess != labels[item] and confidence >= usual.get(guess, np.inf)
    }


def _guesses(kind: str, result: dict[str, Any]) -> list[tuple[int, int, float]]:
    if kind == "test":
        return [(int(item), int(guess), float(confidence)) for item, guess, confidence in result["predictions"]]
    return list(zip(result["ids"], result["guess"], result["confidence"], strict=True)) if result["guess"] else []
