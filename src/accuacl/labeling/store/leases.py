"""Leases: an item belongs to one person at a time, and is free again when the lease expires.

An idle annotator takes items from those above their fair share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.opinions import gold_due, may_give_opinion, wanted
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import Person, Pick
from accuacl.labeling.store.rounds import GUESSED, NOT_OWN, PICK, is_closed, open_now, to_pick

LEASE = 120.0  # seconds until a lease expires that is not renewed
MOST = 100  # the most items that a batch may have
# Takes a person, the time, and the task and number of the open round; true if the item is leased to that person, either
# to be labelled in this round or for a second opinion.
HELD = (
    "s.person = ? AND s.lease IS NOT NULL AND s.until > ? AND ((s.answer IS NULL AND s.task = ? AND s.round = ?) OR "
    "(s.answer IS NOT NULL AND ((NOT s.skipped AND s.opinions < p.people - 1) "
    "OR EXISTS (SELECT 1 FROM gold WHERE item = s.item))))"
)
# True if the person who holds the item has been shown the model's guess for it.
SHOWN = "EXISTS (SELECT 1 FROM events g WHERE g.item = s.item AND g.kind = 'guess' AND g.person = s.person)"


@dataclass(frozen=True)
class Expected:
    """The free items that the person's page has loaded already, in order, and those that other pages have loaded."""

    own: Sequence[int] = ()
    others: Set[int] = frozenset()


NOTHING = Expected()


def lease(tx: Transaction, person: Person, seconds: float = LEASE, expected: Expected = NOTHING) -> Pick | None:
    """Return the item that the person should label next, leased to them.

    It is the item that they already hold, or else the best-ranked free one, which they now hold for this many seconds.
    If none is free, they take one from somebody who holds more than a fair share. None if nobody does.
    """
    check_access(tx, person)
    current = open_now(tx)
    if current is None:
        return None
    own = held(tx, person)
    if own is not None:
        return own
    gold = gold_due(tx, person)
    best = [gold] if gold else _free(tx, person, current, 1, expected)
    if not best:
        return next(iter(_take(tx, person, _surplus(tx, person, current, 1), seconds)), None)
    tx.event("lease", person=person.id, item=best[0].item, until=tx.now + seconds)
    return best[0]


def held(tx: Transaction, person: Person) -> Pick | None:
    """Return the item that the person holds, to label or to give an opinion; of several, the one leased last."""
    current = open_now(tx)
    if current is None:
        return None
    row = tx.row(
        f"SELECT {PICK} FROM state s JOIN picks p ON p.item = s.item WHERE {HELD} ORDER BY s.lease DESC LIMIT 1",
        *(person.id, tx.now, *current),
    )
    return None if row is None else to_pick(row)


def ahead(tx: Transaction, person: Person, count: int, expected: Expected = NOTHING) -> list[Pick]:
    """Return the items that the person will probably be given after the present one; nobody holds them yet.

    Gold items are among them, so that they cannot be told from the others.
    """
    current = open_now(tx)
    if current is None:
        return []
    picks = _free(tx, person, current, count, expected, strict=True)
    for i in range(count):
        gold = gold_due(tx, person, later=i + 1)
        if gold is not None and i <= len(picks):
            picks.insert(i, gold)
    return picks[:count]


def can_be_given(tx: Transaction, person: Person) -> bool:
    """Return whether the person could be given an item for a second opinion, or one that somebody else holds."""
    current = open_now(tx)
    return current is not None and bool(wanted(tx, person, current, 1) or _surplus(tx, person, current, 1))


def renew(tx: Transaction, person: Person, item: int, seconds: float = LEASE) -> None:
    """Extend the person's own lease to this many seconds from now, even if it has expired, unless somebody took it."""
    check_access(tx, person)
    check_answerable(tx, person, item)
    if tx.row("SELECT 1 FROM holders WHERE item = ? AND person = ?", item, person.id) is None:
        raise InputError(f"you do not have item {item}; take the next one.")
    tx.event("renew", person=person.id, item=item, until=tx.now + seconds)


