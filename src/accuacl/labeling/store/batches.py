"""Many items at once: a batch that is shown with the model's guesses, and labelled by one request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accuacl.base.errors import InputError
from accuacl.labeling.store import answers, leases, people, rounds, shares
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.leases import NOTHING, Expected
from accuacl.labeling.store.records import BatchDone, Person, Pick

MOST = 100  # items that are labelled together


def lease(tx: Transaction, person: Person, most: int, seconds: float, expected: Expected = NOTHING) -> list[Pick]:
    """Items of the open round that have a guess, now leased to the person, by rank.

    First those that the person has already. Of the rest they get at most their share: as much as each of the others
    who hold something now would get. If they have none and nothing is free, it is what others hold beyond their share.
    """
    people.check(tx, person)
    current = rounds.open_now(tx)
    if current is None:
        return []
    own = _held(tx, person, current)
    others = tx.one(
        "SELECT COUNT(DISTINCT person) FROM holders WHERE task = ? AND round = ? AND until > ? AND person != ?",
        *(*current, tx.now, person.id),
    )[0]
    free = [pick for pick in leases.free(tx, person, current, most, expected) if pick.guess is not None]
    share = -(-(len(own) + len(free)) // (others + 1))
    new = free[: max(0, min(most, share) - len(own))]
    for pick in sorted(new, key=_from_the_end):
        tx.event("lease", person=person.id, item=pick.item, until=tx.now + seconds)
    if not own and not new:
        spares = [one for one in shares.spare(tx, person, current, most) if one.pick.guess is not None]
        new = shares.take(tx, person, sorted(spares, key=lambda one: _from_the_end(one.pick)), seconds)
    return sorted(own + new, key=lambda pick: pick.rank)


def show(tx: Transaction, person: Person, pick: Pick) -> None:
    """Record, once, that the person has been shown the model's guess for an item."""
    before = "SELECT class FROM events WHERE item = ? AND kind = 'guess' AND person = ? ORDER BY id DESC LIMIT 1"
    if pick.guess is not None and tx.one(before, pick.item, person.id) != (pick.guess,):
        tx.event("guess", person=person.id, item=pick.item, **{"class": pick.guess})


def show_all(tx: Transaction, person: Person, items: Sequence[int]) -> None:
    """The same for those of the items that the person has, or had until somebody else was given them."""
    people.check(tx, person)
    _check_count(items)
    leased = "EXISTS (SELECT 1 FROM events e WHERE e.item = p.item AND e.kind = 'lease' AND e.person = ?)"
    for item in items:
        row = tx.one(f"SELECT {rounds.PICK} FROM picks p WHERE p.item = ? AND {leased}", item, person.id)
        if row is not None:
            show(tx, person, rounds.pick(row))


def shown(tx: Transaction) -> dict[int, int]:
    """The guess that whoever gave an item's present answer had been shown before, for each item that has one."""
    rows = tx.all(
        "SELECT g.item, g.class FROM events g JOIN state s ON s.item = g.item JOIN events a ON a.id = s.answer "
        "WHERE g.kind = 'guess' AND g.person = a.person AND g.id < a.id ORDER BY g.id"
    )
    return dict(rows)


def label(tx: Transaction, person: Person, labels: Mapping[int, int], request: str) -> BatchDone:
    """Label items of the open round, {item: class}. What cannot be labelled is refused; the rest is labelled.

    Whoever labels them has been shown the guesses. The same request again gives the same, and labels nothing twice.
    """
    show_all(tx, person, list(labels))
    saved, refused = [], {}
    for i, (item, class_id) in enumerate(labels.items()):
        try:
            answers.label(tx, person, item, class_id, f"{request}/{i}")
            saved.append(item)
        except InputError as error:
            refused[item] = str(error)
    return BatchDone(saved, refused)


def undo(tx: Transaction, person: Person, batch: str, seconds: float, request: str) -> list[int]:
    """Undo the labels of the person's request `batch` that still stand, and lease the items again; the items."""
    people.check(tx, person)
    answers.check_request(request)
    current = rounds.open_now(tx)
    if current is None:
        return []
    rows = tx.all(
        "SELECT e.id, e.item FROM given e JOIN state s ON s.item = e.item WHERE e.request >= ? AND e.request < ? "
        "AND (e.kind = 'opinion' OR s.answer = e.id) AND e.person = ? AND s.task = ? AND s.round = ? ORDER BY e.id",
        *(f"{batch}/", f"{batch}0", person.id, *current),  # "0" comes after "/"
    )
    for i, (event, item) in enumerate(rows):
        tx.event("undo", person=person.id, item=item, undoes=event, request=f"{request}/{i}")
        tx.event("lease", person=person.id, item=item, until=tx.now + seconds)
    return [item for _, item in rows]


def renew(tx: Transaction, person: Person, items: Sequence[int], seconds: float) -> list[int]:
    """Extend the person's leases of these items, who works on the first; those that they have lost meanwhile."""
    people.check(tx, person)
    _check_count(items)
    lost = []
    for item in reversed(items):
        try:
            leases.renew(tx, person, item, seconds)
        except InputError:
            lost.append(item)
    return lost[::-1]


def release(tx: Transaction, person: Person, items: Sequence[int]) -> None:
    """Give items back."""
    _check_count(items)
    for item in items:
        leases.release(tx, person, item)


def _from_the_end(pick: Pick) -> tuple[int, float, int]:
    """Sorts as the groups on the page, backwards: what is shown first, and so worked on, is leased last."""
    return -(pick.guess or 0), pick.confidence or 0.0, -pick.rank


def _held(tx: Transaction, person: Person, current: tuple[int, int]) -> list[Pick]:
    rows = tx.all(
        f"SELECT {rounds.PICK} FROM state s JOIN picks p ON p.item = s.item WHERE {leases.HELD} "
        "AND p.guess IS NOT NULL ORDER BY s.rank",
        *(person.id, tx.now, *current),
    )
    return [rounds.pick(row) for row in rows]


def _check_count(items: Mapping[int, int] | Sequence[int]) -> None:
    if not 1 <= len(items) <= MOST:
        raise InputError(f"{len(items)} items were given; give 1 to {MOST}.")
