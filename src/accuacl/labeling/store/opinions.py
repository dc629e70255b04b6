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

GOLD_EVERY = 10  # one in ten answers is asked of a gold item, as long as there are any
OWN = "own"  # the text of a correction by somebody who may change only their own answers: it settles no dispute
DECISION = "decision"  # the text of a correction that was given to settle a dispute


def wanted(
    tx: Transaction, person: Person, current: tuple[int, int], count: int, least: float | None = None
) -> list[Any]:
    """Rows of free picks of the round about which the person may be asked for their opinion, by rank. least: only those
    with a guess of this confidence.
    """
    return tx.rows(
        f"SELECT {PICK} {PENDING} AND (s.lease IS NULL OR s.until <= ?) AND {NOT_OWN} AND {GUESSED} "
        "ORDER BY p.rank LIMIT ?",
        *(*current, tx.now, person.id, least, least, count),
    )


def asks_twice(tx: Transaction) -> bool:
    """Whether people may be asked about items that have a label, and should not notice which ones these are."""
    current = open_now(tx)
    several = "SELECT 1 FROM picks INDEXED BY picks_of_several WHERE people > 1 AND task = ? AND round = ? LIMIT 1"
    return tx.row("SELECT 1 FROM gold LIMIT 1") is not None or (
        current is not None and tx.row(several, *current) is not None
    )


def has_guesses(tx: Transaction) -> bool:
    """Whether the model has a guess for any item of the open round."""
    current = open_now(tx)
    any_guess = "SELECT 1 FROM picks WHERE task = ? AND round = ? AND guess IS NOT NULL LIMIT 1"
    return current is not None and tx.row(any_guess, *current) is not None


def gold_due(tx: Transaction, person: Person, later: int = 0) -> Pick | None:
    """A gold item that the person has not answered yet, if it is time for one: now, or `later` answers from now."""
    if tx.row("SELECT 1 FROM gold LIMIT 1") is None:
        return None
    counts = "SELECT COUNT(*) FROM events WHERE person = ? AND kind IN ('label', 'skip', 'opinion')"
    block, position = divmod(tx.row(counts, person.id)[0] + later, GOLD_EVERY)
    if position != _place_of_gold(tx, person, block):
        return None
    row = tx.row(
        f"SELECT {PICK} FROM gold g JOIN state s ON s.item = g.item JOIN picks p ON p.item = g.item "
        f"WHERE s.answer IS NOT NULL AND (s.lease IS NULL OR s.until <= ?) AND {NOT_OWN} "
        "ORDER BY (g.item + 1) * 40503 * (? + 7) % 65521 LIMIT 1",  # in another order for each person
        *(tx.now, person.id, person.id),
    )
    return None if row is None else to_pick(row)


def _place_of_gold(tx: Transaction, person: Person, block: int) -> int:
    """The position (0 to 9) at which a block of ten answers contains a gold item.

    Counting answers does not predict it: it depends on the exact time at which the store was created, which nobody is
    told.
    """
    (begun,) = tx.row("SELECT time FROM events ORDER BY id LIMIT 1")
    drawn = hashlib.sha256(f"{begun!r} {person.id} {block}".encode()).digest()
    return int.from_bytes(drawn[:8]) % GOLD_EVERY


def may_give_opinion(tx: Transaction, person: Person, item: int) -> bool:
    """Whether the person is to be asked for an opinion about an item that has an answer."""
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
    """The items about which the person is or may still be asked, so that nothing of them may influence the answer:
    those of the open round that wait for an answer or have two people, and gold ones, as far as they have not answered.
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
    """All labels that people have given by themselves: first ones and second opinions, not corrections; by item."""
    final = counts_as(classes(tx))
    rows = tx.rows("SELECT item, person, class FROM given WHERE class IS NOT NULL ORDER BY item, id")
    return [Rating(item, person, final[id]) for item, person, id in rows]


def unsettled(tx: Transaction) -> set[int]:
    """Items about which an opinion differs from the label, and which nobody who may settle it has corrected since;
    without those of tasks whose labels cannot be changed any more.
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
    """The gold items with their known classes, merges applied."""
    final = counts_as(classes(tx))
    return {item: final[id] for item, id in tx.rows("SELECT item, class FROM gold ORDER BY item")}


def gold_without_guess(tx: Transaction) -> set[int]:
    """The gold items that people may be asked about and for which the model had no guess when they were picked."""
    rows = tx.rows(
        "SELECT p.item FROM gold g JOIN picks p ON p.item = g.item JOIN state s ON s.item = g.item "
        "WHERE p.guess IS NULL AND s.answer IS NOT NULL"
    )
    return {item for (item,) in rows}


def gold_ratings(tx: Transaction) -> list[Rating]:
    """The answers to gold items that were given without knowing what is right, in the order of items.

    If the known answer comes from elsewhere, these are all. If a lead has marked a label as right, it is not a test of
    whoever gave it, nor of that lead: only second opinions of others are.
    """
    marked_by: dict[int, int | None] = {}  # nobody: the answer comes from elsewhere
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
    """Make items gold, whether they have been picked or not: their answers are known from elsewhere, {item: class}."""
    for item, class_id in known.items():
        check_class(tx, class_id)
        tx.execute("INSERT OR REPLACE INTO gold VALUES (?, ?)", item, class_id)
    tx.event("gold", text=json.dumps(list(known)))


def mark_gold(tx: Transaction, person: Person, items: Sequence[int], gold: bool = True) -> int:
    """Make labelled items gold, with the labels that they have, or ordinary again; returns how many."""
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
