"""Whether people agree: Cohen's and Fleiss' kappa of those who labelled the same items, and how often each is right on
gold items.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from accuacl.labeling.project.measuring.intervals import Estimate, Z, share
from accuacl.labeling.store import Rating, Store


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
    """What is known of the labels: kappa of all and of each pair of people, and each one's accuracy on gold items."""

    fleiss: Kappa | None
    pairs: dict[tuple[int, int], Kappa]
    gold: dict[int, Estimate]
    shared: int  # items that several people have labelled
    unsettled: int  # of those, the ones whose labels differ and that nobody has settled

    @property
    def text(self) -> str:
        """How far people agree, in a sentence; "" if no two have labelled the same."""
        if not self.shared:
            return ""
        agree = (
            f"they agree in {self.fleiss.agreement:.0f} %, Fleiss' kappa {self.fleiss.text}"
            if self.fleiss
            else ("all of them the same, so there is no kappa yet")
        )
        what = "example has" if self.shared == 1 else "examples have"
        return f"{self.shared} {what} labels of several people: {agree}; {self.unsettled} to settle."


def quality(store: Store) -> Quality:
    """From the labels that people have given by themselves."""
    by_item: dict[int, dict[int, int]] = {}
    for rating in store.ratings():
        by_item.setdefault(rating.item, {})[rating.person] = rating.class_id
    shared = [labels for labels in by_item.values() if len(labels) > 1]
    people = sorted({person for labels in shared for person in labels})
    pairs = {}
    for a, b in combinations(people, 2):
        both = [(labels[a], labels[b]) for labels in shared if a in labels and b in labels]
        kappa = cohen([one for one, _ in both], [other for _, other in both])
        if kappa is not None:
            pairs[a, b] = kappa
    unsettled = sum(row.unsettled for row in store.everything())
    gold = accuracy(store.gold_ratings(), store.gold())
    return Quality(fleiss([list(labels.values()) for labels in shared]), pairs, gold, len(shared), unsettled)


def accuracy(ratings: Sequence[Rating], known: dict[int, int]) -> dict[int, Estimate]:
    """How many of the gold items that a person has labelled without knowing the answer they have labelled right."""
    right: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for rating in ratings:
        total[rating.person] += 1
        right[rating.person] += rating.class_id == known.get(rating.item)
    return {person: share(right[person], total[person]) for person in sorted(total)}


def cohen(first: Sequence[int], second: Sequence[int]) -> Kappa | None:
    """Cohen's kappa (1960) of two people's labels of the same items; None without items, or where chance alone would
    give complete agreement.

    >>> kappa = cohen([0, 0, 1, 1, 1, 0], [0, 0, 1, 1, 0, 0])
    >>> round(kappa.value, 3), round(kappa.agreement, 1)
    (0.667, 83.3)
    """
    n = len(first)
    if n == 0:
        return None
    a, b = Counter(first), Counter(second)
    chance = sum(a[label] * b[label] for label in a) / n**2
    return _kappa(sum(one == other for one, other in zip(first, second, strict=True)) / n, chance, n)


def fleiss(items: Sequence[Sequence[int]]) -> Kappa | None:
    """Fleiss' kappa (1971) of the labels of items, each given by two people or more, who may be others for each item.

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
    """Its interval is Wilson's for the agreement, with that of chance taken as known: complete agreement on few items
    leaves doubt.
    """
    if chance >= 1 - 1e-12:
        return None
    low, high = _wilson(agreement, n)
    value, low, high = ((part - chance) / (1 - chance) for part in (agreement, low, high))
    return Kappa(value, max(-1.0, low), min(1.0, high), 100 * agreement, n)


def _wilson(p: float, n: int) -> tuple[float, float]:
    """Wilson's interval of a share, which need not be a whole number of n."""
    middle, root = p + Z * Z / (2 * n), Z * (p * (1 - p) / n + Z * Z / (4 * n * n)) ** 0.5
    return (middle - root) / (1 + Z * Z / n), (middle + root) / (1 + Z * Z / n)
