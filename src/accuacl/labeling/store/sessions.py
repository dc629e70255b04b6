"""How people get in: an invitation is exchanged, once, for a session, which ends unused, at log-out, or when revoked.

Only hashes are kept. Neither invitations nor sessions are events: what is used up or over is deleted.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from accuacl.labeling.store import people
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person

DAY = 24 * 3600.0
INVITATION = 7 * DAY
SESSION = 14 * DAY  # from its last use
TOUCHED = DAY  # a session's last use is known to within so much, so that few requests write


def invite(tx: Transaction, name: str) -> str:
    """A new invitation for a person who has access; earlier ones that have not been used end."""
    person = people.named(tx, name)
    return invite_person(tx, person.id)


def invite_person(tx: Transaction, person: int) -> str:
    """The same by the person's number."""
    token = secrets.token_urlsafe(32)
    tx.all("DELETE FROM invitations WHERE person = ? OR until < ?", person, tx.now)
    tx.all("INSERT INTO invitations VALUES (?, ?, ?)", hash_of(token), person, tx.now + INVITATION)
    return token


def find(tx: Transaction, token: str) -> Person | None:
    """Whose invitation it is, or whose token of a project from before invitations; None if it is not valid.

    All hashes are compared in constant time, so that timing reveals nothing.
    """
    given, owner = hash_of(token), None
    living = {person.id: person for person in people.everyone(tx) if not person.revoked}
    rows = tx.all("SELECT hash, person FROM invitations WHERE until >= ?", tx.now)
    for known, person in [*rows, *tx.all("SELECT token, id FROM people")]:
        if hmac.compare_digest(given, known) and person in living:
            owner = living[person]
    return owner


def enter(tx: Transaction, token: str) -> str | None:
    """Use an invitation up and begin a session: its id; None if the invitation is not valid."""
    person = find(tx, token)
    if person is None:
        return None
    session = secrets.token_urlsafe(32)
    tx.all("DELETE FROM invitations WHERE hash = ?", hash_of(token))
    tx.all("DELETE FROM sessions WHERE until < ?", tx.now)
    tx.all("INSERT INTO sessions VALUES (?, ?, ?)", hash_of(session), person.id, tx.now + SESSION)
    return session


def person_of(tx: Transaction, session: str) -> tuple[Person | None, bool]:
    """Whose session it is, None if it is over; and whether it is time to `touch` it."""
    row = tx.one(
        "SELECT s.person, s.until FROM sessions s WHERE s.hash = ? AND s.until >= ? "
        "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.kind = 'revoke' AND e.person = s.person)",
        *(hash_of(session), tx.now),
    )
    if row is None:
        return None, False
    return people.by_id(tx, row[0]), row[1] < tx.now + SESSION - TOUCHED


def logged_in(tx: Transaction) -> list[Person]:
    """The people who have a session that is not over, in the order in which they were added."""
    inside = {row[0] for row in tx.all("SELECT person FROM sessions WHERE until >= ?", tx.now)}
    return [person for person in people.everyone(tx) if person.id in inside and not person.revoked]


def touch(tx: Transaction, session: str) -> None:
    """Count its time anew from now."""
    tx.all("UPDATE sessions SET until = ? WHERE hash = ?", tx.now + SESSION, hash_of(session))


def leave(tx: Transaction, session: str) -> None:
    """End a session."""
    tx.all("DELETE FROM sessions WHERE hash = ?", hash_of(session))


def end_all(tx: Transaction, person: int) -> None:
    """End all sessions and invitations of a person."""
    tx.all("DELETE FROM sessions WHERE person = ?", person)
    tx.all("DELETE FROM invitations WHERE person = ?", person)


def hash_of(token: str) -> str:
    """What is kept of a token: 256 random bits need no salt."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
