"""Rounds: a batch of picks that is open until each is labelled or skipped; then its labels are frozen.

Existing labels (given with the data, or in a file) join the latest round of their task as picks that are already
answered. Their ranks come after all others, so that what people were asked for, and the
budget, are counted without them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store.classes import check_class, classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import check_access, people
from accuacl.labeling.store.records import Person, Pick, Status, counts_as
from accuacl.labeling.store.schema import APPEND_ONLY

GIVEN = 1_000_000  # picks that only joined a round because their label was given are ranked from here on
ABSENT = 600.0  # seconds: a round stops waiting for the opinion of a person who has had no lease for this long
PICK = "p.item, p.rank, p.scores, p.guess, p.confidence"
NOT_OWN = (  # takes a person's id; true if that person has neither answered nor corrected the item
    "NOT EXISTS (SELECT 1 FROM events o WHERE o.item = s.item AND o.person = ? AND o.kind IN "
    "('label', 'opinion', 'correct') AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = o.id))"
)
# Takes a confidence twice; true if the pick has a guess at least as confident. With None twice it is always true.
GUESSED = "(? IS NULL OR (p.guess IS NOT NULL AND COALESCE(p.confidence, 1) >= ?))"
PENDING = (  # takes a task and a round; selects items that have a label and still lack a second opinion
    "FROM picks p INDEXED BY picks_of_several JOIN state s ON s.item = p.item WHERE p.task = ? AND p.round = ? "
    "AND p.people > 1 AND s.answer IS NOT NULL AND NOT s.skipped AND s.opinions < p.people - 1"
)


class RoundIncomplete(InputError):
    """A round cannot be closed yet: `left` of its `total` picks are neither labelled nor skipped."""

    def __init__(self, task: int, round: int, left: int, total: int) -> None:
        super().__init__(
            f"round {round + 1} of task {task + 1} is not complete: {left} of {total} are neither labelled nor skipped."
        )
        self.task, self.round, self.left, self.total = task, round, left, total


@dataclass(frozen=True)
class GivenLabel:
    """An existing label of an item, and who gave it."""

    item: int
    class_id: int
    person: Person


# Opening


def open_round(tx: Transaction, task: int, round: int, picks: Sequence[Pick], twice: Collection[int] = ()) -> None:
    """Offer the picks to people; each item in `twice` is offered to two people.

    Opening the same round again adds the picks that it does not have yet. Items whose labels have been given meanwhile
    are not offered.
    """
    exists = _exists(tx, task, round)
    of_round = "SELECT item FROM picks WHERE task = ? AND round = ? AND rank < ?"
    offered = {item for (item,) in tx.rows(of_round, task, round, GIVEN)}
    known = offered.union(unasked(tx, task))
    new = [pick for pick in picks if pick.item not in known]
    if not offered <= {pick.item for pick in picks} or (exists and new and is_closed(tx, task, round)):
        raise InputError(f"round {round + 1} of task {task + 1} was opened with other picks; open the next round.")
    items = json.dumps([pick.item for pick in new])
    taken = tx.row("SELECT item FROM picks WHERE item IN (SELECT value FROM json_each(?)) LIMIT 1", items)
    repeated = [item for item, count in Counter(pick.item for pick in picks).items() if count > 1]
    if taken or repeated:
        raise InputError(f"item {[*(taken or ()), *repeated][0]} is offered a second time; offer each item once.")
    if not exists:
        tx.execute("INSERT INTO rounds VALUES (?, ?)", task, round)
    rows = [
        (p.item, task, round, p.rank, json.dumps(p.scores), p.guess, p.confidence, 1 + (p.item in twice)) for p in new
    ]
    tx.insert("picks", rows)
    if not exists:
        tx.event("open", text=json.dumps([task, round]))


def begin_round(
    tx: Transaction, task: int, picks: Sequence[Pick], twice: Collection[int], labels: Iterable[GivenLabel]
) -> None:
    """Offer the first picks of a task, unless it has a round already; items whose label is given are not shown."""
    if picks and rounds(tx, task) == 0:
        open_round(tx, task, 0, picks, twice)
        give(tx, task, labels)


def give(tx: Transaction, task: int, labels: Iterable[GivenLabel]) -> int:
    """Add existing labels to items of a task that has a round; return how many labels are new.

    Items that have an answer keep it, and items that somebody is working on get no existing label. A task of which
    only sums are kept takes none.
    """
    latest = tx.row("SELECT MAX(round) FROM rounds WHERE task = ?", task)[0]
    if latest is None or _is_sealed(tx, task):
        return 0
    rank = int(tx.row("SELECT MAX(?, COALESCE(MAX(rank) + 1, 0)) FROM picks WHERE task = ?", GIVEN, task)[0])
    taken = 0
    for label in labels:
        request = f"given {label.item}"
        if tx.row("SELECT 1 FROM events WHERE request = ?", request):
            continue
        check_access(tx, label.person)
        check_class(tx, label.class_id)
        state = tx.row("SELECT answer, round, lease, until FROM state WHERE item = ?", label.item)
        kind = "label"
        if state is None:
            pick = "INSERT INTO picks (item, task, round, rank, scores) VALUES (?, ?, ?, ?, '{}')"
            tx.execute(pick, label.item, task, latest, rank)
            rank += 1
        else:
            answer, round, lease, until = state
            if answer is not None or (lease is not None and until > tx.now):
                continue
            if is_closed(tx, task, round):
                kind = "correct"
        tx.event(kind, person=label.person.id, item=label.item, class_id=label.class_id, request=request)
        taken += 1
    return taken


# State


def latest_round(tx: Transaction) -> tuple[int, int] | None:
    """Return the task and number of the latest round, open or closed; None before the first."""
    row = tx.row("SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1")
    return None if row is None else (row[0], row[1])


def open_now(tx: Transaction) -> tuple[int, int] | None:
    """Return the task and number of the round that is open; None if none is."""
    latest = latest_round(tx)
    return None if latest is None or is_closed(tx, *latest) else latest


def is_closed(tx: Transaction, task: int, round: int) -> bool:
    """Return whether the round has been closed."""
    return tx.row("SELECT 1 FROM closed WHERE task = ? AND round = ?", task, round) is not None


def status(tx: Transaction) -> Status | None:
    """Return the state of the latest round; None before the first."""
    latest = latest_round(tx)
    if latest is None:
        return None
    task, round = latest
    total, answered, skipped = _tally(tx, task, round)
    leased = tx.row(
        "SELECT COUNT(*) FROM state INDEXED BY state_leased WHERE lease IS NOT NULL AND answer IS NULL AND task = ? "
        "AND round = ? AND until > ?",
        *(task, round, tx.now),
    )[0]
    is_open = not is_closed(tx, task, round)
    opinions = _opinions_awaited(tx, task, round) if is_open and answered == total else 0
    return Status(task, round, total, answered - skipped, skipped, leased, is_open, opinions)


def rounds(tx: Transaction, task: int) -> int:
    """Return how many rounds of a task there have been."""
    return int(tx.row("SELECT COUNT(*) FROM rounds WHERE task = ?", task)[0])


def picks(tx: Transaction, task: int, round: int) -> list[Pick]:
    """Return the picks of the round that people were asked for, by rank."""
    rows = f"SELECT {PICK} FROM picks p WHERE task = ? AND round = ? AND rank < ? ORDER BY rank"
    return [to_pick(row) for row in tx.rows(rows, task, round, GIVEN)]


def to_pick(row: Any) -> Pick:
    """Make a pick of a row that was selected with the columns `PICK`."""
    item, rank, scores, guess, confidence = row
    return Pick(item, rank, json.loads(scores), guess, confidence)


def rounds_of_items(tx: Transaction) -> dict[int, int]:
    """Return the round, within its task, in which each item was picked."""
    return dict(tx.rows("SELECT item, round FROM picks"))


def unasked(tx: Transaction, task: int) -> list[int]:
    """Return the items of a task that nobody was asked for: their labels were given."""
    return [item for (item,) in tx.rows("SELECT item FROM picks WHERE task = ? AND rank >= ?", task, GIVEN)]


def skipped(tx: Transaction, task: int, round: int) -> list[int]:
    """Return the items of a round that people have skipped, by number."""
    rows = "SELECT item FROM state WHERE task = ? AND round = ? AND answer IS NOT NULL AND skipped ORDER BY item"
    return [item for (item,) in tx.rows(rows, task, round)]


def used(tx: Transaction, task: int) -> int:
    """Return how many picks of the task have a label that people were asked for."""
    return _used(tx, tx.rows("SELECT task, round FROM tally WHERE task = ?", task))


def used_elsewhere(tx: Transaction, task: int, round: int) -> int:
    """Return how many picks of all other rounds, of any task, have a label that people were asked for."""
    return _used(tx, tx.rows("SELECT task, round FROM tally WHERE task != ? OR round != ?", task, round))


def used_in_all(tx: Transaction) -> int:
    """Return how many picks of all tasks have a label that people were asked for."""
    return _used(tx, tx.rows("SELECT task, round FROM tally"))


def given(tx: Transaction) -> int:
    """Return how many items of all tasks have a label, whether somebody was asked for it or not."""
    return int(tx.row("SELECT COALESCE(SUM(answered - skipped), 0) FROM tally")[0])


# Closing


def complete(tx: Transaction, task: int, round: int, share: float = 1.0) -> bool:
    """Return whether the round can be closed.

    It can if each pick is labelled or skipped, by two people where two are asked; if a lead has ended the round or its
    task; or if this share of the picks is answered and nobody is working on another one.
    """
    if not _exists(tx, task, round):
        return False
    total, answered, _ = _tally(tx, task, round)
    if answered == total and _opinions_awaited(tx, task, round) == 0:
        return True
    if has_ended(tx, task, round) or has_ended(tx, task):
        return True
    if share == 1 or answered < max(1, math.ceil(share * total)):
        return False
    leased = "SELECT 1 FROM holders WHERE task = ? AND round = ? AND until > ?"
    return tx.row(leased, task, round, tx.now) is None


def enough(tx: Transaction, person: Person) -> None:
    """Let the open round be closed with the answers that it has; at least one is needed."""
    check_access(tx, person)
    current = open_now(tx)
    if current is None:
        raise InputError("no round is open; wait for the next one.")
    if tx.row("SELECT 1 FROM state WHERE task = ? AND round = ? AND answer IS NOT NULL", *current) is None:
        raise InputError("nothing of this round has been labelled yet; label something first.")
    tx.event("enough", person=person.id, text=json.dumps(current))


def end_task(tx: Transaction, person: Person, task: int) -> None:
    """Let the task that is being labelled end with the answers that it has; a second call changes nothing."""
    check_access(tx, person)
    latest = latest_round(tx)
    if latest is None or latest[0] != task:
        raise InputError(f"task {task + 1} is not the one that is being labelled; reload the page.")
    if not has_ended(tx, task):
        tx.event("enough", person=person.id, text=json.dumps([task]))


def has_ended(tx: Transaction, *which: int) -> bool:
    """Return whether a lead has ended a task early, given as (task,), or one of its rounds, given as (task, round)."""
    return tx.row("SELECT 1 FROM events WHERE kind = 'enough' AND text = ?", json.dumps(which)) is not None


def close_round(tx: Transaction, task: int, round: int, share: float = 1.0) -> dict[int, int]:
    """Freeze a complete round and return {item: class, or -1 for none}; closing it again returns the same labels.

    Raise RoundIncomplete if too many picks are neither labelled nor skipped.
    """
    row = tx.row("SELECT snapshot FROM closed WHERE task = ? AND round = ?", task, round)
    if row is not None:
        return {int(item): int(id) for item, id in json.loads(row[0])}
    if not _exists(tx, task, round):
        raise InputError(f"there is no round {round + 1} of task {task + 1} to close; open it first.")
    if not complete(tx, task, round, share):
        total, answered, _ = _tally(tx, task, round)
        raise RoundIncomplete(task, round, total - answered or _opinions_awaited(tx, task, round), total)
    final = counts_as(classes(tx))
    rows = tx.rows(
        "SELECT s.item, e.class FROM state s LEFT JOIN events e ON e.id = s.answer "
        "WHERE s.task = ? AND s.round = ? ORDER BY s.rank",
        *(task, round),
    )
    frozen = {item: -1 if id is None else final[id] for item, id in rows}
    tx.execute("INSERT INTO closed VALUES (?, ?, ?)", task, round, json.dumps(list(frozen.items())))
    tx.event("close", text=json.dumps([task, round]))
    return frozen


def seal(tx: Transaction, task: int) -> None:
    """Refuse corrections of a task's labels from now on, because only sums are left of its examples."""
    if not _is_sealed(tx, task):
        tx.event("seal", text=str(task))


