"""Who may label, and how they get in.

Each person has a name, and is an annotator or a lead. An invitation is exchanged, once, for a session. A session ends
when it is not used for long, at log-out, or when the person is revoked. Neither is an event; only hashes are kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from accuacl.base.errors import InputError
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.store.records import Person, clean_name

LEAD, ANNOTATOR = "lead", "annotator"
DAY = 24 * 3600.0
INVITATION = 7 * DAY
SESSION = 14 * DAY  # a session ends this long after its last use
TOUCHED = DAY  # the last use of a session is recorded at most this often, so that few requests write


def people(tx: Transaction) -> list[Person]:
    """Return everyone who ever had access, revoked or not, in the order in which they were added."""
    revoked = {row[0] for row in tx.rows("SELECT person FROM events WHERE kind = 'revoke'")}
    roles = dict(tx.rows("SELECT person, text FROM events WHERE kind = 'role' ORDER BY id"))
    rows = tx.rows("SELECT id, name FROM people ORDER BY id")
    return [Person(id, name, id in revoked, roles.get(id) == LEAD) for id, name in rows]


def add_person(tx: Transaction, name: str, lead: bool | None = None) -> str:
    """Add a person and return their invitation. lead: None makes them a lead only if nobody else is one."""
    return _invite(tx, _add(tx, name, lead).id)


def person_named(tx: Transaction, name: str) -> Person:
    """Return the person of that name; add them if they are new, with an invitation that is not shown to anybody."""
    cleaned = clean_name(name, "a person")
    namesakes = [person for person in people(tx) if person.name == cleaned]
    for person in namesakes:
        if not person.revoked:
            return person
    if namesakes:
        raise InputError(f"{name!r} has lost access to this project; `accuacl project person` restores it.")
    person = _add(tx, name, lead=False)
    _invite(tx, person.id)
    return person


def set_role(tx: Transaction, name: str, lead: bool) -> None:
    """Make a person a lead or an annotator; somebody must remain a lead."""
    person = _with_access(tx, name)
    others = [other for other in people(tx) if other.lead and not other.revoked and other.id != person.id]
    if person.lead and not lead and not others:
        raise InputError(f"{person.name!r} is the only lead; make somebody else a lead first.")
    if person.lead != lead:
        tx.event("role", person=person.id, text=LEAD if lead else ANNOTATOR)


def revoke(tx: Transaction, name: str) -> None:
    """End the person's access at once; the items they have are free again."""
    person = _with_access(tx, name)
    _release_all(tx, person)
    tx.event("revoke", person=person.id)
    tx.execute("DELETE FROM sessions WHERE person = ?", person.id)
    tx.execute("DELETE FROM invitations WHERE person = ?", person.id)


def check_access(tx: Transaction, person: Person) -> None:
    """Check that the person is known and not revoked: nobody else may write anything."""
    known = tx.row("SELECT 1 FROM people WHERE id = ?", person.id)
    if known is None or tx.row("SELECT 1 FROM events WHERE kind = 'revoke' AND person = ?", person.id):
        raise InputError(f"{person.name!r} has no access to this project; ask its lead for a new link.")


# Invitations and sessions


def invite(tx: Transaction, name: str) -> str:
    """Return a new invitation for a person who has access; their earlier invitations can no longer be used."""
    return _invite(tx, _with_access(tx, name).id)


def person_of(tx: Transaction, token: str) -> Person | None:
    """Return the person whose invitation the token is; None if it is unknown, used, expired or revoked.

    All hashes are compared in constant time, so that timing reveals nothing.
    """
    given, owner = _hash(token), None
    admitted = {person.id: person for person in people(tx) if not person.revoked}
    for known, person in tx.rows("SELECT hash, person FROM invitations WHERE until >= ?", tx.now):
        if hmac.compare_digest(given, known) and person in admitted:
            owner = admitted[person]
    return owner


