"""Items that somebody wants a lead to look at. A flag stays until a lead takes it down."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.base.errors import InputError
from accuacl.labeling.store import people
from accuacl.labeling.store.answers import check_request
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person
from accuacl.labeling.store.wording import check_text

LONGEST_REASON = 1000


def flag(tx: Transaction, person: Person, item: int, reason: str, request: str) -> None:
    """Flag an item that was picked; the same request again adds nothing."""
    people.check(tx, person)
    check_request(request)
    reason = check_text(reason, "a reason", LONGEST_REASON, least=0)
    earlier = tx.one("SELECT kind, person, item FROM events WHERE request = ?", request)
    if earlier is None:
        if tx.one("SELECT 1 FROM state WHERE item = ?", item) is None:
            raise InputError(f"item {item} has not been picked; flag one that has.")
        tx.event("flag", person=person.id, item=item, text=reason, request=request)
    elif earlier != ("flag", person.id, item):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")


def unflag(tx: Transaction, person: Person, items: Sequence[int]) -> int:
    """Take down the flags of items; how many had one."""
    people.check(tx, person)
    taken = sorted(flagged(tx).intersection(items))
    for item in taken:
        tx.event("unflag", person=person.id, item=item)
    return len(taken)


def flagged(tx: Transaction) -> set[int]:
    """The items that have a flag."""
    rows = tx.all("SELECT kind, item FROM events WHERE kind IN ('flag', 'unflag') ORDER BY id")
    last = {item: kind for kind, item in rows}
    return {item for item, kind in last.items() if kind == "flag"}
