"""Leases: an item belongs to one person at a time, and is free again when the lease expires."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store import people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Pick


def lease(tx: Transaction, person: Person, seconds: float) -> Pick | None:
    """The item that the person already has, or else the best-ranked free one, now leased to them; None if none is."""
    people.check(tx, person)
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = held(tx, person)
    if own is not None:
        return own
    free = tx.one(
        f"SELECT {rounds.PICK} FROM picks p WHERE p.task = ? AND p.round = ? "
        "AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item = p.item) "
        "AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.item = p.item AND h.until > ?) ORDER BY p.rank LIMIT 1",
        *(*current, tx.now),
    )
    if free is None:
        return None
    tx.event("lease", person=person.id, item=free[0], until=tx.now + seconds)
    return rounds.pick(free)


def held(tx: Transaction, person: Person) -> Pick | None:
    """The item of the open round that the person has; the one leased last if there are several."""
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = tx.one(
        f"SELECT {rounds.PICK} FROM holders h JOIN picks p ON p.item = h.item "
        "WHERE h.task = ? AND h.round = ? AND h.person = ? AND h.until > ? ORDER BY h.id DESC LIMIT 1",
        *(*current, person.id, tx.now),
    )
    return None if own is None else rounds.pick(own)


def renew(tx: Transaction, person: Person, item: int, seconds: float) -> None:
    """Extend the lease to so many seconds from now; also after it expired, if nobody has taken the item since."""
    people.check(tx, person)
    check_free(tx, person, item)
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
    if tx.one("SELECT 1 FROM standing WHERE item = ?", item):
        raise InputError(f"item {item} is already labelled or skipped; undo that or correct its label.")
    if holder(tx, item) not in (None, person.id):
        raise InputError(f"someone else has item {item} now; take another one.")
