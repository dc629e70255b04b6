"""Classes: their names, what they mean, those that people propose, and names that may mean the same.

Classes are numbered in the order in which people add them. They can be renamed and merged; the latest change can be
undone, then the one before, and a merge at any time. One that has labels is never removed.
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from accuacl.base.errors import InputError, near
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import check_access
from accuacl.labeling.store.records import (
    Class,
    ClassChange,
    Guideline,
    Person,
    Proposal,
    check_request,
    check_text,
    clean_name,
    living,
    used_before,
)

STANDS = "NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id)"
CHANGES = f"FROM events e WHERE e.kind IN ('name', 'merge') AND {STANDS}"
LONGEST_GUIDELINE = 2000
MOST_EXAMPLES = 12
MOST_PROPOSALS = 50  # the most proposals that may wait for a lead at once


def classes(tx: Transaction) -> list[Class]:
    """Return all classes by number, including merged ones, but not those whose addition was undone."""
    return _classes(tx, without=0)


def add_class(tx: Transaction, name: str, person: Person | None = None) -> Class:
    """Add a class, with the next number."""
    name = _free_name(tx, name)
    id = int(tx.row("SELECT COUNT(*) FROM classes")[0])
    tx.execute("INSERT INTO classes VALUES (?)", id)
    tx.event("name", person=person.id if person else None, class_id=id, text=name)
    return Class(id, name)


def rename_class(tx: Transaction, id: int, name: str, person: Person | None = None) -> None:
    """Give a class another name; its labels stay with its number."""
    old = _living_class(tx, id)
    if clean_name(name, "a class") != old.name:
        tx.event("name", person=person.id if person else None, class_id=id, text=_free_name(tx, name))


def merge_class(tx: Transaction, id: int, into: int, person: Person | None = None) -> None:
    """Merge class `id` into another: from now on all its labels, old and new, count as labels of `into`."""
    if id == into:
        raise InputError(f"class {id} cannot be merged into itself; give another one.")
    _living_class(tx, id), _living_class(tx, into)
    tx.event("merge", person=person.id if person else None, class_id=id, text=str(into))


def class_changes(tx: Transaction) -> list[ClassChange]:
    """Return the additions, renamings and merges that have not been undone, the latest first."""
    names: dict[int, str] = {}
    changes = []
    for event, time, person, kind, id, text in tx.rows(
        f"SELECT e.id, e.time, e.person, e.kind, e.class, e.text {CHANGES} ORDER BY e.id"
    ):
        if kind == "merge":
            changes.append(ClassChange(event, time, person, "merged", id, names[id], names[int(text)]))
        elif id in names:
            changes.append(ClassChange(event, time, person, "renamed", id, names[id], text))
            names[id] = text
        else:
            changes.append(ClassChange(event, time, person, "added", id, None, text))
            names[id] = text
    return changes[::-1]


def undo_class_change(tx: Transaction, person: Person, event: int) -> ClassChange:
    """Undo a change of classes, given by its event: the latest change, or any merge. Return what was undone."""
    check_access(tx, person)
    changes = class_changes(tx)
    change = next((change for change in changes if change.event == event), None)
    if change is None or (change != changes[0] and change.kind != "merged"):
        raise InputError("a later change has been made to the classes; reload the list.")
    why = _why_it_must_stay(tx, change)
    if why:
        raise InputError(why)
    tx.event("unclass", person=person.id, undoes=event)
    return change


def undoable_class_changes(tx: Transaction) -> set[int]:
    """Return the events of the changes that can be undone now: the latest change, and merges."""
    changes = class_changes(tx)
    candidates = changes[:1] + [change for change in changes[1:] if change.kind == "merged"]
    return {change.event for change in candidates if not _why_it_must_stay(tx, change)}


def check_class(tx: Transaction, id: int) -> None:
    """Refuse a label that is not one of the classes. A merged class is one of them."""
    named = f"SELECT 1 FROM events e WHERE e.kind = 'name' AND e.class = ? AND {STANDS}"
    if not isinstance(id, int) or tx.row(named, id) is None:
        raise InputError(f"there is no class {id!r}; add it first.")


# Guidelines: what each class means, with examples


def guide(tx: Transaction, person: Person, class_id: int, text: str, examples: Sequence[int] = ()) -> None:
    """Set what a class means, and which items show it; this replaces the earlier guideline."""
    check_access(tx, person)
    if class_id not in {c.id for c in living(classes(tx))}:
        raise InputError(f"there is no class {class_id!r}; give an existing one.")
    text = check_text(text, "a guideline", LONGEST_GUIDELINE, least=0)
    items = list(dict.fromkeys(examples))
    if len(items) > MOST_EXAMPLES:
        raise InputError(f"{len(items)} examples were given; give at most {MOST_EXAMPLES}.")
    for item in items:
        if tx.row("SELECT 1 FROM picks WHERE item = ?", item) is None:
            raise InputError(f"item {item} has not been picked; give items that people have seen.")
    tx.event("guide", person=person.id, class_id=class_id, text=json.dumps({"text": text, "examples": items}))


def add_examples(tx: Transaction, person: Person, class_id: int, items: Sequence[int]) -> None:
    """Add these items to the examples of a class."""
    present = guidelines(tx).get(class_id, Guideline())
    guide(tx, person, class_id, present.text, [*present.examples, *items])


def guidelines(tx: Transaction) -> dict[int, Guideline]:
    """Return the guideline of each class that has one. Examples that were removed since are left out."""
    picked = {item for (item,) in tx.rows("SELECT item FROM picks")}
    latest = {}
    for id, text in tx.rows("SELECT class, text FROM events WHERE kind = 'guide' ORDER BY id"):
        guideline = json.loads(text)
        examples = tuple(item for item in guideline["examples"] if item in picked)
        latest[id] = Guideline(guideline["text"], examples)
    return {id: guideline for id, guideline in latest.items() if guideline.text or guideline.examples}


# Proposals


def propose(tx: Transaction, person: Person, name: str, request: str) -> Proposal:
    """Propose a class; if one of that name is proposed already, return that proposal."""
    check_access(tx, person)
    check_request(request)
    name = clean_name(name, "a class")
    if any(c.name == name for c in living(classes(tx))):
        raise InputError(f"there is already a class {name!r}; use it.")
    waiting = proposals(tx)
    for proposal in waiting:
        if proposal.name == name:
            return proposal
    if len(waiting) >= MOST_PROPOSALS:
        raise InputError(f"{len(waiting)} proposals wait for a lead; wait until they are settled.")
    if tx.row("SELECT 1 FROM events WHERE request = ?", request):
        raise used_before(request)
    return Proposal(tx.event("propose", person=person.id, text=name, request=request), name, person.id, tx.now)


def proposals(tx: Transaction) -> list[Proposal]:
    """Return the proposals that wait for a lead, the oldest first."""
    waiting = f"FROM events e WHERE e.kind = 'propose' AND {STANDS} ORDER BY e.id"
    return [Proposal(*row) for row in tx.rows(f"SELECT e.id, e.text, e.person, e.time {waiting}")]


def settle(tx: Transaction, person: Person, proposal: int, name: str | None) -> int | None:
    """Settle a proposal: add the class under this name and return its number; with None, reject the proposal."""
    check_access(tx, person)
    if proposal not in {waiting.id for waiting in proposals(tx)}:
        raise InputError("this proposal has already been settled; reload the list.")
    added = None if name is None else add_class(tx, name, person).id
    tx.event("settle", person=person.id, undoes=proposal, class_id=added)
    return added


# Names that may mean the same: equal but for case, spaces, hyphens, accents, or letters that look alike

UNSEEN = ("Zs", "Cf", "Cc", "Pd", "Pc")  # spaces, invisible characters, hyphens, underscores
LATIN = str.maketrans(  # the Latin letters that small Greek and Cyrillic ones look like, as capitals if not as small
    "αβεζηικμνορτυχωϲϳ" + "авекмнорстухѕіјүӏһԁԛԝ" + "ıɑɡøđłħŧ",
    "abezhikmvoptyxwcj" + "abekmhopctyxsijylhdqw" + "iagodlht",
)


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that look like this one, or differ from it only in case, spaces, hyphens and accents.

    >>> near_names("Tiger ", ["lion", "tiger", "tigress"])
    ['tiger']
    >>> near_names("t\\u0456ger", ["lion", "tiger"]), near_names("sea-lion", ["Sea Lion"]), near_names("cat", ["car"])
    (['tiger'], ['Sea Lion'], [])
    """
    shape = _shape(name)
    return [other for other in names if _shape(other) == shape]


