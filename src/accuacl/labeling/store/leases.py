"""Leases: an item belongs to one person at a time, and is free again when the lease expires."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from accuacl.base.errors import InputError
from accuacl.labeling.store import people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Pick


@dataclass(frozen=True)
class Expected:
    """Which free items the person expects next, since they have been told of them, and which ones others expect."""

    own: Sequence[int] = ()
    others: Set[int] = frozenset()


NOTHING = Expected()


def lease(tx: Transaction, person: Person, seconds: float, expected: Expected = NOTHING) -> Pick | None:
    """The item that the person already has, or else the best-ranked free one, now leased to them; None if none is."""
    people.check(tx, person)
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = held(tx, person)
    if own is not None:
        return own
    best = free(tx, current, 1, expected)
    if not best:
        return None
    tx.event("lease", person=person.id, item=best[0].item, until=tx.now + seconds)
    return best[0]


def ahead(tx: Transaction, count: int, expected: Expected = NOTHING) -> list[Pick]:
    """What the person will probably be given after the present item; nobody holds it yet."""
    current = rounds.open_now(tx)
    return [] if current is None else free(tx, current, count, expected, strict=True)


def free(tx: Transaction, current: tuple[int, int], count: int, expected: Expected, strict: bool = False) -> list[Pick]:
    """Free items: those that this person expects first, those that others expect last (strict: not at all)."""
    rows = tx.all(
        f"SELECT {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item WHERE s.task = ? AND s.round = ? "
        "AND s.answer IS NULL AND (s.lease IS NULL OR s.until <= ?) ORDER BY s.rank LIMIT ?",
        *(*current, tx.now, count + len(expected.own) + len(expected.others)),
    )
    own = {item: i for i, item in enumerate(expected.own)}
    ranked = sorted(rows, key=lambda row: (row[0] in expected.others, own.get(row[0], len(own)), row[1]))
    return [rounds.pick(row) for row in ranked if not strict or row[0] not in expected.others][:count]


def held(tx: Transaction, person: Person) -> Pick | None:
    """The item of the open round that the person has; the one leased last if there are several."""
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = tx.one(
        f"SELECT {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item WHERE s.person = ? AND s.lease IS NOT NULL "
        "AND s.task = ? AND s.round = ? AND s.until > ? AND s.answer IS NULL ORDER BY s.lease DESC LIMIT 1",
        *(person.id, *current, tx.now),
    )
    return None if own is None else rounds.pick(own)


def renew(tx: Transaction, person: Person, item: int, seconds: float) -> None:
    """Extend the person's own lease to so many seconds from now, even if it has expired, unless somebody took it."""
    people.check(tx, person)
    check_free(tx, person, item)
    if tx.one("SELECT 1 FROM holders WHERE item = ? AND person = ?", item, person.id) is None:
        raise InputError(f"you do not have item {item}; take the next one.")
    tx.event("renew", person=person.id, item=item, until=tx.now + seconds)


def release(tx: Transaction, person: Person, item: int) -> None:
    """Give the item back; does nothing if the person does not have it."""
    if holder(tx, item) == person.id:
        tx.event("release", person=person.id, item=item)


def holder(tx: Transaction, item: int) -> int | None:
    """Who has the item now."""
    row = tx.one("SELECT person FROM holders WHERE item = ? AND until > ?", item, tx.now)
    return None if row is None else int(row[0])


def check_free(tx: Transaction, person: Person, item: int) -> None:
    """Check that the person may answer the item: its round is open, it has no answer, and nobody else has it."""
    place = tx.one("SELECT task, round FROM picks WHERE item = ?", item)
    if place is None:
        raise InputError(f"item {item} has not been picked; label one that has.")
    if rounds.snapshot(tx, *place) is not None:
        raise InputError(f"the round of item {item} is closed; correct its label instead.")
    if tx.one("SELECT 1 FROM state WHERE item = ? AND answer IS NOT NULL", item):
        raise InputError(f"item {item} is already labelled or skipped; undo that or correct its label.")
    if holder(tx, item) not in (None, person.id):
        raise InputError(f"someone else has item {item} now; take another one.")
