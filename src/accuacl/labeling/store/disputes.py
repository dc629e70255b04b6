"""Disputes: items on which people disagree, and the decisions of leads that settle them.

A decision is a correction: it is the item's label from then on, and `undo_relabel` takes it back.
"""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store.classes import check_class
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.labels import add_correction
from accuacl.labeling.store.opinions import DECISION, gold, unsettled
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import AnswerEvent, Dispute, Person
from accuacl.labeling.store.review import every_answer, repeated
from accuacl.labeling.store.rounds import PICK, to_pick


def disputes(tx: Transaction, most: int, first: int | None = None) -> list[Dispute]:
    """The items that are to be settled, `most` of them: the item `first` if it is one, then in the order in which they
    were offered.
    """
    waiting = unsettled(tx)
    rows = tx.rows("SELECT item FROM state WHERE opinions > 0 ORDER BY task, round, rank")
    items = [item for (item,) in rows if item in waiting]
    items.sort(key=lambda item: item != first)
    known = gold(tx)
    return [_dispute(tx, item, known.get(item)) for item in items[:most]]


def decide(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> None:
    """Settle a dispute: the class is the item's label. The same request again changes nothing."""
    check_access(tx, person)
    check_class(tx, class_id)
    if repeated(tx, "correct", person, item, class_id, request):
        return
    if item not in unsettled(tx):
        raise InputError(f"item {item} is not disputed any more: somebody has settled it, or people agree now.")
    add_correction(tx, person, item, class_id, f"{request}/0", own=False, text=DECISION)


def _dispute(tx: Transaction, item: int, known: int | None) -> Dispute:
    last: dict[int | None, AnswerEvent] = {}
    for answer in every_answer(tx, item):
        if not answer.undone:
            last.pop(answer.person, None)
            last[answer.person] = answer
    row = tx.row(f"SELECT {PICK} FROM picks p WHERE p.item = ?", item)
    said = tx.rows(
        "SELECT text FROM events WHERE item = ? AND kind IN ('comment', 'flag') AND text != '' ORDER BY id", item
    )
    return Dispute(to_pick(row), tuple(last.values()), known, tuple(text for (text,) in said))
