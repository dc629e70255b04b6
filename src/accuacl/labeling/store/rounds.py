"""Rounds: a batch of picks that is open until each is labelled or skipped; then its labels are frozen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.errors import RoundIncomplete
from accuacl.labeling.store.records import Pick, Status, counts_as
from accuacl.labeling.store.schema import APPEND_ONLY

PICK = "p.item, p.rank, p.scores, p.guess, p.confidence"


def open_round(tx: Transaction, task: int, round: int, picks: Sequence[Pick]) -> None:
    """Offer the picks to people. Opening the same round again changes nothing."""
    if _exists(tx, task, round):
        offered = tx.all("SELECT item FROM picks WHERE task = ? AND round = ? ORDER BY item", task, round)
        if [item for (item,) in offered] != sorted(pick.item for pick in picks):
            raise InputError(f"round {round + 1} of task {task + 1} was opened with other picks; open the next round.")
        return
    taken = [p.item for p in picks if tx.one("SELECT 1 FROM picks WHERE item = ?", p.item)]
    if taken or len({p.item for p in picks}) != len(picks):
        twice = taken[0] if taken else next(item for item, n in Counter(p.item for p in picks).items() if n > 1)
        raise InputError(f"item {twice} is offered a second time; offer each item once.")
    tx.all("INSERT INTO rounds VALUES (?, ?)", task, round)
    for p in picks:
        row = (p.item, task, round, p.rank, json.dumps(p.scores), p.guess, p.confidence)
        tx.all("INSERT INTO picks VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    tx.event("open", text=json.dumps([task, round]))


def latest(tx: Transaction) -> tuple[int, int] | None:
    """The task and number of the latest round, open or closed; None before the first."""
    row = tx.one("SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1")
    return None if row is None else (row[0], row[1])


def open_now(tx: Transaction) -> tuple[int, int] | None:
    """The task and number of the round that is open; None if none is."""
    newest = latest(tx)
    return None if newest is None or snapshot(tx, *newest) is not None else newest


def status(tx: Transaction) -> Status | None:
    """The state of the latest round; None before the first."""
    newest = latest(tx)
    if newest is None:
        return None
    task, round = newest
    total = tx.one("SELECT COUNT(*) FROM picks WHERE task = ? AND round = ?", task, round)[0]
    answered = dict(
        tx.all(
            "SELECT a.kind = 'skip', COUNT(*) FROM picks p JOIN answers a ON a.item = p.item "
            "WHERE p.task = ? AND p.round = ? GROUP BY 1",
            *(task, round),
        )
    )
    leased = tx.one("SELECT COUNT(*) FROM holders WHERE task = ? AND round = ? AND until > ?", task, round, tx.now)[0]
    is_open = snapshot(tx, task, round) is None
    return Status(task, round, total, answered.get(0, 0), answered.get(1, 0), leased, is_open)


def complete(tx: Transaction, task: int, round: int) -> bool:
    """Whether the round is there and each of its picks is labelled or skipped."""
    return _exists(tx, task, round) and _left(tx, task, round) == 0


def close(tx: Transaction, task: int, round: int) -> dict[int, int]:
    """Freeze the labels of the round: {item: class, or -1 if skipped}. Closing it again gives the same."""
    frozen = snapshot(tx, task, round)
    if frozen is None:
        if not _exists(tx, task, round):
            raise InputError(f"there is no round {round + 1} of task {task + 1} to close; open it first.")
        if left := _left(tx, task, round):
            raise RoundIncomplete(task, round, left, len(picks(tx, task, round)))
        final = counts_as(classes.every(tx))
        rows = tx.all(
            "SELECT p.item, a.class FROM picks p JOIN answers a ON a.item = p.item "
            "WHERE p.task = ? AND p.round = ? ORDER BY p.rank",
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
        tx.all("DELETE FROM events WHERE undoes IN (SELECT id FROM events WHERE item = ?)", item)
        tx.all("DELETE FROM events WHERE item = ?", item)
        tx.all("DELETE FROM picks WHERE item = ?", item)
    for task, round, text in tx.all("SELECT task, round, snapshot FROM closed"):
        left = json.dumps([pair for pair in json.loads(text) if pair[0] not in gone])
        if left != text:
            tx.all("UPDATE closed SET snapshot = ? WHERE task = ? AND round = ?", left, task, round)
    for trigger in APPEND_ONLY:
        tx.all(trigger)


def snapshot(tx: Transaction, task: int, round: int) -> dict[int, int] | None:
    """The labels that the round was closed with; None while it is open."""
    row = tx.one("SELECT snapshot FROM closed WHERE task = ? AND round = ?", task, round)
    return None if row is None else {int(item): int(id) for item, id in json.loads(row[0])}


def used(tx: Transaction, task: int) -> int:
    """How many of the task's picks have a label."""
    row = tx.one(
        "SELECT COUNT(*) FROM picks p JOIN answers a ON a.item = p.item WHERE p.task = ? AND a.class IS NOT NULL", task
    )
    return int(row[0])


def picks(tx: Transaction, task: int, round: int) -> list[Pick]:
    """The round's picks by rank."""
    return [
        pick(row)
        for row in tx.all(f"SELECT {PICK} FROM picks p WHERE task = ? AND round = ? ORDER BY rank", task, round)
    ]


def _exists(tx: Transaction, task: int, round: int) -> bool:
    return tx.one("SELECT 1 FROM rounds WHERE task = ? AND round = ?", task, round) is not None


def _left(tx: Transaction, task: int, round: int) -> int:
    """How many picks of the round are neither labelled nor skipped."""
    row = tx.one(
        "SELECT COUNT(*) FROM picks p WHERE p.task = ? AND p.round = ? "
        "AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item = p.item)",
        *(task, round),
    )
    return int(row[0])


def pick(row: Any) -> Pick:
    """A pick from a row of the columns PICK."""
    item, rank, scores, guess, confidence = row
    return Pick(item, rank, json.loads(scores), guess, confidence)
