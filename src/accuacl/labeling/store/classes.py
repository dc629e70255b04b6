"""Classes: numbered in the order in which people name them. They can be renamed and merged, never removed."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import clean
from accuacl.labeling.store.records import Class, Person


def every(tx: Transaction) -> list[Class]:
    """All classes by number, with what they are called now and what they have been merged into, if they have."""
    names, merged = {}, {}
    for kind, id, text in tx.all("SELECT kind, class, text FROM events WHERE kind IN ('name', 'merge') ORDER BY id"):
        if kind == "name":
            names[id] = text
        else:
            merged[id] = int(text)
    return [Class(id, names[id], merged.get(id)) for (id,) in tx.all("SELECT id FROM classes ORDER BY id")]


def roots(tx: Transaction) -> dict[int, int]:
    """What each class counts as now."""
    merged = {one.id: one.merged_into for one in every(tx)}

    def root(id: int) -> int:
        while (into := merged[id]) is not None:  # a class is merged only while it and the other live: no circle
            id = into
        return id

    return {id: root(id) for id in merged}


def add(tx: Transaction, name: str, person: Person | None) -> Class:
    """A new class."""
    name = _free(tx, name)
    id = int(tx.one("SELECT COUNT(*) FROM classes")[0])
    tx.all("INSERT INTO classes VALUES (?)", id)
    tx.event("name", person=person.id if person else None, **{"class": id}, text=name)
    return Class(id, name)


def rename(tx: Transaction, id: int, name: str, person: Person | None) -> None:
    """Call a class something else; labels stay with its number."""
    old = _living(tx, id)
    if clean(name, "a class") != old.name:
        tx.event("name", person=person.id if person else None, **{"class": id}, text=_free(tx, name))


def merge(tx: Transaction, id: int, into: int, person: Person | None) -> None:
    """From now on, all labels of class `id`, old and new, count as those of `into`."""
    if id == into:
        raise InputError(f"class {id} cannot be merged into itself; give another one.")
    _living(tx, id), _living(tx, into)
    tx.event("merge", person=person.id if person else None, **{"class": id}, text=str(into))


def known(tx: Transaction, id: int) -> None:
    """A label must be one of the classes; one that has been merged stands for what it was merged into."""
    if not isinstance(id, int) or tx.one("SELECT 1 FROM classes WHERE id = ?", id) is None:
        raise InputError(f"there is no class {id!r}; add it first.")


def _living(tx: Transaction, id: int) -> Class:
    found = next((one for one in every(tx) if one.id == id), None)
    if found is None:
        raise InputError(f"there is no class {id!r}.")
    if found.merged_into is not None:
        raise InputError(f"class {found.name!r} has been merged into another; rename or merge that one.")
    return found


def _free(tx: Transaction, name: str) -> str:
    name = clean(name, "a class")
    if any(one.name == name and one.merged_into is None for one in every(tx)):
        raise InputError(f"there is a class {name!r} already; choose another name.")
    return name
