"""Opinions: second labels of items that have one, by other people, to see whether they agree.

A pick that several people are asked about (`open_round(twice=...)`) needs one, and a gold item, whose answer is known,
needs one from everybody. An opinion is not the item's label; a reviewer may make it one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from accuacl.base.errors import InputError
from accuacl.labeling.store.classes import STANDS, check_class, classes
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import Person, Pick, Rating, counts_as
from accuacl.labeling.store.rounds import GUESSED, NOT_OWN, PENDING, PICK, is_closed, is_sealed, open_now, to_pick

GOLD_EVERY = 10  # one in this many items that a person is given is a gold item, while there are any
OWN = "own"  # marks a correction by a person who may change only their own answers, which settles no dispute
DECISION = "decision"  # marks a correction that a lead made to settle a dispute


def wanted(
    tx: Transaction, person: Person, current: tuple[int, int], count: int, least: float | None = None
) -> list[Any]:
    """Return rows of free picks of the round about which the person may be asked for an opinion, by rank.

    With `least`, only picks with a guess of at least this confidence are returned.
    """
    return tx.rows(
        f"SELECT {PICK} {PENDING} AND (s.lease IS NULL OR s.until <= ?) AND {NOT_OWN} AND {GUESSED} "
        "ORDER BY p.rank LIMIT ?",
        *(*current, tx.now, person.id, least, least, count),
    )


def asks_twice(tx: Transaction) -> bool:
    """Return whether people may be asked about items that already have a label.

    The page must then not show which items these are.
    """
    current = open_now(tx)
    several = "SELECT 1 FROM picks INDEXED BY picks_of_several WHERE people > 1 AND task = ? AND round = ? LIMIT 1"
    return tx.row("SELECT 1 FROM gold LIMIT 1") is not None or (
        current is not None and tx.row(several, *current) is not None
    )


def has_guesses(tx: Transaction) -> bool:
    """Return whether the model has a guess for any item of the open round."""
    current = open_now(tx)
    any_guess = "SELECT 1 FROM picks WHERE task = ? AND round = ? AND guess IS NOT NULL LIMIT 1"
    return current is not None and tx.row(any_guess, *current) is not None


def gold_due(tx: Transaction, person: Person, later: int = 0) -> Pick | None:
    """Return a gold item that the person has not answered, if one is due now or `later` answers from now; else None."""
    if tx.row("SELECT 1 FROM gold LIMIT 1") is None:
        return None
    counts = "SELECT COUNT(*) FROM events WHERE person = ? AND kind IN ('label', 'skip', 'opinion')"
    block, position = divmod(tx.row(counts, person.id)[0] + later, GOLD_EVERY)
    if position != _place_of_gold(tx, person, block):
        return None
    row = tx.row(
        f"SELECT {PICK} FROM gold g JOIN state s ON s.item = g.item JOIN picks p ON p.item = g.item "
        f"WHERE s.answer IS NOT NULL AND (s.lease IS NULL OR s.until <= ?) AND {NOT_OWN} "
        "ORDER BY (g.item + 1) * 40503 * (? + 7) % 65521 LIMIT 1",  # a different order for each person
        *(tx.now, person.id, person.id),
    )
    return None if row is None else to_pick(row)


def _place_of_gold(tx: Transaction, person: Person, block: int) -> int:
    """Return the position (0 to 9) of the gold item in a block of ten answers.

    A person cannot predict it by counting answers: it depends on the exact time at which the store was created, which
    is never shown.
    """
    (begun,) = tx.row("SELECT time FROM events ORDER BY id LIMIT 1")
    drawn = hashlib.sha256(f"{begun!r} {person.id} {block}".encode()).digest()
    return int.from_bytes(drawn[:8]) % GOLD_EVERY


def may_give_opinion(tx: Transaction, person: Person, item: int) -> bool:
    """Return whether the person is to be asked for an opinion about an item that has an answer."""
    row = tx.row(
        "SELECT s.task, s.round, s.skipped, s.opinions < p.people - 1, EXISTS (SELECT 1 FROM gold WHERE item = s.item) "
        f"FROM state s JOIN picks p ON p.item = s.item WHERE s.item = ? AND {NOT_OWN}",
        *(item, person.id),
    )
    if row is None:
        return False
    task, round, skipped, more, gold = row
    return bool(gold) or bool(more and not skipped and not is_closed(tx, task, round))


def still_asked(tx: Transaction, person: Person) -> set[int]:
    """Return the items that the person may still be asked about; nothing may be shown that influences their answers.

    These are gold items, and items of the open round that have no answer or are offered to two people, unless the
    person has answered them.
    """
    task, round = open_now(tx) or (-1, -1)
    rows = tx.rows(
        "SELECT s.item FROM state s JOIN picks p ON p.item = s.item WHERE "
        "(EXISTS (SELECT 1 FROM gold g WHERE g.item = s.item) OR (s.task = ? AND s.round = ? "
        f"AND (s.answer IS NULL OR p.people > 1))) AND {NOT_OWN}",
        *(task, round, person.id),
    )
    return {item for (item,) in rows}


def ratings(tx: Transaction) -> list[Rating]:
    """Return all first labels and second opinions, by item. Corrections are left out: they are made knowing a label."""
    final = counts_as(classes(tx))
    rows = tx.rows("SELECT item, person, class FROM given WHERE class IS NOT NULL ORDER BY item, id")
    return [Rating(item, person, final[id]) for item, person, id in rows]


def unsettled(tx: Transaction) -> set[int]:
    """Return the items on which a second opinion and the label differ, and which nobody has settled since.

    Items of tasks whose labels can no longer be changed are left out.
    """
    final = counts_as(classes(tx))
    rows = tx.rows(
        "SELECT o.item, o.class, a.class FROM given o JOIN state s ON s.item = o.item JOIN events a ON a.id = s.answer "
        "WHERE o.kind = 'opinion' AND o.class IS NOT NULL AND a.class IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.item = o.item AND e.kind = 'correct' AND e.id > o.id "
        f"AND e.text IS NOT '{OWN}' AND {STANDS})"
    )
    differ = {item for item, opinion, label in rows if final[opinion] != final[label]}
    return {item for item in differ if not is_sealed(tx, item)}


# Gold items: their answers are known


def gold(tx: Transaction) -> dict[int, int]:
    """Return {gold item: its known class, merges applied}."""
    final = counts_as(classes(tx))
    return {item: final[id] for item, id in tx.rows("SELECT item, class FROM gold ORDER BY item")}


def gold_without_guess(tx: Transaction) -> set[int]:
    """Return the gold items that people may be asked about and that had no guess when they were picked."""
    rows = tx.rows(
        "SELECT p.item FROM gold g JOIN picks p ON p.item = g.item JOIN state s ON s.item = g.item "
        "WHERE p.guess IS NULL AND s.answer IS NOT NULL"
    )
    return {item for (item,) in rows}


def gold_ratings(tx: Transaction) -> list[Rating]:
    """Return the answers to gold items by people who could not know what is right, in the order of items.

    If the known answer comes from outside the project, every answer counts. If a lead has marked a label as right, only
    second opinions of other people count: neither the person who gave that label nor the lead is tested by it.
    """
    marked_by: dict[int, int | None] = {}  # the lead who marked the item; None: its answer comes from elsewhere
    for person, item, text in tx.rows("SELECT person, item, text FROM events WHERE kind = 'gold' ORDER BY id"):
        marked_by |= dict.fromkeys(json.loads(text), None) if item is None else {item: person}
    final = counts_as(classes(tx))
    rows = tx.rows(
        "SELECT o.item, o.person, o.class, o.kind FROM given o JOIN gold g ON g.item = o.item "
        "WHERE o.class IS NOT NULL ORDER BY o.item, o.id"
    )
    elsewhere = {item for item, person in marked_by.items() if person is None}
    return [
        Rating(item, person, final[id])
        for item, person, id, kind in rows
        if item in elsewhere or (kind == "opinion" and marked_by.get(item) != person)
    ]


def set_gold(tx: Transaction, known: Mapping[int, int]) -> None:
    """Make items gold whose classes are known from outside the project, whether they have been picked or not."""
    for item, class_id in known.items():
        check_class(tx, class_id)
        tx.execute("INSERT OR REPLACE INTO gold VALUES (?, ?)", item, class_id)
    tx.event("gold", text=json.dumps(list(known)))


def mark_gold(tx: Transaction, person: Person, items: Sequence[int], gold: bool = True) -> int:
    """Make labelled items gold with their present labels, or with gold=False ordinary again; return how many."""
    check_access(tx, person)
    distinct = list(dict.fromkeys(items))
    for item in distinct:
        row = tx.row("SELECT class FROM answers WHERE item = ? AND class IS NOT NULL", item)
        if gold and row is None:
            raise InputError(f"item {item} has no label, so its answer is not known; label it first.")
        if gold:
            tx.execute("INSERT OR REPLACE INTO gold VALUES (?, ?)", item, row[0])
            tx.event("gold", person=person.id, item=item, class_id=row[0])
        else:
            tx.execute("DELETE FROM gold WHERE item = ?", item)
    return len(distinct)
