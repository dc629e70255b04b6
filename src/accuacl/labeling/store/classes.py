"""Classes, numbered in the order in which people add them. They can be renamed and merged; the latest change
can be undone, then the one before. One that has labels is never removed.
"""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store import people
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import clean_name
from accuacl.labeling.store.records import Class, ClassChange, Person, living

STANDS = "NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id)"
CHANGES = f"FROM events e WHERE e.kind IN ('name', 'merge') AND {STANDS}"


def every(tx: Transaction) -> list[Class]:
    """All classes by number, with their present names and what they have been merged into, if anything.

    One whose addition was undone is not there.
    """
    names, merged = {}, {}
    for kind, id, text in tx.all(f"SELECT e.kind, e.class, e.text {CHANGES} ORDER BY e.id"):
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


def changes(tx: Transaction, most: int = 20) -> list[ClassChange]:
    """The latest additions, renamings and merges that stand, the last first."""
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
    return found[::-1][:most]


def undo(tx: Transaction, person: Person, event: int) -> ClassChange:
    """Undo the latest change of classes, which must be that event; what was undone."""
    people.check(tx, person)
    latest = next(iter(changes(tx, 1)), None)
    if latest is None or latest.event != event:
        raise InputError("this is not the latest change of classes any more; look at the list again.")
    if latest.kind == "added" and tx.one(
        "SELECT 1 FROM events WHERE class = ? AND kind NOT IN ('name', 'settle', 'guide')", latest.id
    ):
        raise InputError(f"class {latest.to!r} is in use; merge it into another one instead.")
    if latest.kind == "merged" and tx.one("SELECT 1 FROM events WHERE kind = 'seal'"):
        raise InputError("of finished tasks only sums are kept, in which the classes are one; the merge has to stay.")
    tx.event("unclass", person=person.id, undoes=event)
    return latest


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
