"""What each person has done: how much, how fast, and how far others agree."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from accuacl.labeling.store import classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Work, counts_as

PAUSE = 120.0  # seconds: a longer gap between two answers is a break


def work(tx: Transaction) -> dict[int, Work]:
    """By person; people who have done nothing are not there."""
    final = counts_as(classes.every(tx))
    times: dict[int, list[float]] = {}
    counts: dict[tuple[int, str], int] = {}
    said: dict[int, dict[int, int]] = {}  # by item and person, also as corrections
    given: dict[int, dict[int, int]] = {}  # the same without corrections, which are made knowing the label
    first: dict[int, int] = {}
    corrected: dict[int, int] = {}
    done = f"e.kind IN ('label', 'opinion', 'skip', 'correct') AND e.person IS NOT NULL AND {classes.STANDS}"
    rows = tx.all(f"SELECT e.time, e.kind, e.person, e.item, e.class FROM events e WHERE {done} ORDER BY e.id")
    for time, kind, person, item, label in rows:
        times.setdefault(person, []).append(time)
        counts[person, kind] = counts.get((person, kind), 0) + 1
        if label is None:
            continue
        owner = first.setdefault(item, person)
        if kind == "correct" and owner != person and said.get(item, {}).get(owner) not in (None, final[label]):
            corrected[owner] = corrected.get(owner, 0) + 1
        said.setdefault(item, {})[person] = final[label]
        if kind != "correct":
            given.setdefault(item, {})[person] = final[label]
    compared, agreed = _agreement(given)
    return {
        person: Work(
            counts.get((person, "label"), 0) + counts.get((person, "opinion"), 0),
            counts.get((person, "skip"), 0),
            _pace(when),
            compared.get(person, 0),
            agreed.get(person, 0),
            corrected.get(person, 0),
            when[-1],
        )
        for person, when in times.items()
    }


def _pace(times: list[float]) -> float | None:
    """The median gap between two answers, breaks left out."""
    gaps = [b - a for a, b in pairwise(times) if b - a <= PAUSE]
    return median(gaps) if gaps else None


def _agreement(given: dict[int, dict[int, int]]) -> tuple[dict[int, int], dict[int, int]]:
    """By person: with how many answers of others theirs were compared, and how many of these were the same."""
    compared: dict[int, int] = {}
    agreed: dict[int, int] = {}
    for labels in given.values():
        for person, label in labels.items():
            others = [other for who, other in labels.items() if who != person]
            compared[person] = compared.get(person, 0) + len(others)
            agreed[person] = agreed.get(person, 0) + others.count(label)
    return compared, agreed
