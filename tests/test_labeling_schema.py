"""The file of a label store outlives versions of this package: older ones are upgraded, newer ones refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Class, Pick, Store
from accuacl.labeling.store import schema

EARLIER = Path(__file__).parent / "earlier" / "labels-0.sql"


def ask(path, statement):
    db = sqlite3.connect(path)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


@pytest.fixture
def earlier(tmp_path):
    """A store as it was written before its schema had a version, in the middle of a task's second round."""
    path = tmp_path / "labels.sqlite"
    db = sqlite3.connect(path)
    db.executescript(EARLIER.read_text())
    db.close()
    assert ask(path, "PRAGMA user_version") == [(0,)]
    return path


def test_a_store_from_before_versions_is_upgraded_with_all_that_it_holds(earlier):
    with Store(earlier) as store:
        assert [(p.name, p.revoked) for p in store.people()] == [("Ada", False), ("Grace", False), ("Eve", True)]
        assert store.classes() == [Class(0, "Even"), Class(1, "odd"), Class(2, "uneven", 1), Class(3, "=never used")]
        assert store.labels() == {0: 0, 1: 1, 4: 0, 10: 0, 16: 0, 19: 1, 20: 0, 25: 1, 27: 1}
        assert store.close_round(0, 0) == {10: 0, 18: -1, 27: 2, 25: 1, 4: 0, 20: 1, 0: 0, 16: 0}
        ada = store.people()[0]
        while (pick := store.lease(ada)) is not None:
            store.label(ada, pick.item, 0, f"request {pick.item}")
        assert len(store.close_round(0, 1)) == store.status().total
    assert ask(earlier, "PRAGMA user_version") == [(schema.VERSION,)]
    assert ask(earlier, "PRAGMA journal_mode") == [("wal",)]


def test_a_store_of_one_label_an_item_takes_second_opinions_from_its_next_round_on(tmp_path):
    """Version 2, as it was written before two people were asked about the same item."""
    path = tmp_path / "labels.sqlite"
    db = sqlite3.connect(path)
    for statement in (statement for statements in schema.MIGRATIONS[:2] for statement in statements):
        db.execute(statement)
    db.execute("PRAGMA user_version = 2")
    db.executescript(
        """
        INSERT INTO people VALUES (0, 'Ada', ''), (1, 'Bob', '');
        INSERT INTO classes VALUES (0), (1);
        INSERT INTO events (time, kind, class, text) VALUES (1, 'name', 0, 'cat'), (1, 'name', 1, 'dog');
        INSERT INTO rounds VALUES (0, 0);
        INSERT INTO picks VALUES (5, 0, 0, 0, '{}', NULL, NULL), (6, 0, 0, 1, '{}', 1, 0.5);
        INSERT INTO events (time, kind, person, item, class) VALUES (2, 'label', 0, 5, 1);
        """
    )
    db.close()
    with Store(path) as store:
        ada, bob = store.people()
        assert store.labels() == {5: 1}
        assert store.lease(bob).item == 6  # and nobody is asked about the first one again
        store.label(bob, 6, 0, "request")
        assert store.lease(ada) is None
        assert store.close_round(0, 0) == {5: 1, 6: 0}
        store.open_round(0, 1, [Pick(7, 0)], {7})
        for person in (ada, bob):
            store.label(person, store.lease(person).item, 0, f"of {person.name}")
        assert [(one.item, one.person) for one in store.ratings()] == [(5, 0), (6, 1), (7, 0), (7, 1)]
    assert ask(path, "PRAGMA user_version") == [(schema.VERSION,)]


def test_a_file_of_this_version_is_not_written_to_when_it_is_opened(tmp_path):
    path = tmp_path / "labels.sqlite"
    Store(path).close()
    assert ask(path, "PRAGMA user_version") == [(schema.VERSION,)]
    before = path.read_bytes()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")  # nobody else can write now
    with Store(path) as store:
        assert store.classes() == []
    holder.close()
    assert path.read_bytes() == before


def test_a_newer_file_is_refused_in_a_sentence_and_left_alone(tmp_path):
    path = tmp_path / "labels.sqlite"
    Store(path).close()
    ask(path, f"PRAGMA user_version = {schema.VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(
        InputError, match=r"labels\.sqlite was written by a newer version of accuacl .* upgrade accuacl"
    ):
        Store(path)
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_the_file_as_it_was(earlier, monkeypatch):
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, ["CREATE TABLE more (id)", "INSERT INTO nowhere"]])
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    with pytest.raises(sqlite3.OperationalError):  # a bug, not the user's: with its traceback
        Store(earlier)
    assert ask(earlier, "PRAGMA user_version") == [(0,)]
    assert ask(earlier, "SELECT name FROM sqlite_master WHERE name = 'more'") == []
    monkeypatch.undo()
    with Store(earlier) as store:
        assert len(store.labels()) == 9


def test_a_later_migration_runs_once(earlier, monkeypatch):
    monkeypatch.setattr(schema, "MIGRATIONS", [*schema.MIGRATIONS, ["CREATE TABLE more (id)"]])
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    for _ in range(2):
        with Store(earlier) as store:
            assert len(store.labels()) == 9
    assert ask(earlier, "PRAGMA user_version") == [(len(schema.MIGRATIONS),)]


@pytest.mark.parametrize("name", ["a#b", "what?mode=ro", "50%20", "ü &"])
def test_any_folder_name_will_do(tmp_path, name):
    (tmp_path / name).mkdir()
    with Store(tmp_path / name / "labels.sqlite") as store:
        store.add_class("cat")
        store.open_round(0, 0, [Pick(0, 0)])
    assert {path.name for path in tmp_path.iterdir()} == {name}
    with Store(tmp_path / name / "labels.sqlite") as store:
        assert [c.name for c in store.classes()] == ["cat"]
