"""What people answer: labels, skips, corrections, undos. Each is an event; the last one not undone counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes, leases, people, rounds
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.pending import OWN
from accuacl.labeling.store.records import Act, Answer, LabelEvent, Person, counts_as

LONGEST_REQUEST = 100


def do(tx: Transaction, person: Person, act: Act, seconds: float) -> int | None:
    """Record an act: the event's id; of an undo the item, leased to the person again, or None."""
    if act.kind == "undo":
        return undo(tx, person, seconds, act.request)
    if act.kind == "skip":
        return skip(tx, person, act.item, act.request)
    return label(tx, person, act.item, act.class_id, act.request)


def label(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> int:
    """Label an item of the open round, or give an opinion about one that has a label; the id of the event."""
    earlier = _earlier(tx, ("label", "opinion"), person, request)
    if earlier is None:
        people.check(tx, person)
        classes.check(tx, class_id)
        kind = "opinion" if leases.check_free(tx, person, item) else "label"
        return tx.event(kind, person=person.id, item=item, **{"class": class_id}, request=request)
    return _same(earlier, item, class_id, request)


def skip(tx: Transaction, person: Person, item: int, request: str) -> int:
    """Skip an item of the open round, which cannot be labelled; the id of the event."""
    earlier = _earlier(tx, ("skip", "opinion"), person, request)
    if earlier is None:
        people.check(tx, person)
        kind = "opinion" if leases.check_free(tx, person, item) else "skip"
        return tx.event(kind, person=person.id, item=item, request=request)
    return _same(earlier, item, None, request)


def correct(tx: Transaction, person: Person, item: int, class_id: int, request: str, own: bool = False) -> int:
    """Change the label of an item that has one, at any time; the id of the event. own: only if it is the person's."""
    earlier = _earlier(tx, ("correct",), person, request)
    if earlier is None:
        people.check(tx, person)
        classes.check(tx, class_id)
        if tx.one("SELECT 1 FROM answers WHERE item = ? AND class IS NOT NULL", item) is None:
            raise InputError(f"item {item} has no label to correct; label it first.")
        if rounds.sealed(tx, item):
            raise InputError(f"item {item} is of a finished task, of which only sums are kept; its label has to stay.")
        return correction(tx, person, item, class_id, request, own)
    return _same(earlier, item, class_id, request)


def correction(tx: Transaction, person: Person, item: int, class_id: int, request: str, own: bool) -> int:
    """Record another label of an item. own: only if its present answer is the person's, which settles no dispute."""
    if own:
        answer = tx.one("SELECT person FROM answers WHERE item = ?", item)
        if answer is None or answer[0] != person.id:
            raise InputError(f"item {item} was not answered by you; only a lead may change it.")
    text = OWN if own else None
    return tx.event("correct", person=person.id, item=item, **{"class": class_id}, request=request, text=text)


def undo(tx: Transaction, person: Person, seconds: float, request: str) -> int | None:
    """Undo the person's last label or skip in the open round and lease them the item again; the item, or None.

    What has been corrected since stays. Repeated, it goes back to the beginning of the round.
    """
    earlier = _earlier(tx, ("undo",), person, request)
    if earlier is not None:
        return int(earlier[1])
    people.check(tx, person)
    row = undoable(tx, person)
    if row is None:
        return None
    tx.event("undo", person=person.id, item=row[1], undoes=row[0], request=request)
    tx.event("lease", person=person.id, item=row[1], until=tx.now + seconds)
    return int(row[1])


def undoable(tx: Transaction, person: Person) -> tuple[int, int] | None:
    """The event and the item of the last label, skip or opinion of the person in the open round that still stands."""
    if rounds.open_now(tx) is None:
        return None
    since = tx.one("SELECT MAX(id) FROM events WHERE kind = 'open'")[0]
    rows = [
        tx.one(
            "SELECT e.id, e.item FROM events e JOIN state s ON s.item = e.item WHERE e.kind = ? AND e.person = ? "
            "AND e.id > ? AND (e.kind = 'opinion' OR s.answer = e.id) "
            "AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id) ORDER BY e.id DESC LIMIT 1",
            *(kind, person.id, since),
        )
        for kind in ("label", "skip", "opinion")
    ]
    return max(((int(id), int(item)) for id, item in filter(None, rows)), default=None)


def answers(tx: Transaction, items: Iterable[int] | None = None) -> list[Answer]:
    """The present answer for each item, by item."""
    final = counts_as(classes.every(tx))
    wanted = None if items is None else set(items)
    rows = tx.all(
        "SELECT a.item, class, person, time, id FROM picks p JOIN answers a ON a.item = p.item ORDER BY p.item"
    )
    return [
        Answer(item, None if id is None else final[id], *rest)
        for item, id, *rest in rows
        if wanted is None or item in wanted
    ]


def history(tx: Transaction, item: int) -> list[LabelEvent]:
    """Everything that ever happened to an item, first to last."""
    rows = tx.all("SELECT id, time, kind, person, item, class, text FROM events WHERE item = ? ORDER BY id", item)
    return [LabelEvent(*row) for row in rows]


def comments(tx: Transaction) -> list[LabelEvent]:
    """Every comment and every flag, first to last."""
    rows = tx.all(
        "SELECT id, time, kind, person, item, class, text FROM events WHERE kind IN ('comment', 'flag') ORDER BY id"
    )
    return [LabelEvent(*row) for row in rows]


def requests(tx: Transaction, prefix: str) -> dict[str, LabelEvent]:
    """The events of the requests that begin with `prefix`, first to last."""
    rows = tx.all(
        "SELECT request, id, time, kind, person, item, class, text FROM events "
        "WHERE request >= ? AND request < ? ORDER BY id",
        *(prefix, prefix + chr(0x10FFFF)),
    )
    return {request: LabelEvent(*row) for request, *row in rows}


def check_request(request: str) -> None:
    """Check the name that a client has made up for a request."""
    if not 1 <= len(request) <= LONGEST_REQUEST:
        raise InputError(
            f"a request is named by 1 to {LONGEST_REQUEST} characters; make one up for each, such as a UUID."
        )


def _earlier(tx: Transaction, kinds: Sequence[str], person: Person, request: str) -> Any:
    """The event that the same request made before, if it did: its response may have been lost on the way."""
    check_request(request)
    row = tx.one("SELECT id, item, class, kind, person FROM events WHERE request = ?", request)
    if row is not None and (row[3] not in kinds or row[4] != person.id):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return row


def _same(earlier: Any, item: int, class_id: int | None, request: str) -> int:
    if (earlier[1], earlier[2]) != (item, class_id):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return int(earlier[0])
