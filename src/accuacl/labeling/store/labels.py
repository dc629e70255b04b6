"""What people answer: labels, skips, corrections, undos, one by one or in batches.

Each answer is an event; the last one that has not been undone counts. A label or a skip ends the lease of its item. The
triggers of `schema` keep both, in the transaction of the event. The client makes up the id `request`: a request sent
again, because its response was lost, returns the same and adds nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store.classes import STANDS, check_class, classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.leases import (
    LEASE,
    NOTHING,
    Expected,
    ahead,
    can_be_given,
    check_answerable,
    check_count,
    lease,
)
from accuacl.labeling.store.opinions import OWN, asks_twice
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import (
    Act,
    Answer,
    BatchDone,
    LabelEvent,
    OwnAnswers,
    Person,
    Pick,
    Turn,
    check_request,
    check_text,
    counts_as,
    used_before,
)
from accuacl.labeling.store.rounds import PICK, is_sealed, open_now, status, to_pick

LONGEST_COMMENT = 1000  # characters of a comment, or of the reason of a flag or skip
MOST_BYTES = 1 << 20  # the most bytes of a person's comments and reasons; a comment counts once for each item
AHEAD = 3  # items that a page is told of before they are leased, so that it can load them


def turn(tx: Transaction, person: Person, act: Act | None = None, expected: Expected = NOTHING) -> Turn:
    """Record the person's act, if there is one, and lease them the next item."""
    done = None
    if act is not None and act.kind == "label":
        done = label(tx, person, act.item, act.class_id, act.request)
    elif act is not None and act.kind == "skip":
        done = skip(tx, person, act.item, act.request, act.reason)
    elif act is not None:
        done = undo(tx, person, act.request)
    pick = lease(tx, person, expected=expected)
    return replace(look(tx, person), done=done, pick=pick, ahead=ahead(tx, person, AHEAD, expected))


def look(tx: Transaction, person: Person) -> Turn:
    """Return what `turn` would return, without doing or leasing anything."""
    now = status(tx)
    return Turn(
        done=None,
        pick=None,
        ahead=[],
        status=now,
        free=now is not None and now.open and (now.left > now.leased or can_be_given(tx, person)),
        classes=classes(tx),
        undo=_undoable(tx, person) is not None,
        own=own_answers(tx, person),
        asks_twice=asks_twice(tx),
    )


