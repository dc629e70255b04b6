"""Calls of the store about people: who has access, and what they have done."""

from __future__ import annotations

from accuacl.labeling.store import people, records, sessions, work
from accuacl.labeling.store.database import Database


class PeopleCalls:
    """See above; a part of `Store`."""

    _db: Database

    def add_person(self, name: str, lead: bool | None = None) -> str:
        """Add a person and invite them; lead None: only if nobody else is one."""
        with self._db.write() as tx:
            return sessions.invite_person(tx, people.add(tx, name, lead))

    def person_named(self, name: str) -> records.Person:
        """The person of that name; someone new is added, with an invitation that nobody knows."""
        with self._db.read() as tx:
            known = people.find(tx, name)
        if known is not None:
            return known
        with self._db.write() as tx:
            id = people.add(tx, name, lead=False)
            sessions.invite_person(tx, id)
            return people.by_id(tx, id)

    def invite(self, name: str) -> str:
        """A new invitation for a person who has access; one that they have not used yet ends."""
        with self._db.write() as tx:
            return sessions.invite(tx, name)

    def person_of(self, token: str) -> records.Person | None:
        """Whose invitation it is; None if it is nobody's, used, expired or revoked."""
        with self._db.read() as tx:
            return sessions.find(tx, token)

    def enter(self, token: str) -> str | None:
        """Exchange an invitation, once, for the id of a new session; None if it is not valid."""
        with self._db.write() as tx:
            return sessions.enter(tx, token)

    def person_of_session(self, session: str) -> tuple[records.Person | None, bool]:
        """Whose session it is, None if it is over; and whether it has been prolonged, as its use does once a day."""
        with self._db.read() as tx:
            person, old = sessions.person_of(tx, session)
        if old:
            with self._db.write() as tx:
                sessions.touch(tx, session)
        return person, old

    def logged_in(self) -> list[records.Person]:
        """Everyone who can go on without a new invitation."""
        with self._db.read() as tx:
            return sessions.logged_in(tx)

    def leave(self, session: str) -> None:
        """End a session: the person has left, and what they hold is free again."""
        with self._db.write() as tx:
            person, _ = sessions.person_of(tx, session)
            sessions.leave(tx, session)
            if person is not None:
                people.leave(tx, person)

    def revoke(self, name: str) -> None:
        """End the person's access at once; the items they have are free again."""
        with self._db.write() as tx:
            person = people.named(tx, name)
            people.revoke(tx, name)
            sessions.end_all(tx, person.id)

    def set_role(self, name: str, lead: bool) -> None:
        """Make a person a lead or an annotator."""
        with self._db.write() as tx:
            people.set_role(tx, name, lead)

    def work(self) -> dict[int, records.Work]:
        """What each person has done, how fast, and how far others agree."""
        with self._db.read() as tx:
            return work.work(tx)

    def people(self) -> list[records.Person]:
        """Everyone who ever had access, revoked or not."""
        with self._db.read() as tx:
            return people.everyone(tx)
