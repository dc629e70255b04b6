"""How good the labels are: whether people agree, how often each is right on gold items, and which labels are doubtful.

Agreement is Cohen's kappa of two people, and Fleiss' kappa of all, on the items that several have labelled. A label is
doubted where a model that has not learned from it finds another class more probable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accuacl.experiments import read_steps
from accuacl.labeling.project.estimates import Estimate, share, wilson
from accuacl.labeling.project.settings import STATISTICS
from accuacl.labeling.store import Store, counts_as

if TYPE_CHECKING:
    from accuacl.labeling.project.project import Project

FEWEST = 5  # with fewer labels, the model knows too little to doubt one


@dataclass(frozen=True)
class Kappa:
    """Agreement beyond chance: 1 is complete, 0 is that of chance; with its 95 % interval.

    agreement: the share of pairs of labels that are the same, in percent; count: items that several people labelled.
    """

    value: float
    low: float
    high: float
    agreement: float
    count: int

    @property
    def text(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Quality:
    """The quality of labels: kappa of all and of each pair of people, and each person's accuracy on gold items."""

    fleiss: Kappa | None
    pairs: dict[tuple[int, int], Kappa]
    gold: dict[int, Estimate]
    shared: int  # how many items several people have labelled
    unsettled: int  # how many of these have different labels and have not been settled

    @property
    def text(self) -> str:
        """A sentence on how far people agree; "" if no item has been labelled by two."""
        if not self.shared:
            return ""
        agree = "all of them the same, so there is no kappa yet"
        if self.fleiss:
            agree = f"they agree in {self.fleiss.agreement:.0f} %, Fleiss' kappa {self.fleiss.text}"
        what = "example has" if self.shared == 1 else "examples have"
        return f"{self.shared} {what} labels of several people: {agree}; {self.unsettled} to settle."


def measure_quality(store: Store) -> Quality:
    """Measure the quality of labels by those that people gave without seeing another label."""
    by_item: dict[int, dict[int, int]] = {}
    for rating in store.ratings():
        by_item.setdefault(rating.item, {})[rating.person] = rating.class_id
    shared = [labels for labels in by_item.values() if len(labels) > 1]
    people = sorted({person for labels in shared for person in labels})
    pairs = {}
    for a, b in combinations(people, 2):
        both = [(labels[a], labels[b]) for labels in shared if a in labels and b in labels]
        kappa = cohen([first for first, _ in both], [second for _, second in both])
        if kappa is not None:
            pairs[a, b] = kappa
    unsettled = sum(row.unsettled for row in store.everything())
    return Quality(
        fleiss([list(labels.values()) for labels in shared]), pairs, _gold_accuracy(store), len(shared), unsettled
    )


def _gold_accuracy(store: Store) -> dict[int, Estimate]:
    """Return, by person, the share of gold items labelled right, of those labelled without knowing the answer."""
    known, right = store.gold(), dict[int, list[bool]]()
    for rating in store.gold_ratings():
        right.setdefault(rating.person, []).append(rating.class_id == known.get(rating.item))
    return {person: share(sum(answers), len(answers)) for person, answers in sorted(right.items())}


def cohen(first: Sequence[int], second: Sequence[int]) -> Kappa | None:
    """Return Cohen's kappa (1960) of two people's labels of the same items; None without items or with one class.

    >>> kappa = cohen([0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0])
    >>> round(kappa.value, 3), round(kappa.agreement, 1)
    (0.667, 83.3)
    """
    n = len(first)
    if n == 0:
        return None
    a, b = Counter(first), Counter(second)
    chance = sum(a[label] * b[label] for label in a) / n**2
    return _kappa(sum(x == y for x, y in zip(first, second, strict=True)) / n, chance, n)


def fleiss(items: Sequence[Sequence[int]]) -> Kappa | None:
    """Return Fleiss' kappa (1971) of items with the labels of two or more people each, who may differ between items.

    >>> round(fleiss([[0, 0], [0, 0], [1, 1], [1, 0]]).value, 3)
    0.467
    """
    if not items:
        return None
    agreements = []
    for labels in items:
        same = sum(count * (count - 1) for count in Counter(labels).values())
        agreements.append(same / (len(labels) * (len(labels) - 1)))
    totals = Counter(label for labels in items for label in labels)
    chance = sum(count**2 for count in totals.values()) / sum(totals.values()) ** 2
    return _kappa(sum(agreements) / len(items), chance, len(items))


def _kappa(agreement: float, chance: float, n: int) -> Kappa | None:
    """Return kappa with the interval that follows from Wilson's for the agreement; that of chance counts as known."""
    if chance >= 1 - 1e-12:
        return None
    low, high = wilson(agreement, n)
    value, low, high = ((part - chance) / (1 - chance) for part in (agreement, low, high))
    return Kappa(value, max(-1.0, low), min(1.0, high), 100 * agreement, n)