def label(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> int:
    """Label an item of the open round, or give an opinion about one that has a label; return the event's id."""
    earlier = earlier_event(tx, ("label", "opinion"), person, item, class_id, request)
    if earlier is not None:
        return earlier
    check_access(tx, person)
    check_class(tx, class_id)
    kind = "opinion" if check_answerable(tx, person, item) else "label"
    return tx.event(kind, person=person.id, item=item, class_id=class_id, request=request)


def skip(tx: Transaction, person: Person, item: int, request: str, reason: str = "") -> int:
    """Skip an item of the open round that cannot be labelled, with an optional reason; return the event's id."""
    earlier = earlier_event(tx, ("skip", "opinion"), person, item, None, request)
    if earlier is not None:
        return earlier
    check_access(tx, person)
    reason = check_text(reason, "a reason", LONGEST_COMMENT, least=0)
    check_bytes(tx, person, reason)
    kind = "opinion" if check_answerable(tx, person, item) else "skip"
    return tx.event(kind, person=person.id, item=item, request=request, text=reason or None)


def correct(tx: Transaction, person: Person, item: int, class_id: int, request: str, own: bool = False) -> int:
    """Change the label of an item that has one, in any round, open or closed; return the event's id.

    own: refuse it unless the present label is the person's own.
    """
    earlier = earlier_event(tx, ("correct",), person, item, class_id, request)
    if earlier is not None:
        return earlier
    check_access(tx, person)
    check_class(tx, class_id)
    if tx.row("SELECT 1 FROM answers WHERE item = ? AND class IS NOT NULL", item) is None:
        raise InputError(f"item {item} has no label to correct; label it first.")
    if is_sealed(tx, item):
        raise InputError(f"item {item} is of a finished task, of which only sums are kept; its label has to stay.")
    return add_correction(tx, person, item, class_id, request, own)


def add_correction(
    tx: Transaction, person: Person, item: int, class_id: int, request: str, own: bool, text: str | None = None
) -> int:
    """Record a correction of an item's label and return the event's id.

    own: refuse it unless the present answer is the person's own; such a correction settles no dispute. text: `DECISION`
    if the correction is made to settle one.
    """
    if own:
        answer = tx.row("SELECT person FROM answers WHERE item = ?", item)
        if answer is None or answer[0] != person.id:
            raise InputError(f"item {item} was not answered by you; only a lead may change it.")
        text = OWN
    return tx.event("correct", person=person.id, item=item, class_id=class_id, request=request, text=text)


def undo(tx: Transaction, person: Person, request: str, seconds: float = LEASE) -> int | None:
    """Undo the person's last label or skip in the open round, lease them the item again, and return it, or None.

    What has been corrected since stays. Repeated, it goes back to the beginning of the round.
    """
    check_request(request)
    earlier = tx.row("SELECT kind, person, item FROM events WHERE request = ?", request)
    if earlier is not None:
        if earlier[:2] != ("undo", person.id):
            raise used_before(request)
        return int(earlier[2])
    check_access(tx, person)
    last = _undoable(tx, person)
    if last is None:
        return None
    event, item = last
    tx.event("undo", person=person.id, item=item, undoes=event, request=request)
    tx.event("lease", person=person.id, item=item, until=tx.now + seconds)
    return item


# Batches: many items at once, with the model's guesses


def label_batch(tx: Transaction, person: Person, labels: Mapping[int, int], request: str) -> BatchDone:
    """Label items of the open round, {item: class}. What cannot be labelled is refused; the rest is labelled.

    The person is recorded as having seen the guesses. The same request again gives the same, and labels nothing twice.
    """
    show_guesses(tx, person, list(labels))
    saved, refused = [], {}
    for i, (item, class_id) in enumerate(labels.items()):
        try:
            label(tx, person, item, class_id, f"{request}/{i}")
            saved.append(item)
        except InputError as error:
            refused[item] = str(error)
    return BatchDone(saved, refused)


def undo_batch(tx: Transaction, person: Person, batch: str, request: str) -> list[int]:
    """Undo the labels of the person's request `batch` that still stand, lease the items again, and return them."""
    check_access(tx, person)
    check_request(request)
    current = open_now(tx)
    if current is None:
        return []
    rows = tx.rows(
        "SELECT e.id, e.item FROM given e JOIN state s ON s.item = e.item WHERE e.request >= ? AND e.request < ? "
        "AND (e.kind = 'opinion' OR s.answer = e.id) AND e.person = ? AND s.task = ? AND s.round = ? ORDER BY e.id",
        *(f"{batch}/", f"{batch}0", person.id, *current),  # the range of all "batch/...", as "0" comes right after "/"
    )
    for i, (event, item) in enumerate(rows):
        tx.event("undo", person=person.id, item=item, undoes=event, request=f"{request}/{i}")
        tx.event("lease", person=person.id, item=item, until=tx.now + LEASE)
    return [item for _, item in rows]


def show_guess(tx: Transaction, person: Person, pick: Pick) -> None:
    """Record, once, that the person has been shown the model's guess for an item."""
    before = "SELECT class FROM events WHERE item = ? AND kind = 'guess' AND person = ? ORDER BY id DESC LIMIT 1"
    if pick.guess is not None and tx.row(before, pick.item, person.id) != (pick.guess,):
        tx.event("guess", person=person.id, item=pick.item, class_id=pick.guess)


def show_guesses(tx: Transaction, person: Person, items: Sequence[int]) -> None:
    """Record the guesses that the person was shown, for the items that they hold or held until somebody took them."""
    check_access(tx, person)
    check_count(items)
    leased = "EXISTS (SELECT 1 FROM events e WHERE e.item = p.item AND e.kind = 'lease' AND e.person = ?)"
    for item in items:
        row = tx.row(f"SELECT {PICK} FROM picks p WHERE p.item = ? AND {leased}", item, person.id)
        if row is not None:
            show_guess(tx, person, to_pick(row))


def guesses_shown(tx: Transaction) -> dict[int, int]:
    """Return {item: the class of the guess that the person who gave its present answer had seen before}."""
    rows = tx.rows(
        "SELECT g.item, g.class FROM events g JOIN state s ON s.item = g.item JOIN events a ON a.id = s.answer "
        "WHERE g.kind = 'guess' AND g.person = a.person AND g.id < a.id ORDER BY g.id"
    )
    return dict(rows)


# What counts now


def own_answers(tx: Transaction, person: Person) -> OwnAnswers:
    """Return how many items of the open round the person has labelled and skipped, second opinions included."""
    since = tx.row("SELECT COALESCE(MAX(id), 0) FROM events WHERE kind = 'open'")[0]
    total, skipped = tx.row(
        "SELECT COUNT(*), COALESCE(SUM(class IS NULL), 0) FROM events e "
        f"WHERE kind IN ('label', 'skip', 'opinion') AND person = ? AND id > ? AND {STANDS}",
        *(person.id, since),
    )
    return OwnAnswers(total - skipped, skipped)


def answers(tx: Transaction, items: Iterable[int] | None = None) -> list[Answer]:
    """Return the answers that count now, by item, with merges applied; `items` None: of all items."""
    final = counts_as(classes(tx))
    wanted = None if items is None else set(items)
    rows = tx.rows(
        "SELECT a.item, class, person, time, id FROM picks p JOIN answers a ON a.item = p.item ORDER BY p.item"
    )
    return [
        Answer(item, None if id is None else final[id], *rest)
        for item, id, *rest in rows
        if wanted is None or item in wanted
    ]


def labels(tx: Transaction, items: Iterable[int] | None = None) -> dict[int, int]:
    """Return {item: its present class, merges applied} for each labelled item."""
    return {answer.item: answer.class_id for answer in answers(tx, items) if answer.class_id is not None}


def counts_by_class(tx: Transaction) -> dict[int, int]:
    """Return how many items have each class."""
    return dict(sorted(Counter(labels(tx).values()).items()))


def counts_by_person(tx: Transaction) -> dict[int, int]:
    """Return how many of the present labels each person gave."""
    given = [answer.person for answer in answers(tx) if answer.class_id is not None and answer.person is not None]
    return dict(sorted(Counter(given).items()))


def requests(tx: Transaction, prefix: str) -> dict[str, LabelEvent]:
    """Return {request: its event} for the requests whose ids begin with `prefix`, the oldest first."""
    rows = tx.rows(
        "SELECT request, id, time, kind, person, item, class, text FROM events "
        "WHERE request >= ? AND request < ? ORDER BY id",
        *(prefix, prefix + chr(0x10FFFF)),
    )
    return {request: LabelEvent(*row) for request, *row in rows}


def latest_change(tx: Transaction) -> int:
    """Return the id of the latest event other than leases and guesses; it changes whenever the project does."""
    minor = "('lease', 'renew', 'release', 'guess')"
    row = tx.row(f"SELECT id FROM events WHERE kind NOT IN {minor} ORDER BY id DESC LIMIT 1")
    return 0 if row is None else int(row[0])


def check_bytes(tx: Transaction, person: Person, text: str, times: int = 1) -> None:
    """Refuse a text if the person's comments and reasons would exceed MOST_BYTES; they are all kept, and shown."""
    if not text:
        return
    written = tx.row(
        "SELECT COALESCE(SUM(LENGTH(CAST(text AS BLOB))), 0) FROM events "
        "WHERE kind IN ('comment', 'flag', 'skip', 'opinion') AND person = ?",
        person.id,
    )[0]
    if written + times * len(text.encode()) > MOST_BYTES:
        raise InputError(
            f"your comments have {written:,} bytes already, and may have {MOST_BYTES:,} in all; write a shorter one to "
            "fewer examples."
        )


def earlier_event(
    tx: Transaction, kinds: Sequence[str], person: Person, item: int, class_id: int | None, request: str
) -> int | None:
    """Return the event that this request made before, or None if it is new; refuse one that did something else."""
    check_request(request)
    row = tx.row("SELECT id, kind, person, item, class FROM events WHERE request = ?", request)
    if row is None:
        return None
    event, kind, *rest = row
    if kind not in kinds or rest != [person.id, item, class_id]:
        raise used_before(request)
    return int(event)


def _undoable(tx: Transaction, person: Person) -> tuple[int, int] | None:
    """Return event and item of the person's last label, skip or opinion in the open round that still counts."""
    if open_now(tx) is None:
        return None
    since = tx.row("SELECT MAX(id) FROM events WHERE kind = 'open'")[0]
    rows: list[Any] = [
        tx.row(
            "SELECT e.id, e.item FROM events e JOIN state s ON s.item = e.item WHERE e.kind = ? AND e.person = ? "
            "AND e.id > ? AND (e.kind = 'opinion' OR s.answer = e.id) "
            f"AND {STANDS} ORDER BY e.id DESC LIMIT 1",
            *(kind, person.id, since),
        )
        for kind in ("label", "skip", "opinion")
    ]
    return max(((int(id), int(item)) for id, item in filter(None, rows)), default=None)