def meant(name: str, names: Iterable[str]) -> str:
    """Return the class that an unknown name probably means, one that looks alike or is spelt nearly the same; else "".

    >>> meant("TIGER", ["lion", "tiger"]), meant("tigre", ["lion", "tiger"]), meant("zebra", ["lion"])
    ('tiger', 'tiger', '')
    """
    names = list(names)
    alike = near_names(name, names)
    return alike[0] if alike else near(name, names)


def alike_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of different names that look alike, each later one with the first that it may be taken for.

    >>> alike_pairs(["tiger", "lion", "Tiger", "Li-on", "tiger"])
    [('tiger', 'Tiger'), ('lion', 'Li-on')]
    """
    first: dict[str, str] = {}  # the first name of each shape
    pairs = [(first.setdefault(_shape(name), name), name) for name in dict.fromkeys(names)]
    return [(other, name) for other, name in pairs if other != name]


def _shape(name: str) -> str:
    """Return a form of the name that names which look alike share.

    Letters become the small Latin ones that they look like; accents, spaces, hyphens and invisible characters go.

    A name of nothing else stays as it is.
    """
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", name).casefold()).translate(LATIN)
    kept = [c for c in letters if not "\u0300" <= c <= "\u036f" and unicodedata.category(c) not in UNSEEN]
    return "".join(kept) or name


def _classes(tx: Transaction, without: int) -> list[Class]:
    """Return all classes as if the change whose event is `without` had not been made."""
    names, merged = {}, {}
    for kind, id, text in tx.rows(f"SELECT e.kind, e.class, e.text {CHANGES} AND e.id != ? ORDER BY e.id", without):
        if kind == "name":
            names[id] = text
        else:
            merged[id] = int(text)
    return [Class(id, names[id], merged.get(id)) for id in sorted(names)]


def _why_it_must_stay(tx: Transaction, change: ClassChange) -> str:
    """Return why the latest change of classes, or a merge, cannot be undone; "" if it can."""
    if change.kind == "added":
        uses = "SELECT 1 FROM events WHERE class = ? AND kind NOT IN ('name', 'settle', 'guide')"
        return f"class {change.to!r} is in use; merge it into another one instead." if tx.row(uses, change.id) else ""
    if change.kind == "merged" and tx.row("SELECT 1 FROM events WHERE kind = 'seal'"):
        return "of finished tasks only sums are kept, in which the classes are one; the merge has to stay."
    names = Counter(c.name for c in living(_classes(tx, without=change.event)))
    twice = next((name for name, count in names.items() if count > 1), None)
    return "" if twice is None else f"then two classes would be called {twice!r}; rename the present one first."


def _living_class(tx: Transaction, id: int) -> Class:
    asked = next((c for c in classes(tx) if c.id == id), None)
    if asked is None:
        raise InputError(f"there is no class {id!r}; add it first.")
    if asked.merged_into is not None:
        raise InputError(f"class {asked.name!r} has been merged into another; rename or merge that one.")
    return asked


def _free_name(tx: Transaction, name: str) -> str:
    name = clean_name(name, "a class")
    if any(c.name == name for c in living(classes(tx))):
        raise InputError(f"there is already a class {name!r}; choose another name.")
    return name
