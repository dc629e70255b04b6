"""Who may label: each person has a name and a token, which is shown once and kept only as its hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person

LONGEST_NAME = 100


def everyone(tx: Transaction) -> list[Person]:
    """All people in the order in which they were added."""
    revoked = {row[0] for row in tx.all("SELECT person FROM events WHERE kind = 'revoke'")}
    return [Person(id, name, id in revoked) for id, name in tx.all("SELECT id, name FROM people ORDER BY id")]


def add(tx: Transaction, name: str) -> str:
    """Add a person and return their token."""
    name = clean_name(name, "a person")
    if any(person.name == name and not person.revoked for person in everyone(tx)):
        raise InputError(f"there is already a person {name!r}; choose another name, or revoke that one first.")
    token = secrets.token_urlsafe(32)
    id = tx.one("SELECT COALESCE(MAX(id) + 1, 0) FROM people")[0]
    tx.all("INSERT INTO people VALUES (?, ?, ?)", id, name, _hash(token))
    tx.event("person", person=id, text=name)
    return token


def find(tx: Transaction, token: str) -> Person | None:
    """Whose token it is. All hashes are compared in constant time, so that timing reveals nothing."""
    given, owner = _hash(token), None
    hashes = dict(tx.all("SELECT id, token FROM people"))
    for person in everyone(tx):
        if hmac.compare_digest(given, hashes[person.id]) and not person.revoked:
            owner = person
    return owner


def revoke(tx: Transaction, name: str) -> None:
    """Make the person's token invalid and give back the items they have."""
    person = next((person for person in everyone(tx) if person.name == name.strip() and not person.revoked), None)
    if person is None:
        raise InputError(f"there is no person {name!r} with access; give the name of one who has it.")
    for (item,) in tx.all("SELECT item FROM holders WHERE person = ? AND until > ?", person.id, tx.now):
        tx.event("release", person=person.id, item=item)
    tx.event("revoke", person=person.id)


def check(tx: Transaction, person: Person) -> None:
    """Check that the person is known and not revoked: nobody else may write anything."""
    if not any(known.id == person.id and not known.revoked for known in everyone(tx)):
        raise InputError(f"{person.name!r} has no access to this project; ask its lead for a new link.")


def clean_name(name: str, what: str) -> str:
    """The name of a person or a class, with single spaces; refused if it is empty, too long or not printable."""
    cleaned = " ".join(name.split())
    if not 1 <= len(cleaned) <= LONGEST_NAME or not cleaned.isprintable():
        raise InputError(f"{what} cannot be called {name[:120]!r}; give 1 to {LONGEST_NAME} printable characters.")
    return cleaned


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
