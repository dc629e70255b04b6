"""Leases: an item belongs to one person at a time, and is free again when the lease expires."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from accuacl.base.errors import InputError
from accuacl.labeling.store import opinions, people, rounds, shares
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.pending import NOT_OWN
from accuacl.labeling.store.records import Person, Pick


@dataclass(frozen=True)
class Expected:
    """Which free items the person expects next, since they have been told of them, and which ones others expect."""

    own: Sequence[int] = ()
    others: Set[int] = frozenset()


NOTHING = Expected()
HELD = (  # by a person, at a time, in the round that is open; or for an opinion
    "s.person = ? AND s.lease IS NOT NULL AND s.until > ? AND ((s.answer IS NULL AND s.task = ? AND s.round = ?) OR "
    "(s.answer IS NOT NULL AND ((NOT s.skipped AND s.opinions < p.people - 1) "
    "OR EXISTS (SELECT 1 FROM gold WHERE item = s.item))))"
)


def lease(tx: Transaction, person: Person, seconds: float, expected: Expected = NOTHING) -> Pick | None:
    """The item that the person already has, or else the best-ranked free one, now leased to them.

    If none is free, it is one that somebody can spare who holds more than their share; None if nobody does.
    """
    people.check(tx, person)
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = held(tx, person)
    if own is not None:
        return own
    gold = opinions.gold_due(tx, person)
    best = [gold] if gold else free(tx, person, current, 1, expected)
    if not best:
        return next(iter(shares.take(tx, person, shares.spare(tx, person, current, 1), seconds)), None)
    tx.event("lease", person=person.id, item=best[0].item, until=tx.now + seconds)
    return best[0]


def ahead(tx: Transaction, person: Person, count: int, expected: Expected = NOTHING) -> list[Pick]:
    """What the person will probably be given after the present item; nobody holds it yet."""
    current = rounds.open_now(tx)
    return [] if current is None else free(tx, person, current, count, expected, strict=True)


def free(
    tx: Transaction, person: Person, current: tuple[int, int], count: int, expected: Expected, strict: bool = False
) -> list[Pick]:
    """Free items, also those that want a second opinion of the person: those that they expect first, those that others
    expect last (strict: not at all).
    """
    most = count + len(expected.own) + len(expected.others)
    rows = tx.all(
        f"SELECT {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item WHERE s.task = ? AND s.round = ? "
        f"AND s.answer IS NULL AND (s.lease IS NULL OR s.until <= ?) AND (s.opinions = 0 OR {NOT_OWN}) "
        "ORDER BY s.rank LIMIT ?",
        *(*current, tx.now, person.id, most),
    )
    rows += opinions.wanted(tx, person, current, most)
    own = {item: i for i, item in enumerate(expected.own)}
    ranked = sorted(rows, key=lambda row: (row[0] in expected.others, own.get(row[0], len(own)), row[1]))
    return [rounds.pick(row) for row in ranked if not strict or row[0] not in expected.others][:count]


def held(tx: Transaction, person: Person) -> Pick | None:
    """The item that the person has, of the open round or for an opinion; the one leased last if there are several."""
    current = rounds.open_now(tx)
    if current is None:
        return None
    own = tx.one(
        f"SELECT {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item WHERE {HELD} ORDER BY s.lease DESC LIMIT 1",
        *(person.id, tx.now, *current),
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


def check_free(tx: Transaction, person: Person, item: int) -> bool:
    """Check that the person may answer the item: its round is open, it has no answer, and nobody else has it; or else
    that they are asked for an opinion about it. Whether it is an opinion.
    """
    row = tx.one("SELECT task, round, answer, opinions FROM state WHERE item = ?", item)
    if row is None:
        raise InputError(f"item {item} has not been picked; label one that has.")
    task, round, answer, given = row
    opinion = answer is not None and opinions.may_give(tx, person, item)
    if not opinion and rounds.is_closed(tx, task, round):
        raise InputError(f"the round of item {item} is closed; correct its label instead.")
    if answer is not None and not opinion:
        raise InputError(f"item {item} is already labelled or skipped; undo that or correct its label.")
    if given and not opinion and tx.one("SELECT 1 FROM given WHERE item = ? AND person = ?", item, person.id):
        raise InputError(f"you have given your opinion about item {item} already; take the next one.")
    if holder(tx, item) not in (None, person.id):
        raise InputError(f"someone else has item {item} now; take another one.")
    return opinion
