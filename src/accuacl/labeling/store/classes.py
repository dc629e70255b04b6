"""Classes, numbered in the order in which people add them. They can be renamed and merged, never removed."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import clean_name
from accuacl.labeling.store.records import Class, Person, living


def every(tx: Transaction) -> list[Class]:
    """All classes by number, with their present names and what they have been merged into, if anything."""
    names, merged = {}, {}
    for kind, id, text in tx.all("SELECT kind, class, text FROM events WHERE kind IN ('name', 'merge') ORDER BY id"):
        if kind == "name":
            names[id] = text
        else:
            merged[id] = int(text)
    return [Class(id, names[id], merged.get(id)) for (id,) in tx.all("SELECT id FROM classes ORDER BY id")]


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


def check(tx: Transaction, id: int) -> None:
    """Check that a label is one of the classes; a merged one stands for what it was merged into."""
    if not isinstance(id, int) or tx.one("SELECT 1 FROM classes WHERE id = ?", id) is None:
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