def enter(tx: Transaction, token: str) -> str | None:
    """Exchange an invitation, once, for the id of a new session; None if it is not valid."""
    person = person_of(tx, token)
    if person is None:
        return None
    session = secrets.token_urlsafe(32)
    tx.execute("DELETE FROM invitations WHERE hash = ?", _hash(token))
    tx.execute("DELETE FROM sessions WHERE until < ?", tx.now)
    tx.execute("INSERT INTO sessions VALUES (?, ?, ?)", _hash(session), person.id, tx.now + SESSION)
    return session


def find_session(tx: Transaction, session: str) -> tuple[Person | None, bool]:
    """Return the person of the session, None if it is over, and whether its last use has to be recorded by `touch`."""
    row = tx.row(
        "SELECT s.person, s.until FROM sessions s WHERE s.hash = ? AND s.until >= ? "
        "AND NOT EXISTS (SELECT 1 FROM events e WHERE e.kind = 'revoke' AND e.person = s.person)",
        *(_hash(session), tx.now),
    )
    if row is None:
        return None, False
    id, until = row
    name = tx.row("SELECT name FROM people WHERE id = ?", id)[0]
    role = tx.row("SELECT text FROM events WHERE kind = 'role' AND person = ? ORDER BY id DESC LIMIT 1", id)
    return Person(id, name, lead=role == (LEAD,)), until < tx.now + SESSION - TOUCHED


def touch(tx: Transaction, session: str) -> None:
    """Record that the session is used now, which prolongs it."""
    tx.execute("UPDATE sessions SET until = ? WHERE hash = ?", tx.now + SESSION, _hash(session))


def logged_in(tx: Transaction) -> list[Person]:
    """Return the people with a session that has not ended, in the order in which they were added."""
    inside = {row[0] for row in tx.rows("SELECT person FROM sessions WHERE until >= ?", tx.now)}
    return [person for person in people(tx) if person.id in inside and not person.revoked]


def leave(tx: Transaction, session: str) -> None:
    """End a session: the person has left, so that nobody waits for them, and what they hold is free again."""
    person, _ = find_session(tx, session)
    tx.execute("DELETE FROM sessions WHERE hash = ?", _hash(session))
    if person is not None:
        _release_all(tx, person)
        tx.event("leave", person=person.id)


def _add(tx: Transaction, name: str, lead: bool | None) -> Person:
    name, admitted = clean_name(name, "a person"), [person for person in people(tx) if not person.revoked]
    if any(person.name == name for person in admitted):
        raise InputError(f"there is already a person {name!r}; choose another name, or revoke that one first.")
    id = int(tx.row("SELECT COALESCE(MAX(id) + 1, 0) FROM people")[0])
    tx.execute("INSERT INTO people VALUES (?, ?, '')", id, name)
    tx.event("person", person=id, text=name)
    leads = not any(person.lead for person in admitted) if lead is None else lead
    tx.event("role", person=id, text=LEAD if leads else ANNOTATOR)
    return Person(id, name, lead=leads)


def _invite(tx: Transaction, person: int) -> str:
    token = secrets.token_urlsafe(32)
    tx.execute("DELETE FROM invitations WHERE person = ? OR until < ?", person, tx.now)
    tx.execute("INSERT INTO invitations VALUES (?, ?, ?)", _hash(token), person, tx.now + INVITATION)
    return token


def _with_access(tx: Transaction, name: str) -> Person:
    person = next((person for person in people(tx) if person.name == name.strip() and not person.revoked), None)
    if person is None:
        raise InputError(f"there is no person {name!r} with access; give the name of one who has it.")
    return person


def _release_all(tx: Transaction, person: Person) -> None:
    for (item,) in tx.rows("SELECT item FROM holders WHERE person = ? AND until > ?", person.id, tx.now):
        tx.event("release", person=person.id, item=item)


def _hash(token: str) -> str:
    """Return the hash that is stored in place of a token; tokens are 256 random bits, so no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