def release(tx: Transaction, person: Person, item: int) -> None:
    """Give the item back; do nothing if the person does not hold it."""
    if _holder(tx, item) == person.id:
        tx.event("release", person=person.id, item=item)


def check_answerable(tx: Transaction, person: Person, item: int) -> bool:
    """Check that the person may answer the item; return whether the answer would be a second opinion.

    They may if its round is open, it has no answer and nobody else holds it, or if they are asked for an opinion.
    """
    row = tx.row("SELECT task, round, answer, opinions FROM state WHERE item = ?", item)
    if row is None:
        raise InputError(f"item {item} has not been picked; label one that has.")
    task, round, answer, opinions = row
    opinion = answer is not None and may_give_opinion(tx, person, item)
    if not opinion and is_closed(tx, task, round):
        raise InputError(f"the round of item {item} is closed; correct its label instead.")
    if answer is not None and not opinion:
        raise InputError(f"item {item} is already labelled or skipped; undo that or correct its label.")
    if opinions and not opinion and tx.row("SELECT 1 FROM given WHERE item = ? AND person = ?", item, person.id):
        raise InputError(f"you have already given your opinion about item {item}; take the next one.")
    if _holder(tx, item) not in (None, person.id):
        raise InputError(f"someone else has item {item} now; take another one.")
    return opinion


# Batches: many items at once, with the model's guesses


