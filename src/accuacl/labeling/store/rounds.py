"""Rounds: a batch of picks that is open until each is labelled or skipped, and then frozen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Pick, Status

PICK = "p.item, p.rank, p.scores, p.guess, p.confidence"


def open_round(tx: Transaction, task: int, round: int, picks: Sequence[Pick]) -> None:
    """Offer the picks to people. The same round again changes nothing."""
    there = [row[0] for row in tx.all("SELECT item FROM picks WHERE task = ? AND round = ?", task, round)]
    if tx.one("SELECT 1 FROM rounds WHERE task = ? AND round = ?", task, round):
        if sorted(there) != sorted(pick.item for pick in picks):
            raise InputError(f"round {round + 1} of task {task + 1} is there already, with other picks.")
        return
    taken = [p.item for p in picks if tx.one("SELECT 1 FROM picks WHERE item = ?", p.item)]
    if taken or len({p.item for p in picks}) != len(picks):
        raise InputError(f"item {taken[0] if taken else 'twice'} was asked for before; an item is asked for once.")
    tx.all("INSERT INTO rounds VALUES (?, ?)", task, round)
    for p in picks:
        row = (p.item, task, round, p.rank, json.dumps(p.scores), p.guess, p.confidence)
        tx.all("INSERT INTO picks VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    tx.event("open", text=json.dumps([task, round]))


def status(tx: Transaction) -> Status | None:
    """How far the latest round is; None before the first."""
    row = tx.one("SELECT task, round FROM rounds ORDER BY task DESC, round DESC LIMIT 1")
    if row is None:
        return None
    task, round = row
    total = tx.one("SELECT COUNT(*) FROM picks WHERE task = ? AND round = ?", task, round)[0]
    answered = dict(
        tx.all(
            "SELECT a.kind = 'skip', COUNT(*) FROM picks p JOIN answers a ON a.item = p.item "
            "WHERE p.task = ? AND p.round = ? GROUP BY 1",
            *(task, round),
        )
    )
    leased = tx.one("SELECT COUNT(*) FROM holders WHERE task = ? AND round = ? AND until > ?", task, round, tx.now)[0]
    opened = snapshot(tx, task, round) is None
    return Status(task, round, total, answered.get(0, 0), answered.get(1, 0), leased, opened)


def complete(tx: Transaction, task: int, round: int) -> bool:
    """Whether each pick of the round is labelled or skipped."""
    if not tx.one("SELECT 1 FROM rounds WHERE task = ? AND round = ?", task, round):
        return False
    left = tx.one(
        "SELECT 1 FROM picks p WHERE p.task = ? AND p.round = ? "
        "AND NOT EXISTS (SELECT 1 FROM standing s WHERE s.item = p.item)",
        *(task, round),
    )
    return left is None


def close(tx: Transaction, task: int, round: int) -> dict[int, int]:
    """Freeze the round: each item's class, or -1 where it was skipped. Asked again, the same."""
    frozen = snapshot(tx, task, round)
    if frozen is None:
        if not complete(tx, task, round):
            raise InputError(f"round {round + 1} of task {task + 1} is not complete; label or skip what is left.")
        root = classes.roots(tx)
        rows = tx.all(
            "SELECT p.item, a.class FROM picks p JOIN answers a ON a.item = p.item "
            "WHERE p.task = ? AND p.round = ? ORDER BY p.rank",
            *(task, round),
        )
        frozen = {item: -1 if id is None else root[id] for item, id in rows}
        tx.all("INSERT INTO closed VALUES (?, ?, ?)", task, round, json.dumps(list(frozen.items())))
        tx.event("close", text=json.dumps([task, round]))
    return frozen


def snapshot(tx: Transaction, task: int, round: int) -> dict[int, int] | None:
    """What the round was closed with, if it was."""
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


def pick(row: Any) -> Pick:
    item, rank, scores, guess, confidence = row
    return Pick(item, rank, json.loads(scores), guess, confidence)
