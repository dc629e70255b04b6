"""How good the model is at each class, from the labels that were held out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from accuacl.labeling.project.measuring.estimates import Estimates
from accuacl.labeling.project.measuring.intervals import Estimate, exact, mean, share


@dataclass(frozen=True)
class ClassEstimate:
    """A class: its labels, the share of its held-out items that the model gets right; None if there are none.

    forgetting: by how much that share has fallen on the items of earlier tasks, since each of these was learned.
    """

    id: int
    labels: int
    accuracy: Estimate | None
    forgetting: Estimate | None = None


def by_class(estimates: Estimates, classes: Iterable[int]) -> list[ClassEstimate]:
    """What is known of each class; the confusion matrix has all that is needed for its accuracy."""
    held: Counter[int] = Counter()
    for (label, _), count in estimates.confusion.items():
        held[label] += count
    right = {id: estimates.confusion.get((id, id), 0) for id in held}
    return [
        ClassEstimate(
            id,
            estimates.labels_by_class.get(id, 0),
            share(right[id], held[id]) if held[id] else None,
            estimates.class_forgetting.get(id),
        )
        for id in classes
    ]


def mean_over_classes(classes: Iterable[ClassEstimate]) -> Estimate | None:
    """A rare class counts as much as a common one; of a single class it is its own estimate."""
    measured = [one.accuracy for one in classes if one.accuracy is not None]
    if len(measured) <= 1:
        return measured[0] if measured else None
    return mean([exact(round(e.value * e.count / 100), e.count) for e in measured])