def lease_batch(
    tx: Transaction, person: Person, most: int, expected: Expected = NOTHING, least: float = 0.0
) -> list[Pick]:
    """Lease the person items of the open round for which the model has a guess; return all that they hold, by rank.

    `least` is the lowest confidence of a guess. The items that the person already holds come first. Of the free ones
    they get at most an even share with everybody else who holds something now. If they hold nothing and nothing is
    free, they take what others hold beyond their share.
    """
    check_access(tx, person)
    current = open_now(tx)
    if current is None:
        return []
    rows = tx.rows(
        f"SELECT {PICK} FROM state s JOIN picks p ON p.item = s.item WHERE {HELD} AND {GUESSED} ORDER BY s.rank",
        *(person.id, tx.now, *current, least, least),
    )
    own = [to_pick(row) for row in rows]
    others = tx.row(
        "SELECT COUNT(DISTINCT person) FROM holders WHERE task = ? AND round = ? AND until > ? AND person != ?",
        *(*current, tx.now, person.id),
    )[0]
    free = _free(tx, person, current, most, expected, least)
    share = -(-(len(own) + len(free)) // (others + 1))
    new = free[: max(0, min(most, share) - len(own))]
    for pick in sorted(new, key=_from_the_end):
        tx.event("lease", person=person.id, item=pick.item, until=tx.now + LEASE)
    if not own and not new:
        surplus = _surplus(tx, person, current, most, least)
        new = _take(tx, person, sorted(surplus, key=lambda pair: _from_the_end(pair[0])), LEASE)
    return sorted(own + new, key=lambda pick: pick.rank)


def renew_batch(tx: Transaction, person: Person, items: Sequence[int]) -> list[int]:
    """Extend the person's leases of these items; return the items that they no longer hold.

    They work on the first item, so its lease is renewed last: `_surplus` leaves the one renewed last to its holder.
    """
    check_access(tx, person)
    check_count(items)
    lost = []
    for item in reversed(items):
        try:
            renew(tx, person, item)
        except InputError:
            lost.append(item)
    return lost[::-1]


def release_batch(tx: Transaction, person: Person, items: Sequence[int]) -> None:
    """Give back those of the items that the person holds."""
    check_count(items)
    for item in items:
        release(tx, person, item)


def check_count(items: Sequence[int], most: int = MOST) -> None:
    """Refuse a batch that is empty or has more than `most` items."""
    if not 1 <= len(items) <= most:
        raise InputError(f"{len(items)} items were given; give 1 to {most}.")


def _from_the_end(pick: Pick) -> tuple[int, float, int]:
    """Return a key that sorts picks in the reverse order of the page, so that what the page shows first is leased last.

    The item leased last is the one that its holder is taken to work on.
    """
    return -(pick.guess or 0), pick.confidence or 0.0, -pick.rank


def _holder(tx: Transaction, item: int) -> int | None:
    """Return the id of the person who holds the item now; None if it is free."""
    row = tx.row("SELECT person FROM holders WHERE item = ? AND until > ?", item, tx.now)
    return None if row is None else int(row[0])


def _free(
    tx: Transaction,
    person: Person,
    current: tuple[int, int],
    count: int,
    expected: Expected,
    least: float | None = None,
    strict: bool = False,
) -> list[Pick]:
    """Return free items, including those that need a second opinion of the person.

    Items that the person expects come first, those that others expect last, or with `strict` not at all. With `least`,
    only items with a guess of at least this confidence are returned.
    """
    most = count + len(expected.own) + len(expected.others)
    rows = tx.rows(
        f"SELECT {PICK} FROM state s JOIN picks p ON p.item = s.item WHERE s.task = ? AND s.round = ? "
        f"AND s.answer IS NULL AND (s.lease IS NULL OR s.until <= ?) AND (s.opinions = 0 OR {NOT_OWN}) "
        f"AND {GUESSED} ORDER BY s.rank LIMIT ?",
        *(*current, tx.now, person.id, least, least, most),
    )
    rows += wanted(tx, person, current, most, least)
    own = {item: i for i, item in enumerate(expected.own)}
    ranked = sorted(rows, key=lambda row: (row[0] in expected.others, own.get(row[0], len(own)), row[1]))
    return [to_pick(row) for row in ranked if not strict or row[0] not in expected.others][:count]


def _surplus(
    tx: Transaction, person: Person, current: tuple[int, int], most: int, least: float | None = None
) -> list[tuple[Pick, int]]:
    """Return up to `most` items of the round that the person may take from others, with their holders.

    They are taken one by one from whoever holds most, until the person has an even share. With `least`, only items with
    a guess of at least this confidence are taken. Everybody keeps an even share, and the item that they work on, which
    is the one last leased or renewed. Items whose guess the holder has not been shown go first, then those whose lease
    is the oldest.
    """
    rows = tx.rows(
        f"SELECT s.person, s.lease, {NOT_OWN} AND {GUESSED}, {PICK} FROM state s JOIN picks p ON p.item = s.item "
        "WHERE s.task = ? AND s.round = ? AND s.lease IS NOT NULL AND s.until > ? "
        "AND (s.answer IS NULL OR (NOT s.skipped AND s.opinions < p.people - 1)) "
        f"ORDER BY {SHOWN}, s.lease",
        *(person.id, least, least, *current, tx.now),
    )
    held = Counter(holder for holder, *_ in rows)
    own = held.pop(person.id, 0)
    share = -(-len(rows) // (len(held) + 1))
    latest = {holder: lease for holder, lease, *_ in sorted(rows, key=lambda row: row[1])}
    can_spare: dict[int, list[Pick]] = {holder: [] for holder in held}
    for holder, lease, may_have, *pick in rows:
        if holder != person.id and may_have and lease != latest[holder]:
            can_spare[holder].append(to_pick(pick))
    surplus: list[tuple[Pick, int]] = []
    while len(surplus) < min(most, share - own):
        above_share = [holder for holder, picks in can_spare.items() if picks and held[holder] > share]
        if not above_share:
            break
        holder = max(above_share, key=lambda holder: held[holder])
        surplus.append((can_spare[holder].pop(0), holder))
        held[holder] -= 1
    return surplus


def _take(tx: Transaction, person: Person, surplus: list[tuple[Pick, int]], seconds: float) -> list[Pick]:
    """Move leases from their holders to the person; return the items."""
    for pick, holder in surplus:
        tx.event("release", person=holder, item=pick.item)
        tx.event("lease", person=person.id, item=pick.item, until=tx.now + seconds)
    return [pick for pick, _ in surplus]
