"""The store of a project's labels: its calls are the functions of the other modules, each in its own transaction."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from accuacl.labeling.store import (
    classes as _classes,
    labels as _labels,
    leases as _leases,
    opinions as _opinions,
    people as _people,
    review as _review,
    rounds as _rounds,
)
from accuacl.labeling.store.database import Database, Transaction
from accuacl.labeling.store.records import Person

P = ParamSpec("P")
T = TypeVar("T")


def _methods(
    transaction: Callable[[Database], AbstractContextManager[Transaction]], /
) -> Callable[[Callable[Concatenate[Transaction, P], T]], Callable[Concatenate[Store, P], T]]:
    """Return a decorator that makes a function a method of `Store`, called within a transaction of this kind."""

    def method_of(function: Callable[Concatenate[Transaction, P], T]) -> Callable[Concatenate[Store, P], T]:
        @functools.wraps(function)
        def method(self: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
            with transaction(self._db) as tx:
                return function(tx, *args, **kwargs)

        return method

    return method_of


@contextlib.contextmanager
def _write_through(db: Database) -> Iterator[Transaction]:
    with db.write() as tx:
        yield tx
    db.checkpoint()


read = _methods(Database.read)  # the method sees one consistent state of the database
write = _methods(Database.write)  # the method's changes are on the disk when it returns
write_through = _methods(_write_through)  # as `write`, and the log is emptied, so that it holds no removed data


class Store:
    """A project's `labels.sqlite`: who labels, what there is to label, and what people answered.

    Every label, skip, undo, correction, lease and release is an event with its time and person. Nothing is ever
    overwritten: the last event that has not been undone counts. Each call is one transaction, which is on the disk when
    the call returns; any number of threads and processes may call at once. Wrong input is an InputError; a full disk or
    a damaged file is one of its kind, StoreUnavailable. Tests replace `clock` and `steady`.

        store = Store(Path("labels.sqlite"))
        token = store.add_person("Ada")
        ada = store.person_of(token)
        pick = store.lease(ada)
        store.label(ada, pick.item, class_id=0, request=str(uuid.uuid4()))
    """

    def __init__(
        self, path: Path, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._db = Database(Path(path), clock, steady)

    def close(self) -> None:
        """Close the file; the last process to do so moves all that was written into it."""
        self._db.close()

    def checkpoint(self) -> None:
        """Move all that was written from the log beside the file into the file."""
        self._db.checkpoint()

    def backup(self, path: Path) -> None:
        """Write a copy of the file as of one moment; others may read and write meanwhile."""
        self._db.backup(path)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # People
    people = read(_people.people)
    add_person = write(_people.add_person)
    person_named = write(_people.person_named)
    set_role = write(_people.set_role)
    revoke = write(_people.revoke)
    work = read(_review.work)

    # Invitations and sessions
    invite = write(_people.invite)
    person_of = read(_people.person_of)
    enter = write(_people.enter)
    leave = write(_people.leave)
    logged_in = read(_people.logged_in)

    def person_of_session(self, session: str) -> tuple[Person | None, bool]:
        """Return the person of a session, None if it is over, and whether this use has prolonged it (once a day)."""
        with self._db.read() as tx:
            person, old = _people.find_session(tx, session)
        if old:
            with self._db.write() as tx:
                _people.touch(tx, session)
        return person, old

    # Classes
    classes = read(_classes.classes)
    add_class = write(_classes.add_class)
    rename_class = write(_classes.rename_class)
    merge_class = write(_classes.merge_class)
    class_changes = read(_classes.class_changes)
    undoable_class_changes = read(_classes.undoable_class_changes)
    undo_class_change = write(_classes.undo_class_change)
    guide = write(_classes.guide)
    add_examples = write(_classes.add_examples)
    guidelines = read(_classes.guidelines)
    propose = write(_classes.propose)
    proposals = read(_classes.proposals)
    settle = write(_classes.settle)

    # Rounds, and labels that were there before
    open_round = write(_rounds.open_round)
    begin_round = write(_rounds.begin_round)
    give = write(_rounds.give)
    status = read(_rounds.status)
    rounds = read(_rounds.rounds)
    picks = read(_rounds.picks)
    rounds_of_items = read(_rounds.rounds_of_items)
    unasked = read(_rounds.unasked)
    skipped = read(_rounds.skipped)
    used = read(_rounds.used)
    used_elsewhere = read(_rounds.used_elsewhere)
    used_in_all = read(_rounds.used_in_all)
    given = read(_rounds.given)
    complete = read(_rounds.complete)
    enough = write(_rounds.enough)
    end_task = write(_rounds.end_task)
    has_ended = read(_rounds.has_ended)
    close_round = write_through(_rounds.close_round)
    seal = write(_rounds.seal)
    forget = write_through(_rounds.forget)

    # Leases
    lease = write(_leases.lease)
    held = read(_leases.held)
    renew = write(_leases.renew)
    release = write(_leases.release)
    lease_batch = write(_leases.lease_batch)
    renew_batch = write(_leases.renew_batch)
    release_batch = write(_leases.release_batch)

    # Answers
    turn = write(_labels.turn)
    look = read(_labels.look)
    label = write(_labels.label)
    skip = write(_labels.skip)
    correct = write(_labels.correct)
    undo = write(_labels.undo)
    label_batch = write(_labels.label_batch)
    undo_batch = write(_labels.undo_batch)
    show_guess = write(_labels.show_guess)
    show_guesses = write(_labels.show_guesses)
    guesses_shown = read(_labels.guesses_shown)
    own_answers = read(_labels.own_answers)
    answers = read(_labels.answers)
    labels = read(_labels.labels)
    counts_by_class = read(_labels.counts_by_class)
    counts_by_person = read(_labels.counts_by_person)
    requests = read(_labels.requests)
    latest_change = read(_labels.latest_change)

    # Second opinions, and items whose answers are known
    asks_twice = read(_opinions.asks_twice)
    still_asked = read(_opinions.still_asked)
    ratings = read(_opinions.ratings)
    gold = read(_opinions.gold)
    gold_without_guess = read(_opinions.gold_without_guess)
    has_guesses = read(_opinions.has_guesses)
    gold_ratings = read(_opinions.gold_ratings)
    set_gold = write(_opinions.set_gold)
    mark_gold = write(_opinions.mark_gold)

    # Items on which people disagree
    unsettled = read(_opinions.unsettled)
    disputes = read(_review.disputes)
    decide = write(_review.decide)

    # Review
    everything = read(_review.everything)
    every_answer = read(_review.every_answer)
    history = read(_review.history)
    relabel = write(_review.relabel)
    last_relabel = read(_review.last_relabel)
    undo_relabel = write(_review.undo_relabel)
    comment = write(_review.comment)
    comments = read(_review.comments)
    flag = write(_review.flag)
    unflag = write(_review.unflag)
