"""What each class means, in words and by examples, and the classes that people propose."""

from __future__ import annotations

import json
from collections.abc import Sequence

from accuacl.base.errors import InputError
from accuacl.labeling.store import classes, people
from accuacl.labeling.store.answers import check_request
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.people import clean_name
from accuacl.labeling.store.records import Guideline, Person, Proposal, living
from accuacl.labeling.store.wording import check_text

LONGEST = 2000
MOST_EXAMPLES = 12
MOST_PROPOSALS = 50  # open ones


def guide(tx: Transaction, person: Person, class_id: int, text: str, examples: Sequence[int]) -> None:
    """Set what a class means; what was said before no longer counts."""
    people.check(tx, person)
    if class_id not in {c.id for c in living(classes.every(tx))}:
        raise InputError(f"there is no class {class_id!r}; give one that there is.")
    text = check_text(text, "a guideline", LONGEST, least=0)
    chosen = list(dict.fromkeys(examples))
    if len(chosen) > MOST_EXAMPLES:
        raise InputError(f"{len(chosen)} examples were given; give at most {MOST_EXAMPLES}.")
    for item in chosen:
        if tx.one("SELECT 1 FROM picks WHERE item = ?", item) is None:
            raise InputError(f"item {item} has not been picked; give items that people have seen.")
    tx.event("guide", person=person.id, **{"class": class_id}, text=json.dumps({"text": text, "examples": chosen}))


def add_examples(tx: Transaction, person: Person, class_id: int, items: Sequence[int]) -> None:
    """More items that show what a class means, beside what has been said of it."""
    now = guidelines(tx).get(class_id, Guideline())
    guide(tx, person, class_id, now.text, [*now.examples, *items])


def guidelines(tx: Transaction) -> dict[int, Guideline]:
    """The guideline of each class that has one. Examples that were removed since are left out."""
    there = {item for (item,) in tx.all("SELECT item FROM picks")}
    found = {}
    for id, text in tx.all("SELECT class, text FROM events WHERE kind = 'guide' ORDER BY id"):
        said = json.loads(text)
        found[id] = Guideline(said["text"], tuple(item for item in said["examples"] if item in there))
    return {id: one for id, one in found.items() if one.text or one.examples}


def propose(tx: Transaction, person: Person, name: str, request: str) -> Proposal:
    """Propose a class; one that is open under that name already is returned."""
    people.check(tx, person)
    check_request(request)
    name = clean_name(name, "a class")
    if any(c.name == name for c in living(classes.every(tx))):
        raise InputError(f"there is already a class {name!r}; use it.")
    already = proposals(tx)
    for one in already:
        if one.name == name:
            return one
    if len(already) >= MOST_PROPOSALS:
        raise InputError(f"{len(already)} proposals wait for a lead; wait until they are settled.")
    if tx.one("SELECT 1 FROM events WHERE request = ?", request):
        raise InputError(f"the request {request!r} was used before for something else; make up a new one.")
    return Proposal(tx.event("propose", person=person.id, text=name, request=request), name, person.id, tx.now)


def proposals(tx: Transaction) -> list[Proposal]:
    """Those that no lead has settled, first to last."""
    waiting = f"FROM events e WHERE e.kind = 'propose' AND {classes.STANDS} ORDER BY e.id"
    return [Proposal(*row) for row in tx.all(f"SELECT e.id, e.text, e.person, e.time {waiting}")]


def settle(tx: Transaction, person: Person, proposal: int, name: str | None) -> int | None:
    """Settle a proposal: add the class, under that name, or none if name is None; the class's number."""
    people.check(tx, person)
    if proposal not in {one.id for one in proposals(tx)}:
        raise InputError("this proposal has been settled already; look at the list again.")
    added = None if name is None else classes.add(tx, name, person).id
    tx.event("settle", person=person.id, undoes=proposal, **{"class": added})
    return added