def likely_mistakes(project: Project) -> dict[int, tuple[float, int]]:
    """Return {item: (doubt from 0 to 1, the class that it probably is)}, the most doubtful first."""
    labels = project.store.labels()
    if _may_leave_out(project):
        items, classes, probabilities = _left_out(project, labels)
        own = np.array([classes.index(labels[item]) for item in items], np.int64)
        doubts = {items[row]: (doubt, classes[best]) for row, doubt, best in doubtful(probabilities, own)}
    else:
        doubts = _confident_disagreement(_guesses(project, "query", "test"), labels)
    return dict(sorted(doubts.items(), key=lambda pair: (-pair[1][0], pair[0])))


def unlearned_guesses(project: Project) -> dict[int, tuple[int, float]]:
    """Return the model's guesses for labelled items that it has not learned from: {item: (class, confidence)}.

    These are the held-out items, with the guesses after the last training. If embeddings never change, all other items
    are guessed too, each by a model that leaves it out.
    """
    guesses: dict[int, tuple[int, float]] = {}
    if _may_leave_out(project):
        items, classes, probabilities = _left_out(project, project.store.labels())
        best = probabilities.argmax(1).tolist() if items else []
        guesses = {item: (classes[k], float(p[k])) for item, k, p in zip(items, best, probabilities, strict=True)}
    return guesses | _guesses(project, "test")


def doubtful(probabilities: NDArray[np.float64], labels: NDArray[np.int64]) -> list[tuple[int, float, int]]:
    """Return (row, how much more probable another label is, that label) for each row whose label is doubted.

    Rows whose probabilities are NaN are never doubted.

    >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.95, 0.05]])
    >>> doubtful(p, np.array([0, 0, 1, 1]))
    [(3, 0.9, 0)]
    """
    known = ~np.isnan(probabilities).any(axis=1)
    usual = np.full(probabilities.shape[1], np.inf)  # the mean probability of each class over rows with that label
    for label in np.unique(labels[known]):
        usual[label] = probabilities[known & (labels == label), label].mean()
    doubts = []
    for row in np.flatnonzero(known):
        p, own = probabilities[row], int(labels[row])
        others = np.where((p >= usual) & (p > p[own]), p, -1.0)
        others[own] = -1.0
        best = int(others.argmax())
        if others[best] > 0:
            doubts.append((int(row), round(float(p[best] - p[own]), 12), best))
    return doubts


def _may_leave_out(project: Project) -> bool:
    """Return whether there are embeddings that training does not change."""
    return project.settings.frozen and project.settings.keep != STATISTICS


def _left_out(project: Project, labels: dict[int, int]) -> tuple[list[int], list[int], NDArray[np.float64]]:
    """Return items, classes, and each item's probability of each class by ridge regression on all other items."""
    import torch

    from accuacl.experiments.heads import fit_ridge
    from accuacl.labeling.project.learned import rows_of

    ready = {item for step in read_steps(project.journal, "label") for item, _ in step.result["labels"]}
    items = sorted(labels.keys() & ready)
    classes = sorted({labels[item] for item in items})
    if len(items) < FEWEST or len(classes) < 2:
        return [], classes, np.empty((0, len(classes)))
    own = torch.tensor([classes.index(labels[item]) for item in items])
    x = torch.from_numpy(rows_of(project.settings, project.tasks, items))
    return items, classes, torch.softmax(fit_ridge(x, own, len(classes)).loo, 1).numpy()


def _confident_disagreement(
    guesses: dict[int, tuple[int, float]], labels: dict[int, int]
) -> dict[int, tuple[float, int]]:
    """Return the guesses that differ from the label and are as confident as correct guesses of the same class."""
    right: dict[int, list[float]] = {}
    for item, (guess, confidence) in guesses.items():
        if guess == labels.get(item):
            right.setdefault(guess, []).append(confidence)
    return {
        item: (confidence, guess)
        for item, (guess, confidence) in guesses.items()
        if item in labels and guess != labels[item] and guess in right and confidence >= np.mean(right[guess])
    }


def _guesses(project: Project, *kinds: str) -> dict[int, tuple[int, float]]:
    """Return the latest guess for each item, from steps of these kinds: queries, or tests of held-out items."""
    final, guesses = counts_as(project.store.classes()), dict[int, tuple[int, float]]()
    for step in read_steps(project.journal, *kinds):
        rows = step.result.get("predictions")
        if rows is None:
            columns = (step.result[name] for name in ("ids", "guess", "confidence"))
            rows = zip(*columns, strict=False)  # rounds before the first training have no guesses
        guesses |= {int(item): (final[int(guess)], float(sure)) for item, guess, sure in rows}
    return guesses
