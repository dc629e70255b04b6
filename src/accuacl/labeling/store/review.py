"""Review of answers: every item that was ever offered, corrected labels, disputes and the decisions that settle them,
comments, flags, and the work of each person.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store.classes import STANDS, check_class, classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.labels import LONGEST_COMMENT, add_correction, check_bytes, earlier_event, guesses_shown
from accuacl.labeling.store.leases import check_count
from accuacl.labeling.store.opinions import DECISION, gold, unsettled
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import (
    AnswerEvent,
    Dispute,
    LabelEvent,
    Person,
    Relabelled,
    Reviewed,
    Work,
    check_request,
    check_text,
    counts_as,
)
from accuacl.labeling.store.rounds import PICK, is_closed, is_sealed, to_pick

MOST = 500  # the most items that one request may change
PAUSE = 120.0  # seconds: a longer gap between two answers counts as a break, not as time spent on an item


def everything(tx: Transaction) -> list[Reviewed]:
    """Return all items that were ever offered, in that order, each with its present answer if it has one."""
    final = counts_as(classes(tx))
    comments: dict[int, list[str]] = {}
    for item, text in tx.rows(
        "SELECT item, text FROM events WHERE kind IN ('comment', 'flag') AND text != '' ORDER BY id"
    ):
        comments.setdefault(item, []).append(text)
    said: dict[int, dict[int, int]] = {}  # {item: {person: their last label}}
    for item, person, label in tx.rows(
        "SELECT e.item, e.person, e.class FROM events e WHERE e.kind IN ('label', 'opinion', 'correct') "
        f"AND e.class IS NOT NULL AND {STANDS} ORDER BY e.id"
    ):
        said.setdefault(item, {})[person] = final[label]
    reasons: dict[int, list[str]] = {}
    for item, text in tx.rows(
        "SELECT e.item, e.text FROM events e WHERE e.kind IN ('skip', 'opinion') AND e.class IS NULL AND e.text != '' "
        f"AND {STANDS} ORDER BY e.id"
    ):
        reasons.setdefault(item, []).append(text)
    shown, to_settle, known, flags = guesses_shown(tx), unsettled(tx), gold(tx), _flagged(tx)
    rows = tx.rows(
        "SELECT s.item, s.task, s.round, e.class, s.answer IS NOT NULL, e.person, e.time, p.guess, p.confidence "
        "FROM state s JOIN picks p ON p.item = s.item LEFT JOIN events e ON e.id = s.answer "
        "ORDER BY s.task, s.round, s.rank"
    )
    return [
        Reviewed(
            item=item,
            task=task,
            round=round,
            class_id=None if label is None else final[label],
            answered=bool(answered),
            person=person,
            time=time,
            guess=None if guess is None else final[guess],
            comments=tuple(comments.get(item, ())),
            disputed=len(set(said.get(item, {}).values())) > 1,
            shown=final[shown[item]] if item in shown else None,
            unsettled=item in to_settle,
            gold=item in known,
            flagged=item in flags,
            confidence=confidence,
            disagreement=_disagreement(list(said.get(item, {}).values())),
            reasons=tuple(reasons.get(item, ())),
        )
        for item, task, round, label, answered, person, time, guess, confidence in rows
    ]


def every_answer(tx: Transaction, item: int | None = None) -> list[AnswerEvent]:
    """Return every answer that was ever given, to one item or to all, the oldest first."""
    final = counts_as(classes(tx))
    leased: dict[tuple[int, int], float] = {}
    shown: dict[tuple[int, int], int] = {}
    events = []
    condition, which = ("", ()) if item is None else ("AND item = ?", (item,))
    for kind, item, label, person, time, text, undone in tx.rows(
        "SELECT kind, item, class, person, time, text, EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id) "
        "FROM events e WHERE kind IN ('label', 'skip', 'opinion', 'correct', 'lease', 'release', 'guess') "
        f"{condition} ORDER BY id",
        *which,
    ):
        if kind == "lease":
            leased[item, person] = time
        elif kind == "release":
            leased.pop((item, person), None)
        elif kind == "guess":
            shown[item, person] = label
        else:
            since, class_id = leased.pop((item, person), None), None if label is None else final[label]
            seconds = None if since is None or kind == "correct" else time - since
            said: Any = "decision" if text == DECISION else kind
            guess = shown.get((item, person))
            reason = text if class_id is None else None
            events.append(AnswerEvent(said, item, class_id, person, time, seconds, guess, bool(undone), reason))
    return events


def history(tx: Transaction, item: int) -> list[LabelEvent]:
    """Return all events of an item, the oldest first."""
    rows = tx.rows("SELECT id, time, kind, person, item, class, text FROM events WHERE item = ? ORDER BY id", item)
    return [LabelEvent(*row) for row in rows]


# Corrected labels


def relabel(
    tx: Transaction, person: Person, items: Sequence[int], class_id: int, request: str, own: bool = False
) -> int:
    """Give items another label; return how many. Skipped items may be relabelled, and unanswered ones of closed rounds.

    own: refuse it unless the present answers are all the person's own. Sending the same request again changes nothing.
    """
    check_access(tx, person)
    check_class(tx, class_id)
    check_count(items, MOST)
    if earlier_event(tx, ("correct",), person, items[0], class_id, f"{request}/0") is not None:
        return 0
    distinct = list(dict.fromkeys(items))
    for i, item in enumerate(distinct):
        row = tx.row("SELECT task, round, answer FROM state WHERE item = ?", item)
        if row is None:
            raise InputError(f"item {item} has not been picked; label one that has.")
        if row[2] is None and not is_closed(tx, row[0], row[1]):
            raise InputError(f"item {item} is still to be labelled in this round; label it on the page for that.")
        if is_sealed(tx, item):
            raise InputError(
                f"the task of item {item} has ended and its examples were not kept, so the model cannot relearn it."
            )
        add_correction(tx, person, item, class_id, f"{request}/{i}", own)
    return len(distinct)


def last_relabel(tx: Transaction, person: Person) -> Relabelled | None:
    """Return the person's last relabelling; None if it was undone or one of its items has been changed since."""
    latest = (
        "SELECT e.request FROM events e WHERE e.kind = 'correct' AND e.person = ? AND e.request LIKE '%/0' "
        f"AND {STANDS} ORDER BY e.id DESC LIMIT 1"
    )
    row = tx.row(latest, person.id)
    if row is None:
        return None
    request = row[0].removesuffix("/0")
    had_label = (
        "(SELECT b.class FROM standing b WHERE b.item = e.item AND b.id < e.id ORDER BY b.id DESC LIMIT 1) IS NOT NULL"
    )
    rows = tx.rows(
        f"SELECT e.id, e.item, e.class, s.answer = e.id, {had_label}, s.task, s.round FROM events e "
        "JOIN state s ON s.item = e.item WHERE e.request >= ? AND e.request < ? AND e.kind = 'correct' "
        f"AND e.person = ? AND {STANDS} ORDER BY e.id",
        *(f"{request}/", f"{request}0", person.id),  # the range of all "request/...", as "0" comes right after "/"
    )
    if not all(stands for *_, stands, _, _, _ in rows) or any(is_sealed(tx, row[1]) for row in rows):
        return None
    undone = {
        event: item
        for event, item, _, _, had_label, task, round in rows
        # In a closed round, an item without an earlier label keeps this one: the model may have learned it.
        if had_label or not is_closed(tx, task, round)
    }
    final = counts_as(classes(tx))
    return Relabelled(request, final[rows[0][2]], undone, len(rows) - len(undone)) if undone else None


