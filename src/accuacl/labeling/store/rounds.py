"""Rounds: a batch of picks that is open until each is labelled or skipped; then its labels are frozen."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.errors import RoundIncomplete
from accuacl.labeling.store.pending import waited_for
from accuacl.labeling.store.records import Person, Pick, Status, counts_as
from accuacl.labeling.store.schema import APPEND_ONLY

GIVEN = 1_000_000  # the first rank of picks whose labels were there before anybody was asked
PICK = "p.item, p.rank, p.scores, p.guess, p.confidence"
OF_ROUND = "SELECT item FROM picks WHERE task = ? AND round = ?"


def open_round(tx: Transaction, task: int, round: int, picks: Sequence[Pick], twice: Collection[int] = ()) -> None:
    """Offer the picks to people, the items `twice` to two each.

    Opening the same round again adds those that it does not have yet. Items whose labels have been given meanwhile are
    not offered.
    """
    exists = _exists(tx, task, round)
    offered = {item for (item,) in tx.all(f"{OF_ROUND} AND rank < ?", task, round, GIVEN)}
    given = {item for (item,) in tx.all("SELECT item FROM picks WHERE task = ? AND rank >= ?", task, GIVEN)}
    known = offered | given
    new = [pick for pick in picks if pick.item not in known]
    if not offered <= {pick.item for pick in picks} or (exists and new and is_closed(tx, task, round)):
        raise InputError(f"round {round + 1} of task {task + 1} was opened with other picks; open the next round.")
    items = json.dumps([pick.item for pick in new])
    taken = tx.one("SELECT item FROM picks WHERE item IN (SELECT value FROM json_each(?)) LIMIT 1", items)
    if taken or len({p.item for p in picks}) != len(picks):
        again = taken[0] if taken else next(item for item, n in Counter(p.item for p in picks).items() if n > 1)
        raise InputError(f"item {again} is offered a second time; offer each item once.")
    if not exists:
        tx.all("INSERT INTO rounds VALUES (?, ?)", task, round)
    rows = [
        (p.item, task, round, p.rank, json.dumps(p.scores), p.guess, p.confidence, 1 + (p.item in twice)) for p in new
    ]
    tx.add("picks", rows)
    if not exists:
        tx.event("open", text=json.dumps([task, round]))


def latest(tx: Transaction) -> tuple[int, int] | None:
    """The task and number of the latest round, open or closed; None before the first."""
    row = tx.one("SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1")
    return None if row is None else (row[0], row[1])


def open_now(tx: Transaction) -> tuple[int, int] | None:
    """The task and number of the round that is open; None if none is."""
    newest = latest(tx)
    return None if newest is None or is_closed(tx, *newest) else newest


def is_closed(tx: Transaction, task: int, round: int) -> bool:
    """Whether the round has been closed."""
    return tx.one("SELECT 1 FROM closed WHERE task = ? AND round = ?", task, round) is not None


def status(tx: Transaction) -> Status | None:
    """The state of the latest round; None before the first."""
    newest = latest(tx)
    if newest is None:
        return None
    task, round = newest
    total, answered, skipped = _tally(tx, task, round)
    leased = tx.one(
        "SELECT COUNT(*) FROM state INDEXED BY state_leased WHERE lease IS NOT NULL AND answer IS NULL AND task = ? "
        "AND round = ? AND until > ?",
        *(task, round, tx.now),
    )[0]
    is_open = not is_closed(tx, task, round)
    opinions = waited_for(tx, task, round) if is_open and answered == total else 0
    return Status(task, round, total, answered - skipped, skipped, leased, is_open, opinions)


def complete(tx: Transaction, task: int, round: int, share: float = 1.0) -> bool:
    """Whether the round can be closed: each pick is labelled or skipped, by two people where it should be, or a lead
    has said that it is enough or has ended the task, or this share of the picks is answered and nobody is busy with
    another one.
    """
    if not _exists(tx, task, round):
        return False
    left = _left(tx, task, round)
    done = left == 0 and waited_for(tx, task, round) == 0
    if done or _is_enough(tx, task, round) or has_ended(tx, task):
        return True
    total = _tally(tx, task, round)[0]
    if share == 1 or total - left < max(1, math.ceil(share * total)):
        return False
    leased = "SELECT 1 FROM holders WHERE task = ? AND round = ? AND until > ?"
    return tx.one(leased, task, round, tx.now) is None


def enough(tx: Transaction, person: Person) -> None:
    """Let the open round be closed with the answers that it has; at least one is needed."""
    current = open_now(tx)
    if current is None:
        raise InputError("no round is open; wait for the next one.")
    if tx.one("SELECT 1 FROM state WHERE task = ? AND round = ? AND answer IS NOT NULL", *current) is None:
        raise InputError("nothing of this round has been labelled yet; label something first.")
    tx.event("enough", person=person.id, text=json.dumps(current))


def end_task(tx: Transaction, person: Person, task: int) -> None:
    """Let the task that is being labelled end with the answers that it has; saying it again changes nothing."""
    newest = latest(tx)
    if newest is None or newest[0] != task:
        raise InputError(f"task {task + 1} is not the one that is being labelled; load the page again.")
    if not has_ended(tx, task):
        tx.event("enough", person=person.id, text=json.dumps([task]))


def has_ended(tx: Transaction, task: int) -> bool:
    """Whether a lead has ended the task, so that no more of its items are offered."""
    return _is_enough(tx, task)


def _is_enough(tx: Transaction, *which: int) -> bool:
    """Whether a lead has said so of a task, or of one of its rounds: (task,) or (task, round)."""
    return tx.one("SELECT 1 FROM events WHERE kind = 'enough' AND text = ?", json.dumps(which)) is not None


def close(tx: Transaction, task: int, round: int, share: float = 1.0) -> dict[int, int]:
    """Freeze the labels of the round: {item: class, or -1 if it has none}. Closing it again gives the same."""
    frozen = snapshot(tx, task, round)
    if frozen is None:
        if not _exists(tx, task, round):
            raise InputError(f"there is no round {round + 1} of task {task + 1} to close; open it first.")
        if not complete(tx, task, round, share):
            left = _left(tx, task, round) or waited_for(tx, task, round)
            raise RoundIncomplete(task, round, left, len(picks(tx, task, round)))
        final = counts_as(classes.every(tx))
        rows = tx.all(
            "SELECT s.item, e.class FROM state s LEFT JOIN events e ON e.id = s.answer "
            "WHERE s.task = ? AND s.round = ? ORDER BY s.rank",
            *(task, round),
        )
        frozen = {item: -1 if id is None else final[id] for item, id in rows}
        tx.all("INSERT INTO closed VALUES (?, ?, ?)", task, round, json.dumps(list(frozen.items())))
        tx.event("close", text=json.dumps([task, round]))
    return frozen


def seal(tx: Transaction, task: int) -> None:
    """From now on no label of the task can be corrected."""
    if not tx.one("SELECT 1 FROM events WHERE kind = 'seal' AND text = ?", str(task)):
        tx.event("seal", text=str(task))


def sealed(tx: Transaction, item: int) -> bool:
    """Whether the task of the item has been sealed."""
    seals = "SELECT 1 FROM picks p JOIN events e ON e.kind = 'seal' AND e.text = CAST(p.task AS TEXT)"
    return tx.one(f"{seals} WHERE p.item = ?", item) is not None


def forget(tx: Transaction, items: Iterable[int]) -> None:
    """Remove picks and events of these items. The triggers that forbid it are put back in the same transaction."""
    gone = set(items)
    tx.all("PRAGMA secure_delete = ON")
    for trigger in APPEND_ONLY:
        tx.all(f"DROP TRIGGER IF EXISTS {trigger.split()[5]}")
    for item in gone:
        tx.all("DELETE FROM state WHERE item = ?", item)
        tx.all("DELETE FROM events WHERE undoes IN (SELECT id FROM events WHERE item = ?)", item)
        tx.all("DELETE FROM events WHERE item = ?", item)
        tx.all("DELETE FROM picks WHERE item = ?", item)
        tx.all("DELETE FROM gold WHERE item = ?", item)
    for task, round, text in tx.all("SELECT task, round, snapshot FROM closed"):
        left = json.dumps([pair for pair in json.loads(text) if pair[0] not in gone])
        if left != text:
            tx.all("UPDATE closed SET snapshot = ? WHERE task = ? AND round = ?", left, task, round)
    for id, text in tx.all("SELECT id, text FROM events WHERE kind = 'guide'"):
        said = json.loads(text)
        examples = [item for item in said["examples"] if item not in gone]
        if examples != said["examples"]:
            tx.all("UPDATE events SET text = ? WHERE id = ?", json.dumps(said | {"examples": examples}), id)
    for trigger in APPEND_ONLY:
        tx.all(trigger)


def snapshot(tx: Transaction, task: int, round: int) -> dict[int, int] | None:
    """The labels that the round was closed with; None while it is open."""
    row = tx.one("SELECT snapshot FROM closed WHERE task = ? AND round = ?", task, round)
    return None if row is None else {int(item): int(id) for item, id in json.loads(row[0])}


def used(tx: Transaction, task: int) -> int:
    """How many of the task's picks have a label, without those that had one before anybody was asked."""
    tallies = [_tally(tx, task, round) for (round,) in tx.all("SELECT round FROM tally WHERE task = ?", task)]
    return sum(answered - skipped for _, answered, skipped in tallies)


