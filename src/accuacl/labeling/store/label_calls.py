"""Calls of the store about labelling: leases, batches, and answers.

The client makes up `request`: sent again, it returns the same and adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from accuacl.labeling.store import answers, batches, classes, leases, records, rounds, shares
from accuacl.labeling.store.database import Database
from accuacl.labeling.store.leases import NOTHING, Expected

LEASE = 120.0  # seconds
AHEAD = 3  # items that a person is told of before they are leased, so that the page can load them


class LabelCalls:
    """See above; a part of `Store`."""

    _db: Database

    # Leases

    def lease(self, person: records.Person, seconds: float = LEASE) -> records.Pick | None:
        """What the person should label next, leased to them for so many seconds; None if nothing is free."""
        with self._db.write() as tx:
            return leases.lease(tx, person, seconds)

    def turn(
        self,
        person: records.Person,
        act: records.Act | None = None,
        expected: Expected = NOTHING,
        seconds: float = LEASE,
    ) -> records.Turn:
        """Record what the person did, and lease them the next item, in one transaction."""
        with self._db.write() as tx:
            done = None if act is None else answers.do(tx, person, act, seconds)
            pick = leases.lease(tx, person, seconds, expected)
            ahead, undo = leases.ahead(tx, person, AHEAD, expected), answers.undoable(tx, person) is not None
            return records.Turn(done, pick, ahead, rounds.status(tx), classes.every(tx), undo)

    def can_be_spared(self, person: records.Person) -> bool:
        """Whether the person, if nothing is free, would be given an item that somebody else holds."""
        with self._db.read() as tx:
            current = rounds.open_now(tx)
            return current is not None and bool(shares.spare(tx, person, current, 1))

    def held(self, person: records.Person) -> records.Pick | None:
        """The item that the person has now."""
        with self._db.read() as tx:
            return leases.held(tx, person)

    def renew(self, person: records.Person, item: int, seconds: float = LEASE) -> None:
        """Extend the person's lease to so many seconds from now."""
        with self._db.write() as tx:
            leases.renew(tx, person, item, seconds)

    def release(self, person: records.Person, item: int) -> None:
        """Give the item back."""
        with self._db.write() as tx:
            leases.release(tx, person, item)

    # Batches: many items at once, with the model's guesses

    def lease_batch(
        self, person: records.Person, most: int, expected: Expected = NOTHING, seconds: float = LEASE
    ) -> list[records.Pick]:
        """Items with a guess, leased to the person."""
        with self._db.write() as tx:
            return batches.lease(tx, person, most, seconds, expected)

    def renew_batch(self, person: records.Person, items: Sequence[int], seconds: float = LEASE) -> list[int]:
        """Extend the person's leases; the items that they have lost meanwhile. They work on the first."""
        with self._db.write() as tx:
            return batches.renew(tx, person, items, seconds)

    def release_batch(self, person: records.Person, items: Sequence[int]) -> None:
        """Give items back."""
        with self._db.write() as tx:
            batches.release(tx, person, items)

    def label_batch(self, person: records.Person, labels: Mapping[int, int], request: str) -> records.BatchDone:
        """Label many items of the open round, {item: class}, in one transaction."""
        with self._db.write() as tx:
            return batches.label(tx, person, labels, request)

    def undo_batch(self, person: records.Person, batch: str, request: str, seconds: float = LEASE) -> list[int]:
        """Undo what is left of the person's request `batch`; the items, leased to them again."""
        with self._db.write() as tx:
            return batches.undo(tx, person, batch, seconds, request)

    def show_guess(self, person: records.Person, pick: records.Pick) -> None:
        """Record that the person has been shown the model's guess."""
        with self._db.write() as tx:
            batches.show(tx, person, pick)

    def show_guesses(self, person: records.Person, items: Sequence[int]) -> None:
        """The same of items of their batch that have been on the screen."""
        with self._db.write() as tx:
            batches.show_all(tx, person, items)

    def guesses_shown(self) -> dict[int, int]:
        """The guess that whoever gave an item's present answer had been shown before: {item: class}."""
        with self._db.read() as tx:
            return batches.shown(tx)

    # Answers. The client makes up `request`: sent again, it returns the same and adds nothing.

    def label(self, person: records.Person, item: int, class_id: int, request: str) -> int:
        """Label an item of the open round; the event's id."""
        with self._db.write() as tx:
            return answers.label(tx, person, item, class_id, request)

    def skip(self, person: records.Person, item: int, request: str) -> int:
        """Skip an item of the open round, which cannot be labelled; the event's id."""
        with self._db.write() as tx:
            return answers.skip(tx, person, item, request)

    def undo(self, person: records.Person, request: str, seconds: float = LEASE) -> int | None:
        """Undo the person's last label or skip in the open round; the item, leased to them again, or None."""
        with self._db.write() as tx:
            return answers.undo(tx, person, seconds, request)

    def can_undo(self, person: records.Person) -> bool:
        """Whether the person has something to undo in the open round."""
        with self._db.read() as tx:
            return answers.undoable(tx, person) is not None

    def correct(self, person: records.Person, item: int, class_id: int, request: str, own: bool = False) -> int:
        """Change the label of an item that has one, in any round, open or closed; the event's id.

        own: refuse it unless the present label is the person's own.
        """
        with self._db.write() as tx:
            return answers.correct(tx, person, item, class_id, request, own)

    def latest_change(self) -> int:
        """The number of the latest event that is more than a lease: another one means that something has changed."""
        with self._db.read() as tx:
            minor = "('lease', 'renew', 'release', 'guess')"
            row = tx.one(f"SELECT id FROM events WHERE kind NOT IN {minor} ORDER BY id DESC LIMIT 1")
            return 0 if row is None else int(row[0])