def undo_relabel(tx: Transaction, person: Person, batch: str, request: str) -> int:
    """Undo the person's last relabelling, whose request was `batch`; return how many items have their old answer again.

    Sending the same request again changes nothing.
    """
    check_access(tx, person)
    check_request(request)
    if tx.row("SELECT 1 FROM events WHERE kind = 'undo' AND person = ? AND request = ?", person.id, f"{request}/0"):
        return 0
    last = last_relabel(tx, person)
    if last is None or last.request != batch:
        raise InputError("these labels have since been changed or undone; reload them.")
    for i, (event, item) in enumerate(last.undone.items()):
        tx.event("undo", person=person.id, item=item, undoes=event, request=f"{request}/{i}")
    return len(last.undone)


# What people disagree about, and the decisions of leads that settle it


def disputes(tx: Transaction, most: int, first: int | None = None) -> list[Dispute]:
    """Return up to `most` disputed items that nobody has settled, in the order in which they were offered.

    If the item `first` is one of them, it comes first.
    """
    waiting = unsettled(tx)
    rows = tx.rows("SELECT item FROM state WHERE opinions > 0 ORDER BY task, round, rank")
    items = [item for (item,) in rows if item in waiting]
    items.sort(key=lambda item: item != first)
    known = gold(tx)
    return [_dispute(tx, item, known.get(item)) for item in items[:most]]


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


def decide(tx: Transaction, person: Person, item: int, class_id: int, request: str) -> None:
    """Settle a dispute by a correction that makes the class the item's label; `undo_relabel` can undo it.

    Sending the same request again changes nothing.
    """
    check_access(tx, person)
    check_class(tx, class_id)
    if earlier_event(tx, ("correct",), person, item, class_id, f"{request}/0") is not None:
        return
    if item not in unsettled(tx):
        raise InputError(f"item {item} is no longer disputed: somebody has settled it, or people agree now.")
    add_correction(tx, person, item, class_id, f"{request}/0", own=False, text=DECISION)


# Comments, and flags, which ask a lead to look at an item