def is_sealed(tx: Transaction, item: int) -> bool:
    """Return whether the task of the item has been sealed."""
    row = tx.row("SELECT task FROM picks WHERE item = ?", item)
    return row is not None and _is_sealed(tx, row[0])


def forget(tx: Transaction, items: Iterable[int]) -> None:
    """Remove everything about these items. The store never removes any other data.

    Triggers forbid removal. They are dropped for it and created again in the same transaction.
    """
    gone = set(items)
    tx.execute("PRAGMA secure_delete = ON")
    for name in APPEND_ONLY:
        tx.execute(f"DROP TRIGGER {name}")
    for item in gone:
        tx.execute("DELETE FROM state WHERE item = ?", item)
        tx.execute("DELETE FROM events WHERE undoes IN (SELECT id FROM events WHERE item = ?)", item)
        tx.execute("DELETE FROM events WHERE item = ?", item)
        tx.execute("DELETE FROM picks WHERE item = ?", item)
        tx.execute("DELETE FROM gold WHERE item = ?", item)
    for task, round, text in tx.rows("SELECT task, round, snapshot FROM closed"):
        left = json.dumps([pair for pair in json.loads(text) if pair[0] not in gone])
        if left != text:
            tx.execute("UPDATE closed SET snapshot = ? WHERE task = ? AND round = ?", left, task, round)
    for id, text in tx.rows("SELECT id, text FROM events WHERE kind = 'guide'"):
        guideline = json.loads(text)
        examples = [item for item in guideline["examples"] if item not in gone]
        if examples != guideline["examples"]:
            tx.execute("UPDATE events SET text = ? WHERE id = ?", json.dumps(guideline | {"examples": examples}), id)
    for trigger in APPEND_ONLY.values():
        tx.execute(trigger)


