"""Threads that write at the same time share a transaction: each is kept or undone apart, none returns too early."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Pick, Store
from accuacl.labeling.store import StoreUnavailable
from accuacl.labeling.store.database import Transaction, Writers
from effort import PATIENCE, wait_until


class Watched:
    """A connection that counts commits, and can be told to fail at the next."""

    def __init__(self, path):
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.commits, self.fails = 0, None

    def execute(self, statement, values=()):
        if statement == "COMMIT":
            if self.fails:
                raise self.fails
            self.commits += 1
        return self.db.execute(statement, values)

    @property
    def in_transaction(self):
        return self.db.in_transaction


@pytest.fixture
def db(tmp_path):
    watched = Watched(tmp_path / "some.sqlite")
    watched.execute("CREATE TABLE said (who)")
    yield watched
    watched.db.close()


@pytest.fixture
def writers(db):
    return Writers(lambda: db, lambda back: None)


def said(db):
    return sorted(who for (who,) in db.execute("SELECT who FROM said"))


def at_once(writers, db, names, act=None):
    """All of them write: the first holds its turn until the others wait. What each came to, by name."""
    results, held = {}, threading.Event()

    def write(name):
        try:
            with writers.turn() as mine:
                mine.execute("INSERT INTO said VALUES (?)", (name,))
                if name == names[0]:
                    held.set()
                    wait_until(lambda: writers._waiting == len(names) - 1)
                if act:
                    act(name)
            results[name] = "ok"
        except BaseException as error:
            results[name] = type(error).__name__

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    threads[0].start()
    assert held.wait(PATIENCE)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return results


def test_one_commit_for_all_who_wait(writers, db):
    assert set(at_once(writers, db, list("abcdef")).values()) == {"ok"}
    assert said(db) == list("abcdef")
    assert db.commits == 1
    assert at_once(writers, db, ["g"]) == {"g": "ok"}
    assert db.commits == 2


def test_what_one_is_refused_is_undone_and_the_others_are_kept(writers, db):
    def refuse(name):
        if name in "be":
            raise InputError("no.")

    results = at_once(writers, db, list("abcde"), refuse)
    assert results == {"a": "ok", "b": "InputError", "c": "ok", "d": "ok", "e": "InputError"}
    assert said(db) == list("acd")


def test_a_commit_that_fails_has_failed_for_each(writers, db):
    db.fails = sqlite3.OperationalError("disk I/O error")
    assert at_once(writers, db, list("abc")) == dict.fromkeys("abc", "OperationalError")
    db.fails = None
    assert said(db) == []
    assert at_once(writers, db, list("de")) == {"d": "ok", "e": "ok"}
    assert said(db) == ["d", "e"]


def test_where_sqlite_rolls_all_back_everybody_before_is_told(writers, db):
    lost = []

    def full(name):
        if name != "a" and not lost:
            lost.append(name)
            db.execute("ROLLBACK")
            raise sqlite3.OperationalError("database or disk is full")

    results = at_once(writers, db, list("abc"), full)
    assert results["a"] == results[lost[0]] == "OperationalError"
    (other,) = set("bc") - set(lost)
    assert results[other] == "ok"
    assert said(db) == [other]


def test_somebody_commits_for_one_who_was_interrupted_in_the_queue(writers, db, monkeypatch):
    monkeypatch.setattr("accuacl.labeling.store.database.PATIENCE", 0.01)
    writers._waiting = 1  # somebody who will never come
    try:
        with writers.turn() as mine:
            mine.execute("INSERT INTO said VALUES ('a')")
    finally:
        writers._waiting = 0
    assert said(db) == ["a"]


def test_a_transaction_that_cannot_begin_lets_the_next_one_try(db):
    tries = []

    def take():
        tries.append(1)
        if len(tries) == 1:
            raise sqlite3.OperationalError("unable to open database file")
        return db

    writers = Writers(take, lambda back: None)
    with pytest.raises(sqlite3.OperationalError), writers.turn():
        pass
    with writers.turn() as mine:
        mine.execute("INSERT INTO said VALUES ('b')")
    assert said(db) == ["b"]


def test_labels_of_many_threads_need_fewer_syncs_and_a_full_disk_is_said_to_all(tmp_path, monkeypatch):
    with Store(tmp_path / "labels.sqlite") as store:
        store.add_class("cat")
        people = [store.person_of(store.add_person(f"person {i}")) for i in range(12)]
        store.open_round(0, 0, [Pick(i, i) for i in range(12)])
        outcomes, ready = [], threading.Barrier(len(people))

        def label(i):
            ready.wait(PATIENCE)
            try:
                outcomes.append(store.label(people[i], i, 0, f"request {i}"))
            except StoreUnavailable as error:
                outcomes.append(str(error))

        def full(*_, **__):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error

        for broken in (True, False):
            with monkeypatch.context() as patched:
                if broken:
                    patched.setattr(Transaction, "event", full)
                threads = [threading.Thread(target=label, args=(i,)) for i in range(12)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(PATIENCE)
            assert len(outcomes) == 12
            assert all(("cannot be read or written" in str(one)) == broken for one in outcomes)
            assert len(store.labels()) == (0 if broken else 12)
            outcomes.clear()