def comment(tx: Transaction, person: Person, items: Sequence[int], text: str, request: str) -> None:
    """Add a comment to items; sending the same request again adds nothing."""
    check_access(tx, person)
    check_count(items, MOST)
    text = check_text(text, "a comment", LONGEST_COMMENT)
    if earlier_event(tx, ("comment",), person, items[0], None, f"{request}/0") is not None:
        return
    distinct = list(dict.fromkeys(items))
    check_bytes(tx, person, text, len(distinct))
    for i, item in enumerate(distinct):
        if tx.row("SELECT 1 FROM state WHERE item = ?", item) is None:
            raise InputError(f"item {item} has not been picked; comment on one that has.")
        tx.event("comment", person=person.id, item=item, text=text, request=f"{request}/{i}")


def comments(tx: Transaction) -> list[LabelEvent]:
    """Return every comment and every flag, the oldest first."""
    rows = tx.rows(
        "SELECT id, time, kind, person, item, class, text FROM events WHERE kind IN ('comment', 'flag') ORDER BY id"
    )
    return [LabelEvent(*row) for row in rows]


def flag(tx: Transaction, person: Person, item: int, reason: str, request: str) -> None:
    """Ask a lead to look at an item that was picked; sending the same request again adds nothing."""
    check_access(tx, person)
    reason = check_text(reason, "a reason", LONGEST_COMMENT, least=0)
    if earlier_event(tx, ("flag",), person, item, None, request) is not None:
        return
    if tx.row("SELECT 1 FROM state WHERE item = ?", item) is None:
        raise InputError(f"item {item} has not been picked; flag one that has.")
    check_bytes(tx, person, reason)
    tx.event("flag", person=person.id, item=item, text=reason, request=request)


def unflag(tx: Transaction, person: Person, items: Sequence[int]) -> int:
    """Remove the flags of items; return how many had one."""
    check_access(tx, person)
    flagged = sorted(_flagged(tx).intersection(items))
    for item in flagged:
        tx.event("unflag", person=person.id, item=item)
    return len(flagged)


# What each person has done


def work(tx: Transaction) -> dict[int, Work]:
    """Return how much each person has done, how fast, and how far others agree; idle people are left out."""
    times: dict[int, list[float]] = {}
    counts: dict[tuple[int, str], int] = {}
    said: dict[int, dict[int, int]] = {}  # {item: {person: their last label}}
    alone: dict[int, dict[int, int]] = {}  # as `said`, without corrections, which are made knowing the label
    first: dict[int, int] = {}
    corrected: dict[int, int] = {}
    for answer in every_answer(tx):
        person, item, label = answer.person, answer.item, answer.class_id
        if answer.undone or person is None:
            continue
        times.setdefault(person, []).append(answer.time)
        counts[person, answer.kind] = counts.get((person, answer.kind), 0) + 1
        if label is None:
            continue
        owner = first.setdefault(item, person)
        if answer.kind not in ("correct", "decision"):
            alone.setdefault(item, {})[person] = label
        elif owner != person and said.get(item, {}).get(owner) not in (None, label):
            corrected[owner] = corrected.get(owner, 0) + 1
        said.setdefault(item, {})[person] = label
    compared, agreed = _agreement(alone)
    return {
        person: Work(
            labels=counts.get((person, "label"), 0) + counts.get((person, "opinion"), 0),
            skips=counts.get((person, "skip"), 0),
            seconds=_pace(answered),
            compared=compared.get(person, 0),
            agreed=agreed.get(person, 0),
            corrected=corrected.get(person, 0),
            last=answered[-1],
        )
        for person, answered in times.items()
    }


def _disagreement(labels: list[int]) -> float:
    """Return the share of labels that are not the most frequent one."""
    return 1 - max(map(labels.count, labels)) / len(labels) if labels else 0.0


def _pace(times: list[float]) -> float | None:
    """Return the median number of seconds between two answers, breaks left out; None if there is no such gap."""
    gaps = [later - earlier for earlier, later in pairwise(times) if later - earlier <= PAUSE]
    return median(gaps) if gaps else None


def _agreement(labels: dict[int, dict[int, int]]) -> tuple[dict[int, int], dict[int, int]]:
    """Return two counts by person: the comparisons of their labels with other people's, and how many of them agree."""
    compared: dict[int, int] = {}
    agreed: dict[int, int] = {}
    for by_person in labels.values():
        for person, label in by_person.items():
            others = [other for who, other in by_person.items() if who != person]
            compared[person] = compared.get(person, 0) + len(others)
            agreed[person] = agreed.get(person, 0) + others.count(label)
    return compared, agreed


def _flagged(tx: Transaction) -> set[int]:
    """Return the items with a flag that nobody has removed."""
    rows = tx.rows("SELECT kind, item FROM events WHERE kind IN ('flag', 'unflag') ORDER BY id")
    last = {item: kind for kind, item in rows}
    return {item for item, kind in last.items() if kind == "flag"}
