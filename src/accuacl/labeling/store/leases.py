"""Leases: an item is in the hands of one person at a time, and comes back by itself when that takes too long."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store import people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Pick

OPEN_ROUND = "SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1"


def lease(tx: Transaction, person: Person, seconds: float) -> Pick | None:
    """The person's own running lease, the latest first; else the best-ranked item that is free; None: there is none."""
    people.check(tx, person)
    state = tx.one(OPEN_ROUND)
    if state is None or rounds.snapshot(tx, *state) is not None:
        return None
    own = held(tx, person)
    if own is not None:
        return own
    free = tx.one(
        f"SELECT {rounds.PICK} FROM picks p WHERE p.task = ? AND p.round = ? "
        "AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item = p.item) "
        "AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.item = p.item AND h.until > ?) ORDER BY p.rank LIMIT 1",
        *(*state, tx.now),
    )
    if free is None:
        return None
    tx.event("lease", person=person.id, item=free[0], until=tx.now + seconds)
    return rounds.pick(free)


def held(tx: Transaction, person: Person) -> Pick | None:
    """What the person has in hand in the open round, the latest first."""
    state = tx.one(OPEN_ROUND)
    if state is None or rounds.snapshot(tx, *state) is not None:
        return None
    own = tx.one(
        f"SELECT {rounds.PICK} FROM holders h JOIN picks p ON p.item = h.item "
        "WHERE h.task = ? AND h.round = ? AND h.person = ? AND h.until > ? ORDER BY h.id DESC LIMIT 1",
        *(*state, person.id, tx.now),
    )
    return None if own is None else rounds.pick(own)


def renew(tx: Transaction, person: Person, item: int, seconds: float) -> None:
    """Keep the item for so many seconds from now; also after the lease ran out, if nobody has taken it since."""
    people.check(tx, person)
    check_free(tx, person, item)
    tx.event("renew", person=person.id, item=item, until=tx.now + seconds)


def release(tx: Transaction, person: Person, item: int) -> None:
    """Give the item back; nothing happens if the person does not have it."""
    if holder(tx, item) == person.id:
        tx.event("release", person=person.id, item=item)


def holder(tx: Transaction, item: int) -> int | None:
    """Who has the item in hand."""
    row = tx.one("SELECT person FROM holders WHERE item = ? AND until > ?", item, tx.now)
    return None if row is None else int(row[0])


def check_free(tx: Transaction, person: Person, item: int) -> None:
    """An item can be answered in its open round, once, by whoever holds it, or by anyone if nobody does."""
    state = tx.one("SELECT task, round FROM picks WHERE item = ?", item)
    if state is None:
        raise InputError(f"item {item} is not to be labelled.")
    if rounds.snapshot(tx, *state) is not None:
        raise InputError(f"the round of item {item} is closed; correct its label instead.")
    if tx.one("SELECT 1 FROM standing WHERE item = ?", item):
        raise InputError(f"item {item} is labelled or skipped already; undo that, or correct its label.")
    if holder(tx, item) not in (None, person.id):
        raise InputError(f"item {item} is in the hands of someone else; ask for another one.")
