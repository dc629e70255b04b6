"""Between the loop and the label store: picks on their way to people, and labels that came late."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any

from accuacl.experiment import read_steps
from accuacl.labeling.project.learning.taught import Labels
from accuacl.labeling.store import Pick


def picks_of(picked: dict[str, Any]) -> list[Pick]:
    """The result of a query as the store takes it."""
    picks = []
    for rank, item in enumerate(picked["ids"]):
        scores = {name: float(values[rank]) for name, values in picked["scores"].items() if values[rank] is not None}
        guess, confidence = (picked[name][rank] if picked["guess"] else None for name in ("guess", "confidence"))
        picks.append(Pick(item, rank, scores, guess, confidence))
    return picks


def late_labels(journal: Path, now: Labels, kept: Set[int], known: Set[int]) -> list[list[int]]:
    """Labels given only after their round was closed without them; what is held out is never trained on.

    kept: the items that can still be learned from. Where only sums are kept, nothing is left of earlier tasks' items.
    """
    late = {item: label for item, label in now.items() if item not in known and item in kept}
    if late:
        for step in read_steps(journal, "label"):
            late = {item: label for item, label in late.items() if item not in set(step.result["held"])}
    return [[item, label] for item, label in late.items()]
