"""Looking over what people answered: every item that was ever offered, labels given anew, and comments."""

from __future__ import annotations

from collections.abc import Sequence

from accuacl.base.errors import InputError
from accuacl.labeling.store import batches, classes, flags, opinions, people, rounds
from accuacl.labeling.store.answers import check_request, correction
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, Relabelled, Reviewed, counts_as
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


def last_relabel(tx: Transaction, person: Person) -> Relabelled | None:
    """The last time that the person gave items another label, if it has not been undone and nobody has changed any of
    them since; None otherwise.
    """
    latest = (
        "SELECT e.request FROM events e WHERE e.kind = 'correct' AND e.person = ? AND e.request LIKE '%/0' "
        f"AND {classes.STANDS} ORDER BY e.id DESC LIMIT 1"
    )
    row = tx.one(latest, person.id)
    if row is None:
        return None
    request = row[0].removesuffix("/0")
    before = (
        "(SELECT b.class FROM standing b WHERE b.item = e.item AND b.id < e.id ORDER BY b.id DESC LIMIT 1) IS NOT NULL"
    )
    rows = tx.all(
        f"SELECT e.id, e.item, e.class, s.answer = e.id, {before}, s.task, s.round FROM events e "
        "JOIN state s ON s.item = e.item WHERE e.request >= ? AND e.request < ? AND e.kind = 'correct' "
        f"AND e.person = ? AND {classes.STANDS} ORDER BY e.id",
        *(f"{request}/", f"{request}0", person.id),  # "0" comes after "/"
    )
    if not all(stands for *_, stands, _, _, _ in rows) or any(rounds.sealed(tx, row[1]) for row in rows):
        return None
    undone = {
        event: item
        for event, item, _, _, had_label, task, round in rows
        if had_label or not rounds.is_closed(tx, task, round)  # the model may have learned it, and has nothing else
    }
    final = counts_as(classes.every(tx))
    return Relabelled(request, final[rows[0][2]], undone, len(rows) - len(undone)) if undone else None


def undo_relabel(tx: Transaction, person: Person, batch: str, request: str) -> int:
    """Undo the person's last relabelling, by its request; how many items have their earlier answer again."""
    people.check(tx, person)
    check_request(request)
    if tx.one("SELECT 1 FROM events WHERE kind = 'undo' AND person = ? AND request = ?", person.id, f"{request}/0"):
        return 0  # sent again
    last = last_relabel(tx, person)
    if last is None or last.request != batch:
        raise InputError("these labels have been changed since, or undone; look at them again.")
    for i, (event, item) in enumerate(last.undone.items()):
        tx.event("undo", person=person.id, item=item, undoes=event, request=f"{request}/{i}")
    return len(last.undone)


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
