"""Labels that were there before: given with the data, or in a file.

They join the latest round of their task as picks that are answered already. Their ranks are behind all others', so that
what was offered to people, and what that costs, is counted without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from accuacl.labeling.store import classes, people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Pick

FIRST = rounds.GIVEN


@dataclass(frozen=True)
class GivenLabel:
    """A label of an item, and who gave it."""

    item: int
    class_id: int
    person: Person


def give(tx: Transaction, task: int, labels: Iterable[GivenLabel]) -> int:
    """Take labels of items of a task that has a round; how many are new. An answer that is there stands.

    Items that somebody is busy with are left to them, and labels of a task of which only sums are kept are not taken.
    """
    row = tx.one("SELECT MAX(round) FROM rounds WHERE task = ?", task)
    sealed = tx.one("SELECT 1 FROM events WHERE kind = 'seal' AND text = ?", str(task))
    if row is None or row[0] is None or sealed:
        return 0
    latest, taken = int(row[0]), 0
    rank = int(tx.one("SELECT MAX(?, COALESCE(MAX(rank) + 1, 0)) FROM picks WHERE task = ?", FIRST, task)[0])
    for label in labels:
        request = f"given {label.item}"
        if tx.one("SELECT 1 FROM events WHERE request = ?", request):
            continue
        people.check(tx, label.person)
        classes.check(tx, label.class_id)
        state = tx.one("SELECT answer, round, lease, until FROM state WHERE item = ?", label.item)
        if state is None:
            pick = "INSERT INTO picks (item, task, round, rank, scores) VALUES (?, ?, ?, ?, '{}')"
            tx.all(pick, label.item, task, latest, rank)
            rank += 1
        elif state[0] is not None or (state[2] is not None and state[3] > tx.now):
            continue
        closed = state is not None and rounds.snapshot(tx, task, state[1]) is not None
        kind = "correct" if closed else "label"
        tx.event(kind, person=label.person.id, item=label.item, **{"class": label.class_id}, request=request)
        taken += 1
    return taken


def begin_round(
    tx: Transaction, task: int, picks: Sequence[Pick], twice: Collection[int], labels: Iterable[GivenLabel]
) -> None:
    """Offer the first picks of a task, unless it has a round already; nobody is shown one whose label is given."""
    if picks and tx.one("SELECT 1 FROM rounds WHERE task = ?", task) is None:
        rounds.open_round(tx, task, 0, picks, twice)
        give(tx, task, labels)


def unasked(tx: Transaction, task: int) -> list[int]:
    """The items of a task that nobody was asked for."""
    return [item for (item,) in tx.all("SELECT item FROM picks WHERE task = ? AND rank >= ?", task, FIRST)]
