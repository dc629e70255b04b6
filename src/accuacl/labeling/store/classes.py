"""Classes, numbered in the order in which people add them. They can be renamed and merged; the latest change
can be undone, then the one before, and a merge at any time. One that has labels is never removed.
"""

from __future__ import annotations

from collections import Counter

from accuacl.base.errors import InputError
from accuacl.labeling.store import people
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import clean_name
from accuacl.labeling.store.records import Class, ClassChange, Person, living

STANDS = "NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id)"
CHANGES = f"FROM events e WHERE e.kind IN ('name', 'merge') AND {STANDS}"


def every(tx: Transaction, without: int = 0) -> list[Class]:
    """All classes by number, with their present names and what they have been merged into, if anything.

    One whose addition was undone is not there. without: a change that is left out, by its event.
    """
    names, merged = {}, {}
    for kind, id, text in tx.all(f"SELECT e.kind, e.class, e.text {CHANGES} AND e.id != ? ORDER BY e.id", without):
        if kind == "name":
            names[id] = text
        else:
            merged[id] = int(text)
    return [Class(id, names[id], merged.get(id)) for id in sorted(names)]


def add(tx: Transaction, name: str, person: Person | None) -> Class:
    """Add a class, with the next number."""
    name = _free(tx, name)
    id = int(tx.one("SELECT COUNT(*) FROM classes")[0])
    tx.all("INSERT INTO classes VALUES (?)", id)
    tx.event("name", person=person.id if person else None, **{"class": id}, text=name)
    return Class(id, name)


def rename(tx: Transaction, id: int, name: str, person: Person | None) -> None:
    """Give a class another name; its labels stay with its number."""
    old = _living_class(tx, id)
    if clean_name(name, "a class") != old.name:
        tx.event("name", person=person.id if person else None, **{"class": id}, text=_free(tx, name))


def merge(tx: Transaction, id: int, into: int, person: Person | None) -> None:
    """From now on, all labels of class `id`, old and new, count as those of `into`."""
    if id == into:
        raise InputError(f"class {id} cannot be merged into itself; give another one.")
    _living_class(tx, id), _living_class(tx, into)
    tx.event("merge", person=person.id if person else None, **{"class": id}, text=str(into))


def changes(tx: Transaction) -> list[ClassChange]:
    """The additions, renamings and merges that stand, the last first."""
    names: dict[int, str] = {}
    found = []
    for event, time, person, kind, id, text in tx.all(
        f"SELECT e.id, e.time, e.person, e.kind, e.class, e.text {CHANGES} ORDER BY e.id"
    ):
        if kind == "merge":
            found.append(ClassChange(event, time, person, "merged", id, names[id], names[int(text)]))
        else:
            found.append(
                ClassChange(event, time, person, "renamed" if id in names else "added", id, names.get(id), text)
            )
            names[id] = text
    return found[::-1]


def undo(tx: Transaction, person: Person, event: int) -> ClassChange:
    """Undo a change of classes, the latest one or any merge, by its event; what was undone."""
    people.check(tx, person)
    every_change = changes(tx)
    change = next((one for one in every_change if one.event == event), None)
    if change is None or (change != every_change[0] and change.kind != "merged"):
        raise InputError("this is not the latest change of classes any more; look at the list again.")
    why = _has_to_stay(tx, change)
    if why:
        raise InputError(why)
    tx.event("unclass", person=person.id, undoes=event)
    return change


def undoable(tx: Transaction) -> set[int]:
    """The changes that can be undone now, by their events."""
    every_change = changes(tx)
    candidates = every_change[:1] + [one for one in every_change[1:] if one.kind == "merged"]
    return {one.event for one in candidates if not _has_to_stay(tx, one)}


def _has_to_stay(tx: Transaction, change: ClassChange) -> str:
    """Why the latest change of classes, or a merge, cannot be undone; "" if it can."""
    if change.kind == "added" and tx.one(
        "SELECT 1 FROM events WHERE class = ? AND kind NOT IN ('name', 'settle', 'guide')", change.id
    ):
        return f"class {change.to!r} is in use; merge it into another one instead."
    if change.kind == "merged" and tx.one("SELECT 1 FROM events WHERE kind = 'seal'"):
        return "of finished tasks only sums are kept, in which the classes are one; the merge has to stay."
    names = Counter(c.name for c in living(every(tx, without=change.event))) if change.kind != "added" else Counter()
    twice = next((name for name, count in names.items() if count > 1), None)
    return "" if twice is None else f"then two classes would be called {twice!r}; rename the present one first."


def check(tx: Transaction, id: int) -> None:
    """Check that a label is one of the classes; a merged one stands for what it was merged into."""
    named = f"SELECT 1 FROM events e WHERE e.kind = 'name' AND e.class = ? AND {STANDS}"
    if not isinstance(id, int) or tx.one(named, id) is None:
        raise InputError(f"there is no class {id!r}; add it first.")


def _living_class(tx: Transaction, id: int) -> Class:
    asked = next((c for c in every(tx) if c.id == id), None)
    if asked is None:
        raise InputError(f"there is no class {id!r}; add it first.")
    if asked.merged_into is not None:
        raise InputError(f"class {asked.name!r} has been merged into another; rename or merge that one.")
    return asked


def _free(tx: Transaction, name: str) -> str:
    name = clean_name(name, "a class")
    if any(c.name == name for c in living(every(tx))):
        raise InputError(f"there is already a class {name!r}; choose another name.")
    return name