def _exists(tx: Transaction, task: int, round: int) -> bool:
    return tx.row("SELECT 1 FROM rounds WHERE task = ? AND round = ?", task, round) is not None


def _is_sealed(tx: Transaction, task: int) -> bool:
    return tx.row("SELECT 1 FROM events WHERE kind = 'seal' AND text = ?", str(task)) is not None


def _used(tx: Transaction, rounds: Iterable[tuple[int, int]]) -> int:
    tallies = [_tally(tx, task, round) for task, round in rounds]
    return sum(answered - skipped for _, answered, skipped in tallies)


def _tally(tx: Transaction, task: int, round: int) -> tuple[int, int, int]:
    """Count the picks of the round that people are asked for, those with an answer, and the skipped ones of these."""
    every = tx.row("SELECT total, answered, skipped FROM tally WHERE task = ? AND round = ?", task, round)
    if every is None:
        return 0, 0, 0
    given = tx.row(
        "SELECT COUNT(*), COUNT(s.answer), COALESCE(SUM(s.answer IS NOT NULL AND s.skipped), 0) "
        "FROM picks p JOIN state s ON s.item = p.item WHERE p.task = ? AND p.round = ? AND p.rank >= ?",
        *(task, round, GIVEN),
    )
    return int(every[0] - given[0]), int(every[1] - given[1]), int(every[2] - given[2])


def _opinions_awaited(tx: Transaction, task: int, round: int) -> int:
    """Return how many second opinions the round waits for. Only opinions that a person at work can give count.

    A person who has logged out, or has had nothing to label for ten minutes, does not block the round. A person who
    works alone is not asked about an item twice.
    """
    if tx.row(f"SELECT 1 {PENDING} LIMIT 1", task, round) is None:
        return 0
    items: set[int] = set()
    for person in people(tx):
        if not person.revoked and _is_there(tx, person.id):
            items.update(item for (item,) in tx.rows(f"SELECT s.item {PENDING} AND {NOT_OWN}", task, round, person.id))
    return len(items)


def _is_there(tx: Transaction, person: int) -> bool:
    """Return whether a person is at work: they had a lease within the last ten minutes and have not logged out since.

    The page renews a lease as long as the person looks at its item.
    """
    latest = "SELECT id, time FROM events WHERE kind = ? AND person = ? ORDER BY id DESC LIMIT 1"
    lease, renewal, left = (tx.row(latest, kind, person) or (0, -math.inf) for kind in ("lease", "renew", "leave"))
    last = max(lease, renewal)
    return bool(last > left and last[1] > tx.now - ABSENT)
