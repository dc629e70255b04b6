"""Calls of the store about rounds: picks that are offered, labels that were given, and what is frozen."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from accuacl.labeling.store import given, people, records, rounds
from accuacl.labeling.store.database import Database
from accuacl.labeling.store.given import GivenLabel


class RoundCalls:
    """See above; a part of `Store`."""

    _db: Database

    def open_round(self, task: int, round: int, picks: Sequence[records.Pick], twice: Collection[int] = ()) -> None:
        """Offer picks to people, the items `twice` to two each; the same round again: add those that it has not yet."""
        with self._db.write() as tx:
            rounds.open_round(tx, task, round, picks, twice)

    def begin_round(
        self, task: int, picks: Sequence[records.Pick], twice: Collection[int], labels: Iterable[GivenLabel]
    ) -> None:
        """Offer the first picks of a task, unless it has a round already, and take labels that were there before."""
        with self._db.write() as tx:
            given.begin_round(tx, task, picks, twice, labels)

    def status(self) -> records.Status | None:
        """The state of the latest round; None before the first."""
        with self._db.read() as tx:
            return rounds.status(tx)

    def rounds(self, task: int) -> int:
        """How many rounds of a task there have been."""
        with self._db.read() as tx:
            return int(tx.one("SELECT COUNT(*) FROM rounds WHERE task = ?", task)[0])

    def picks(self, task: int, round: int) -> list[records.Pick]:
        """The round's picks by rank."""
        with self._db.read() as tx:
            return rounds.picks(tx, task, round)

    def used(self, task: int) -> int:
        """How many of the task's items have a label; skipped ones do not count."""
        with self._db.read() as tx:
            return rounds.used(tx, task)

    def used_elsewhere(self, task: int, round: int) -> int:
        """How many items have a label that were asked for in another round, of any task."""
        with self._db.read() as tx:
            return rounds.used_elsewhere(tx, task, round)

    def used_in_all(self) -> int:
        """How many items have a label that were asked for, of all tasks."""
        with self._db.read() as tx:
            return rounds.used_elsewhere(tx, -1, -1)

    def given(self) -> int:
        """How many items of all tasks have a label."""
        with self._db.read() as tx:
            return int(tx.one("SELECT COALESCE(SUM(answered - skipped), 0) FROM tally")[0])

    def rounds_of_items(self) -> dict[int, int]:
        """The round, within its task, in which each item was picked."""
        with self._db.read() as tx:
            return dict(tx.all("SELECT item, round FROM picks"))

    def give(self, task: int, labels: Iterable[GivenLabel]) -> int:
        """Take labels that were there before anybody was asked, of a task that has a round; how many are new."""
        with self._db.write() as tx:
            return given.give(tx, task, labels)

    def unasked(self, task: int) -> list[int]:
        """The items of a task that nobody was asked for: their labels were given."""
        with self._db.read() as tx:
            return given.unasked(tx, task)

    def complete(self, task: int, round: int, share: float = 1.0) -> bool:
        """Whether the round can be closed: this share of its picks is answered, or a lead has said it is enough."""
        with self._db.read() as tx:
            return rounds.complete(tx, task, round, share)

    def enough(self, person: records.Person) -> None:
        """Let the open round be closed with the answers that it has."""
        with self._db.write() as tx:
            people.check(tx, person)
            rounds.enough(tx, person)

    def end_task(self, person: records.Person, task: int) -> None:
        """Let a task end with the answers that it has: its open round is closed, and no other follows."""
        with self._db.write() as tx:
            people.check(tx, person)
            rounds.end_task(tx, person, task)

    def has_ended(self, task: int) -> bool:
        """Whether a lead has ended the task."""
        with self._db.read() as tx:
            return rounds.has_ended(tx, task)

    def close_round(self, task: int, round: int, share: float = 1.0) -> dict[int, int]:
        """Freeze a complete round: {item: class, or -1 if it has none}; closing it again gives the same labels.

        RoundIncomplete: too many picks are neither labelled nor skipped.
        """
        with self._db.write() as tx:
            return rounds.close(tx, task, round, share)

    def seal(self, task: int) -> None:
        """End the correction of labels of a task: of its examples only sums are left."""
        with self._db.write() as tx:
            rounds.seal(tx, task)

    def forget(self, items: Iterable[int]) -> None:
        """Remove all that there is about these items: the one thing that is ever removed."""
        with self._db.write() as tx:
            rounds.forget(tx, items)
