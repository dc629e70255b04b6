"""Who may label: each person has a name, and is an annotator or a lead."""

from __future__ import annotations

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person

LONGEST_NAME = 100
LEAD, ANNOTATOR = "lead", "annotator"


def everyone(tx: Transaction) -> list[Person]:
    """All people in the order in which they were added. Whoever came before there were roles is a lead."""
    revoked = {row[0] for row in tx.all("SELECT person FROM events WHERE kind = 'revoke'")}
    roles = dict(tx.all("SELECT person, text FROM events WHERE kind = 'role' ORDER BY id"))
    rows = tx.all("SELECT id, name FROM people ORDER BY id")
    return [Person(id, name, id in revoked, roles.get(id, LEAD) == LEAD) for id, name in rows]


def add(tx: Transaction, name: str, lead: bool | None) -> int:
    """Add a person; their number. lead None: if there is no other."""
    name, known = clean_name(name, "a person"), [person for person in everyone(tx) if not person.revoked]
    if any(person.name == name for person in known):
        raise InputError(f"there is already a person {name!r}; choose another name, or revoke that one first.")
    id = int(tx.one("SELECT COALESCE(MAX(id) + 1, 0) FROM people")[0])
    tx.all("INSERT INTO people VALUES (?, ?, '')", id, name)  # since there are invitations nobody has a token
    tx.event("person", person=id, text=name)
    leads = not any(person.lead for person in known) if lead is None else lead
    tx.event("role", person=id, text=LEAD if leads else ANNOTATOR)
    return id


def set_role(tx: Transaction, name: str, lead: bool) -> None:
    """Make a person a lead or an annotator; somebody must remain a lead."""
    person = named(tx, name)
    if person.lead and not lead:
        _check_last_lead(tx, person)
    if person.lead != lead:
        tx.event("role", person=person.id, text=LEAD if lead else ANNOTATOR)


def named(tx: Transaction, name: str) -> Person:
    """The person of that name who has access."""
    person = next((person for person in everyone(tx) if person.name == name.strip() and not person.revoked), None)
    if person is None:
        raise InputError(f"there is no person {name!r} with access; give the name of one who has it.")
    return person


def find(tx: Transaction, name: str) -> Person | None:
    """The person of that name who has access; None if nobody ever had that name."""
    same = [person for person in everyone(tx) if person.name == clean_name(name, "a person")]
    for person in same:
        if not person.revoked:
            return person
    if same:
        raise InputError(f"{name!r} has lost access to this project; `accuacl project person` gives it back.")
    return None


def by_id(tx: Transaction, id: int) -> Person:
    """A person by their number."""
    name = tx.one("SELECT name FROM people WHERE id = ?", id)[0]
    role = tx.one("SELECT text FROM events WHERE kind = 'role' AND person = ? ORDER BY id DESC LIMIT 1", id)
    revoked = tx.one("SELECT 1 FROM events WHERE kind = 'revoke' AND person = ?", id) is not None
    return Person(id, name, revoked, role is None or role[0] == LEAD)


def revoke(tx: Transaction, name: str) -> None:
    """End the person's access and give back the items they have."""
    person = named(tx, name)
    _release_all(tx, person)
    tx.event("revoke", person=person.id)


def leave(tx: Transaction, person: Person) -> None:
    """Record that the person has left, so that nobody waits for them, and give back the items they have."""
    _release_all(tx, person)
    tx.event("leave", person=person.id)


def _release_all(tx: Transaction, person: Person) -> None:
    for (item,) in tx.all("SELECT item FROM holders WHERE person = ? AND until > ?", person.id, tx.now):
        tx.event("release", person=person.id, item=item)


def check(tx: Transaction, person: Person) -> None:
    """Check that the person is known and not revoked: nobody else may write anything."""
    known = tx.one("SELECT 1 FROM people WHERE id = ?", person.id)
    if known is None or tx.one("SELECT 1 FROM events WHERE kind = 'revoke' AND person = ?", person.id):
        raise InputError(f"{person.name!r} has no access to this project; ask its lead for a new link.")


def clean_name(name: str, what: str) -> str:
    """The name of a person or a class, with single spaces; refused if it is empty, too long or not printable."""
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_NAME or not cleaned.isprintable():
        raise InputError(f"{what} cannot be called {name[:120]!r}; give 1 to {LONGEST_NAME} printable characters.")
    return cleaned


def _check_last_lead(tx: Transaction, person: Person) -> None:
    if not any(other.lead and not other.revoked and other.id != person.id for other in everyone(tx)):
        raise InputError(f"{person.name!r} is the only lead; make somebody else a lead first.")
