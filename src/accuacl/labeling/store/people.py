"""Who may label: a name each, and a token that is shown once and kept only as its hash."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person

LONGEST = 100


def everyone(tx: Transaction) -> list[Person]:
    """All people in order of arrival."""
    revoked = {row[0] for row in tx.all("SELECT person FROM events WHERE kind = 'revoke'")}
    return [Person(id, name, id in revoked) for id, name in tx.all("SELECT id, name FROM people ORDER BY id")]


def add(tx: Transaction, name: str) -> str:
    """A new person's token."""
    name = clean(name, "a person")
    if any(person.name == name and not person.revoked for person in everyone(tx)):
        raise InputError(f"there is a person {name!r} already; choose another name, or revoke that one first.")
    token = secrets.token_urlsafe(32)
    id = tx.one("SELECT COALESCE(MAX(id) + 1, 0) FROM people")[0]
    tx.all("INSERT INTO people VALUES (?, ?, ?)", id, name, _hash(token))
    tx.event("person", person=id, text=name)
    return token


def find(tx: Transaction, token: str) -> Person | None:
    """Whose token it is. Every hash is compared, in constant time: how long it takes tells nothing."""
    given, found = _hash(token), None
    hashes = dict(tx.all("SELECT id, token FROM people"))
    for person in everyone(tx):
        if hmac.compare_digest(given, hashes[person.id]) and not person.revoked:
            found = person
    return found


def revoke(tx: Transaction, name: str) -> None:
    """The person's token opens nothing any more, and what they had in hand goes back."""
    person = next((person for person in everyone(tx) if person.name == name.strip() and not person.revoked), None)
    if person is None:
        raise InputError(f"there is no person {name!r} whose access could be revoked.")
    for (item,) in tx.all("SELECT item FROM holders WHERE person = ? AND until > ?", person.id, tx.now):
        tx.event("release", person=person.id, item=item)
    tx.event("revoke", person=person.id)


def check(tx: Transaction, person: Person) -> None:
    """Only people who are known and not revoked write anything."""
    if not any(one.id == person.id and not one.revoked for one in everyone(tx)):
        raise InputError(f"{person.name!r} may not label here (any more); ask for a new token.")


def clean(name: str, what: str) -> str:
    """A name without white space around it, checked."""
    kept = " ".join(name.split())
    if not 1 <= len(kept) <= LONGEST or not kept.isprintable():
        raise InputError(f"{what} cannot be called {name[:120]!r}; give 1 to {LONGEST} printable characters.")
    return kept


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
