"""What people say of items: labels, skips, second thoughts. Each is an event; the last that stands counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes, leases, people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Answer, Event, Person

LONGEST_REQUEST = 100


def label(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> int:
    """Say what an item is; the id of the event."""
    earlier = _earlier(tx, "label", person, request)
    if earlier is None:
        people.check(tx, person)
        classes.known(tx, class_id)
        leases.check_free(tx, person, item)
        return tx.event("label", person=person.id, item=item, **{"class": class_id}, request=request)
    return _same(earlier, item, class_id, request)


def skip(tx: Transaction, person: Person, item: int, request: str) -> int:
    """Say that an item cannot be labelled; the id of the event."""
    earlier = _earlier(tx, "skip", person, request)
    if earlier is None:
        people.check(tx, person)
        leases.check_free(tx, person, item)
        return tx.event("skip", person=person.id, item=item, request=request)
    return _same(earlier, item, None, request)


def correct(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> int:
    """Change the label of an item that has one, at any time; the id of the event."""
    earlier = _earlier(tx, "correct", person, request)
    if earlier is None:
        people.check(tx, person)
        classes.known(tx, class_id)
        if tx.one("SELECT 1 FROM answers WHERE item = ? AND class IS NOT NULL", item) is None:
            raise InputError(f"item {item} has no label; only labelled items can be corrected.")
        return tx.event("correct", person=person.id, item=item, **{"class": class_id}, request=request)
    return _same(earlier, item, class_id, request)


def undo(tx: Transaction, person: Person, seconds: float, request: str) -> int | None:
    """Take back the person's last label or skip in the open round and give them the item again; which it is.

    What has been corrected since stays. Done again and again it goes back to the round's beginning.
    """
    earlier = _earlier(tx, "undo", person, request)
    if earlier is not None:
        return int(earlier[1])
    people.check(tx, person)
    state = tx.one(leases.OPEN_ROUND)
    if state is None or rounds.snapshot(tx, *state) is not None:
        return None
    row = tx.one(
        "SELECT a.id, a.item FROM answers a JOIN picks p ON p.item = a.item WHERE p.task = ? AND p.round = ? "
        "AND a.person = ? AND a.kind IN ('label', 'skip') ORDER BY a.id DESC LIMIT 1",
        *(*state, person.id),
    )
    if row is None:
        return None
    tx.event("undo", person=person.id, item=row[1], undoes=row[0], request=request)
    tx.event("lease", person=person.id, item=row[1], until=tx.now + seconds)
    return int(row[1])


def answers(tx: Transaction, items: Iterable[int] | None = None) -> list[Answer]:
    """What holds now, by item."""
    root = classes.roots(tx)
    wanted = None if items is None else set(items)
    rows = tx.all(
        "SELECT a.item, class, person, time, id FROM picks p JOIN answers a ON a.item = p.item ORDER BY p.item"
    )
    return [
        Answer(item, None if id is None else root[id], *rest)
        for item, id, *rest in rows
        if wanted is None or item in wanted
    ]


def history(tx: Transaction, item: int) -> list[Event]:
    """Everything that ever happened to an item, first to last."""
    rows = tx.all("SELECT id, time, kind, person, item, class, text FROM events WHERE item = ? ORDER BY id", item)
    return [Event(*row) for row in rows]


def requests(tx: Transaction, prefix: str) -> dict[str, Event]:
    """What came of the requests that begin so, first to last."""
    rows = tx.all(
        "SELECT request, id, time, kind, person, item, class, text FROM events "
        "WHERE request >= ? AND request < ? ORDER BY id",
        *(prefix, prefix + chr(0x10FFFF)),
    )
    return {request: Event(*row) for request, *row in rows}


def _earlier(tx: Transaction, kind: str, person: Person, request: str) -> Any:
    """What came of the same request before, as (event, item, class): an answer may be lost on its way."""
    if not 1 <= len(request) <= LONGEST_REQUEST:
        raise InputError(
            f"a request is named by 1 to {LONGEST_REQUEST} characters; make one up for each, such as a UUID."
        )
    row = tx.one("SELECT id, item, class, kind, person FROM events WHERE request = ?", request)
    if row is not None and (row[3], row[4]) != (kind, person.id):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return row


def _same(earlier: Any, item: int, class_id: int | None, request: str) -> int:
    if (earlier[1], earlier[2]) != (item, class_id):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return int(earlier[0])
