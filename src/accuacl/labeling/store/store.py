"""The store of a project's labels, `labels.sqlite`: who labels, what there is to label, and what was said of it.

Every label, skip, undo, correction, lease and release is an event with its time and person; nothing is ever
overwritten, and what holds is the last event that has not been undone. Each call is one transaction, which is on the
disk when the call returns; any number of threads and processes may call at once. Wrong input is a ValueError; a disk
that is full or a file that is damaged an OSError.

    store = Store(Path("labels.sqlite"))
    token = store.add_person("Ada")
    ada = store.person_of(token)
    pick = store.lease(ada)
    store.label(ada, pick.item, class_id=0, request=str(uuid.uuid4()))
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from accuacl.labeling.store import answers, classes, leases, people, rounds
from accuacl.labeling.store.database import Database
from accuacl.labeling.store.records import Answer, Class, Event, Person, Pick, Status

LEASE = 120.0  # seconds


class Store:
    """See above. `clock` and `steady` are time.time and time.monotonic, but for tests."""

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = Database(Path(path), clock, steady)

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # People

    def add_person(self, name: str) -> str:
        """A new person's token: shown once, kept only as its hash."""
        with self._db.write() as tx:
            return people.add(tx, name)

    def person_of(self, token: str) -> Person | None:
        """Whose token it is; None if nobody's, or revoked."""
        with self._db.read() as tx:
            return people.find(tx, token)

    def revoke(self, name: str) -> None:
        """The person's token opens nothing any more; what they have in hand goes back."""
        with self._db.write() as tx:
            people.revoke(tx, name)

    def people(self) -> list[Person]:
        """Everyone there ever was."""
        with self._db.read() as tx:
            return people.everyone(tx)

    # Classes

    def classes(self) -> list[Class]:
        """All classes by number, merged ones too."""
        with self._db.read() as tx:
            return classes.every(tx)

    def add_class(self, name: str, person: Person | None = None) -> Class:
        """A new class, with the next number."""
        with self._db.write() as tx:
            return classes.add(tx, name, person)

    def rename_class(self, id: int, name: str, person: Person | None = None) -> None:
        """Call a class something else; its labels stay."""
        with self._db.write() as tx:
            classes.rename(tx, id, name, person)

    def merge_class(self, id: int, into: int, person: Person | None = None) -> None:
        """All labels of class `id`, old and new, count as those of `into` from now on."""
        with self._db.write() as tx:
            classes.merge(tx, id, into, person)

    # Rounds

    def open_round(self, task: int, round: int, picks: Sequence[Pick]) -> None:
        """Offer picks to people; the same again changes nothing."""
        with self._db.write() as tx:
            rounds.open_round(tx, task, round, picks)

    def status(self) -> Status | None:
        """How far the latest round is; None before the first."""
        with self._db.read() as tx:
            return rounds.status(tx)

    def picks(self, task: int, round: int) -> list[Pick]:
        """The round's picks by rank."""
        with self._db.read() as tx:
            return rounds.picks(tx, task, round)

    def used(self, task: int) -> int:
        """How many labels the task has had; what was skipped costs nothing."""
        with self._db.read() as tx:
            return rounds.used(tx, task)

    def rounds_of_items(self) -> dict[int, int]:
        """The round, within its task, in which each item was picked."""
        with self._db.read() as tx:
            return dict(tx.all("SELECT item, round FROM picks"))

    def complete(self, task: int, round: int) -> bool:
        """Whether each pick of the round is labelled or skipped."""
        with self._db.read() as tx:
            return rounds.complete(tx, task, round)

    def close_round(self, task: int, round: int) -> dict[int, int]:
        """Freeze a complete round: {item: class, or -1 if skipped}. Asked again, the same, whatever was corrected."""
        with self._db.write() as tx:
            return rounds.close(tx, task, round)

    # Leases

    def lease(self, person: Person, seconds: float = LEASE) -> Pick | None:
        """What the person should label next, theirs alone for so many seconds; None if nothing is free."""
        with self._db.write() as tx:
            return leases.lease(tx, person, seconds)

    def held(self, person: Person) -> Pick | None:
        """What the person has in hand."""
        with self._db.read() as tx:
            return leases.held(tx, person)

    def renew(self, person: Person, item: int, seconds: float = LEASE) -> None:
        """Keep the item for so many seconds from now."""
        with self._db.write() as tx:
            leases.renew(tx, person, item, seconds)

    def release(self, person: Person, item: int) -> None:
        """Give the item back."""
        with self._db.write() as tx:
            leases.release(tx, person, item)

    # Answers. `request` is made up by the client: the same request again returns the same and adds nothing.

    def label(self, person: Person, item: int, class_id: int, request: str) -> int:
        """Say what an item of the open round is; the event's id."""
        with self._db.write() as tx:
            return answers.label(tx, person, item, class_id, request)

    def skip(self, person: Person, item: int, request: str) -> int:
        """Say that an item of the open round cannot be labelled; the event's id."""
        with self._db.write() as tx:
            return answers.skip(tx, person, item, request)

    def undo(self, person: Person, request: str, seconds: float = LEASE) -> int | None:
        """Take back the person's last label or skip in the open round; the item, which is theirs again, or None."""
        with self._db.write() as tx:
            return answers.undo(tx, person, seconds, request)

    def correct(self, person: Person, item: int, class_id: int, request: str) -> int:
        """Change the label of an item that has one, in any round, open or closed; the event's id."""
        with self._db.write() as tx:
            return answers.correct(tx, person, item, class_id, request)

    def answers(self, items: Iterable[int] | None = None) -> list[Answer]:
        """What holds now for each item, labelled or skipped, merges applied, with its person and time."""
        with self._db.read() as tx:
            return answers.answers(tx, items)

    def labels(self, items: Iterable[int] | None = None) -> dict[int, int]:
        """The class of each labelled item now, merges applied."""
        return {a.item: a.class_id for a in self.answers(items) if a.class_id is not None}

    def history(self, item: int) -> list[Event]:
        """Everything that ever happened to an item."""
        with self._db.read() as tx:
            return answers.history(tx, item)

    def requests(self, prefix: str) -> dict[str, Event]:
        """What came of the requests that begin so, first to last."""
        with self._db.read() as tx:
            return answers.requests(tx, prefix)

    def counts_by_class(self) -> dict[int, int]:
        """How many items have each class now."""
        return dict(sorted(Counter(self.labels().values()).items()))

    def counts_by_person(self) -> dict[int, int]:
        """How many of the labels that hold now each person gave."""
        counts = Counter(a.person for a in self.answers() if a.class_id is not None and a.person is not None)
        return dict(sorted(counts.items()))
