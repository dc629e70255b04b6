"""Looking over what people answered: every item that was ever offered, labels given anew, and comments."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.base.errors import InputError
from accuacl.labeling.store import batches, classes, flags, opinions, people, rounds
from accuacl.labeling.store.answers import check_request, correction
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Reviewed, counts_as
from accuacl.labeling.store.wording import check_text

LONGEST_COMMENT = 1000
MOST = 500  # items that are changed together


def relabel(
    tx: Transaction, person: Person, items: Sequence[int], class_id: int, request: str, own: bool = False
) -> int:
    """Give items another label, skipped ones too, and ones that their round was closed without; how many changed.

    own: only those that the person has answered. The same request again changes nothing.
    """
    people.check(tx, person)
    classes.check(tx, class_id)
    _check_items(items)
    if _repeated(tx, "correct", person, items[0], class_id, request):
        return 0
    changed = 0
    for i, item in enumerate(dict.fromkeys(items)):
        row = tx.one("SELECT task, round, answer FROM state WHERE item = ?", item)
        if row is None:
            raise InputError(f"item {item} has not been picked; label one that has.")
        if row[2] is None and not rounds.is_closed(tx, row[0], row[1]):
            raise InputError(f"item {item} is still to be labelled in this round; label it on the page for that.")
        if rounds.sealed(tx, item):
            raise InputError(
                f"the task of item {item} has ended, and nothing is kept of its examples to learn it anew."
            )
        correction(tx, person, item, class_id, f"{request}/{i}", own)
        changed += 1
    return changed


def comment(tx: Transaction, person: Person, items: Sequence[int], text: str, request: str) -> None:
    """Write a comment to items; the same request again adds nothing."""
    people.check(tx, person)
    _check_items(items)
    text = check_text(text, "a comment", LONGEST_COMMENT)
    if _repeated(tx, "comment", person, items[0], None, request):
        return
    for i, item in enumerate(dict.fromkeys(items)):
        if tx.one("SELECT 1 FROM state WHERE item = ?", item) is None:
            raise InputError(f"item {item} has not been picked; comment on one that has.")
        tx.event("comment", person=person.id, item=item, text=text, request=f"{request}/{i}")


def everything(tx: Transaction) -> list[Reviewed]:
    """All items that were ever offered, answered or not, in the order in which they were."""
    final = counts_as(classes.every(tx))
    comments: dict[int, list[str]] = {}
    for item, text in tx.all(
        "SELECT item, text FROM events WHERE kind IN ('comment', 'flag') AND text != '' ORDER BY id"
    ):
        comments.setdefault(item, []).append(text)
    flagged = flags.flagged(tx)
    said: dict[int, dict[int, int]] = {}
    people_of = (
        "SELECT e.item, e.person, e.class FROM events e WHERE e.kind IN ('label', 'opinion', 'correct') "
        f"AND e.class IS NOT NULL AND {classes.STANDS} ORDER BY e.id"
    )
    for item, person, label in tx.all(people_of):
        said.setdefault(item, {})[person] = final[label]
    shown, unsettled, gold = batches.shown(tx), opinions.unsettled(tx), opinions.gold(tx)
    rows = tx.all(
        "SELECT s.item, s.task, s.round, e.class, s.answer IS NOT NULL, e.person, e.time, p.guess "
        "FROM state s JOIN picks p ON p.item = s.item LEFT JOIN events e ON e.id = s.answer "
        "ORDER BY s.task, s.round, s.rank"
    )
    return [
        Reviewed(
            item,
            task,
            round,
            None if label is None else final[label],
            bool(answered),
            person,
            time,
            None if guess is None else final[guess],
            tuple(comments.get(item, ())),
            len(set(said.get(item, {}).values())) > 1,
            final[shown[item]] if item in shown else None,
            item in unsettled,
            item in gold,
            flagged=item in flagged,
        )
        for item, task, round, label, answered, person, time, guess in rows
    ]


def _check_items(items: Sequence[int]) -> None:
    if not 1 <= len(items) <= MOST:
        raise InputError(f"{len(items)} items were given; give 1 to {MOST}.")


def _repeated(tx: Transaction, kind: str, person: Person, item: int, class_id: int | None, request: str) -> bool:
    """Whether the same request came before: its response may have been lost on the way."""
    check_request(request)
    row = tx.one("SELECT kind, person, item, class FROM events WHERE request = ?", f"{request}/0")
    if row is not None and row != (kind, person.id, item, class_id):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return row is not None
