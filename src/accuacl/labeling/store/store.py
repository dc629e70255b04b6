"""The store of a project's labels, `labels.sqlite`: who labels, what there is to label, and what people answered.

Every label, skip, undo, correction, lease and release is an event with its time and person. Nothing is ever
overwritten: the last event that has not been undone counts. Each call is one transaction, which is on the disk when
the call returns; any number of threads and processes may call at once. Wrong input is an InputError; a full disk or a
damaged file is one of its kind, StoreUnavailable.

    store = Store(Path("labels.sqlite"))
    token = store.add_person("Ada")
    ada = store.person_of(token)
    pick = store.lease(ada)
    store.label(ada, pick.item, class_id=0, request=str(uuid.uuid4()))
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from accuacl.labeling.store import (
    answers,
    batches,
    classes,
    flags,
    given,
    guidelines,
    leases,
    opinions,
    people,
    records,
    review,
    rounds,
    sessions,
    work,
)
from accuacl.labeling.store.database import Database
from accuacl.labeling.store.given import GivenLabel
from accuacl.labeling.store.leases import NOTHING, Expected

LEASE = 120.0  # seconds
MANY = 100
AHEAD = 3  # items that a person is told of before they are leased, so that the page can load them


class Store:
    """See above. Tests replace `clock` and `steady`, which are time.time and time.monotonic."""

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

    def add_person(self, name: str, lead: bool | None = None) -> str:
        """Add a person and invite them; lead None: only if nobody else is one."""
        with self._db.write() as tx:
            return sessions.invite_person(tx, people.add(tx, name, lead))

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

    def person_of_session(self, session: str) -> records.Person | None:
        """Whose session it is; None if it is over. Its use keeps it going."""
        with self._db.read() as tx:
            person, old = sessions.person_of(tx, session)
        if old:
            with self._db.write() as tx:
                sessions.touch(tx, session)
        return person

    def leave(self, session: str) -> None:
        """End a session."""
        with self._db.write() as tx:
            sessions.leave(tx, session)

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

    # Classes

    def classes(self) -> list[records.Class]:
        """All classes by number, merged ones too."""
        with self._db.read() as tx:
            return classes.every(tx)

    def add_class(self, name: str, person: records.Person | None = None) -> records.Class:
        """Add a class, with the next number."""
        with self._db.write() as tx:
            return classes.add(tx, name, person)

    def rename_class(self, id: int, name: str, person: records.Person | None = None) -> None:
        """Give a class another name; its labels stay."""
        with self._db.write() as tx:
            classes.rename(tx, id, name, person)

    def merge_class(self, id: int, into: int, person: records.Person | None = None) -> None:
        """From now on all labels of class `id`, old and new, count as labels of `into`."""
        with self._db.write() as tx:
            classes.merge(tx, id, into, person)

    def class_changes(self) -> list[records.ClassChange]:
        """The latest additions, renamings and merges, the last first; only that one can be undone."""
        with self._db.read() as tx:
            return classes.changes(tx)

    def undo_class_change(self, person: records.Person, event: int) -> records.ClassChange:
        """Undo the latest change of classes; what it was."""
        with self._db.write() as tx:
            return classes.undo(tx, person, event)

    def guide(self, person: records.Person, class_id: int, text: str, examples: Sequence[int] = ()) -> None:
        """Say what a class means, and which items show it."""
        with self._db.write() as tx:
            guidelines.guide(tx, person, class_id, text, examples)

    def guidelines(self) -> dict[int, records.Guideline]:
        """What classes mean, of those for which it has been said."""
        with self._db.read() as tx:
            return guidelines.guidelines(tx)

    def propose(self, person: records.Person, name: str, request: str) -> records.Proposal:
        """Propose a class."""
        with self._db.write() as tx:
            return guidelines.propose(tx, person, name, request)

    def proposals(self) -> list[records.Proposal]:
        """The classes that were proposed and wait for a lead."""
        with self._db.read() as tx:
            return guidelines.proposals(tx)

    def settle(self, person: records.Person, proposal: int, name: str | None) -> int | None:
        """Add a class that was proposed, under that name; name None: do not."""
        with self._db.write() as tx:
            return guidelines.settle(tx, person, proposal, name)

    # Rounds

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

    def picks(self, task: int, round: int) -> list[records.Pick]:
        """The round's picks by rank."""
        with self._db.read() as tx:
            return rounds.picks(tx, task, round)

    def used(self, task: int) -> int:
        """How many of the task's items have a label; skipped ones do not count."""
        with self._db.read() as tx:
            return rounds.used(tx, task)

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
        """Items with a guess, leased to the person; it is recorded that they have been shown the guesses."""
        with self._db.write() as tx:
            return batches.lease(tx, person, most, seconds, expected)

    def renew_batch(self, person: records.Person, items: Sequence[int], seconds: float = LEASE) -> list[int]:
        """Extend the person's leases; the items that they have lost meanwhile."""
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

    def correct(self, person: records.Person, item: int, class_id: int, request: str) -> int:
        """Change the label of an item that has one, in any round, open or closed; the event's id."""
        with self._db.write() as tx:
            return answers.correct(tx, person, item, class_id, request)

    def latest_change(self) -> int:
        """The number of the latest event that is more than a lease: another one means that something has changed."""
        with self._db.read() as tx:
            minor = "('lease', 'renew', 'release', 'guess')"
            row = tx.one(f"SELECT id FROM events WHERE kind NOT IN {minor} ORDER BY id DESC LIMIT 1")
            return 0 if row is None else int(row[0])

    # Opinions, and items whose answers are known

    def opinions_wanted(self, person: records.Person) -> int:
        """About how many items of the open round the person can be asked for a second opinion now."""
        with self._db.read() as tx:
            current = rounds.open_now(tx)
            return 0 if current is None else len(opinions.wanted(tx, person, current, MANY))

    def ratings(self) -> list[records.Rating]:
        """All labels that people have given by themselves: first ones and second opinions, not corrections."""
        with self._db.read() as tx:
            return opinions.ratings(tx)

    def gold(self) -> dict[int, int]:
        """The items whose answers are known, with their classes."""
        with self._db.read() as tx:
            return opinions.gold(tx)

    def set_gold(self, known: Mapping[int, int]) -> None:
        """Make items gold, whether they have been picked or not: {item: the known class}."""
        with self._db.write() as tx:
            opinions.set_gold(tx, known)

    def mark_gold(self, person: records.Person, items: Sequence[int], gold: bool = True) -> int:
        """Make labelled items gold, with the labels they have, or ordinary again; how many."""
        with self._db.write() as tx:
            return opinions.mark_gold(tx, person, items, gold)

    # Review

    def everything(self) -> list[records.Reviewed]:
        """All items that were ever offered, with their present answers."""
        with self._db.read() as tx:
            return review.everything(tx)

    def relabel(self, person: records.Person, items: Sequence[int], class_id: int, request: str) -> int:
        """Give items another label, skipped ones too; how many. A request sent again changes nothing."""
        with self._db.write() as tx:
            return review.relabel(tx, person, items, class_id, request)

    def comment(self, person: records.Person, items: Sequence[int], text: str, request: str) -> None:
        """Write a comment to items."""
        with self._db.write() as tx:
            review.comment(tx, person, items, text, request)

    def flag(self, person: records.Person, item: int, reason: str, request: str) -> None:
        """Ask a lead to look at an item."""
        with self._db.write() as tx:
            flags.flag(tx, person, item, reason, request)

    def unflag(self, person: records.Person, items: Sequence[int]) -> int:
        """Take down the flags of items; how many there were."""
        with self._db.write() as tx:
            return flags.unflag(tx, person, items)

    def answers(self, items: Iterable[int] | None = None) -> list[records.Answer]:
        """The present answer for each item that has one: its class with merges applied, who gave it and when."""
        with self._db.read() as tx:
            return answers.answers(tx, items)

    def labels(self, items: Iterable[int] | None = None) -> dict[int, int]:
        """The present class of each labelled item, merges applied."""
        return {a.item: a.class_id for a in self.answers(items) if a.class_id is not None}

    def history(self, item: int) -> list[records.LabelEvent]:
        """Everything that ever happened to an item."""
        with self._db.read() as tx:
            return answers.history(tx, item)

    def requests(self, prefix: str) -> dict[str, records.LabelEvent]:
        """The events of the requests that begin with `prefix`, first to last."""
        with self._db.read() as tx:
            return answers.requests(tx, prefix)

    def counts_by_class(self) -> dict[int, int]:
        """How many items have each class."""
        return dict(sorted(Counter(self.labels().values()).items()))

    def counts_by_person(self) -> dict[int, int]:
        """How many of the present labels each person gave."""
        counts = Counter(a.person for a in self.answers() if a.class_id is not None and a.person is not None)
        return dict(sorted(counts.items()))