def used_elsewhere(tx: Transaction, task: int, round: int) -> int:
    """The same of all other rounds, of all tasks; (-1, -1): of all rounds."""
    others = tx.all("SELECT task, round FROM tally WHERE task != ? OR round != ?", task, round)
    tallies = [_tally(tx, *other) for other in others]
    return sum(answered - skipped for _, answered, skipped in tallies)


def picks(tx: Transaction, task: int, round: int) -> list[Pick]:
    """The round's picks by rank, those that people were asked for."""
    rows = f"SELECT {PICK} FROM picks p WHERE task = ? AND round = ? AND rank < ? ORDER BY rank"
    return [pick(row) for row in tx.all(rows, task, round, GIVEN)]


def _exists(tx: Transaction, task: int, round: int) -> bool:
    return tx.one("SELECT 1 FROM rounds WHERE task = ? AND round = ?", task, round) is not None


def _left(tx: Transaction, task: int, round: int) -> int:
    """How many picks of the round are neither labelled nor skipped."""
    total, answered, _ = _tally(tx, task, round)
    return total - answered


def _tally(tx: Transaction, task: int, round: int) -> tuple[int, int, int]:
    """(picks of the round that people are asked for, how many have an answer, how many of these are skipped)."""
    every = tx.one("SELECT total, answered, skipped FROM tally WHERE task = ? AND round = ?", task, round)
    if every is None:
        return 0, 0, 0
    given = tx.one(
        "SELECT COUNT(*), COUNT(s.answer), COALESCE(SUM(s.answer IS NOT NULL AND s.skipped), 0) "
        "FROM picks p JOIN state s ON s.item = p.item WHERE p.task = ? AND p.round = ? AND p.rank >= ?",
        *(task, round, GIVEN),
    )
    return int(every[0] - given[0]), int(every[1] - given[1]), int(every[2] - given[2])


def pick(row: Any) -> Pick:
    """A pick from a row of the columns PICK."""
    item, rank, scores, guess, confidence = row
    return Pick(item, rank, json.loads(scores), guess, confidence)
