"""The file of a label store: its version, and what its triggers keep."""

from __future__ import annotations

import random
import sqlite3

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Pick, Store
from accuacl.labeling.store import schema


def ask(path, statement):
    db = sqlite3.connect(path)
    try:
        return db.execute(statement).fetchall()
    finally:
        db.close()


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


def test_an_older_file_is_refused_in_a_sentence_and_left_alone(tmp_path):
    path = tmp_path / "labels.sqlite"
    for version in range(schema.VERSION):
        path.unlink(missing_ok=True)
        ask(path, "CREATE TABLE people (id INTEGER PRIMARY KEY)")
        ask(path, f"PRAGMA user_version = {version}")
        before = path.read_bytes()
        with pytest.raises(
            InputError, match=rf"before the first release of accuacl \(.* version {version}, .* make a new project"
        ):
            Store(path)
        assert path.read_bytes() == before


def test_tables_that_cannot_be_made_leave_an_empty_file_for_the_next_try(tmp_path, monkeypatch):
    path = tmp_path / "labels.sqlite"
    with monkeypatch.context() as patched:
        patched.setattr(schema, "APPEND_ONLY", {"wrong": "INSERT INTO nowhere"})
        with pytest.raises(sqlite3.OperationalError):  # a bug, not the user's: with its traceback
            Store(path)
    assert ask(path, "SELECT name FROM sqlite_master") == []
    assert ask(path, "PRAGMA user_version") == [(0,)]
    with Store(path) as store:
        assert store.classes() == []


def test_what_follows_from_events_is_what_going_through_them_gives(tmp_path):
    """`state` and `tally`, which triggers keep, against their definitions, after random events."""
    rng = random.Random(0)
    with Store(tmp_path / "labels.sqlite") as store:
        for name in ("cat", "dog"):
            store.add_class(name)
        people = [store.person_of(store.add_person(name)) for name in ("Ada", "Bob", "Eve")]
        for round in range(2):
            store.open_round(0, round, [Pick(12 * round + i, i) for i in range(12)], range(12 * round, 12 * round + 6))
            for step in range(200):
                try:
                    _do_something(store, rng, rng.choice(people), rng.randrange(24), f"{round} {step}")
                except InputError:
                    continue
            _check_state(tmp_path / "labels.sqlite")
            store.enough(people[0])
            store.close_round(0, round)
        store.forget([3, 13])
    _check_state(tmp_path / "labels.sqlite")


def _do_something(store, rng, person, item, request):
    act = rng.randrange(8)
    if act == 0:
        store.lease(person)
    elif act == 1:
        store.release(person, item)
    elif act in (2, 3):
        store.label(person, item, rng.randrange(2), request)
    elif act == 4:
        store.skip(person, item, request)
    elif act == 5:
        store.undo(person, request)
    elif act == 6:
        store.correct(person, item, rng.randrange(2), request)
    else:
        store.relabel(person, [item], rng.randrange(2), request)


def _check_state(path):
    events = ask(path, "SELECT id, kind, person, item, undoes FROM events WHERE item IS NOT NULL ORDER BY id")
    undone = {undoes for *_, undoes in events if undoes is not None}
    state, tally = {}, {}
    for item, task, round in ask(path, "SELECT item, task, round FROM picks"):
        own = [event for event in events if event[3] == item]
        stands = [(id, kind) for id, kind, *_ in own if kind in ("label", "skip", "correct") and id not in undone]
        answer, kind = stands[-1] if stands else (None, None)
        holding = [event for event in own if event[1] in ("lease", "renew", "release", "label", "skip", "opinion")]
        lease = holding[-1] if holding and holding[-1][1] in ("lease", "renew") else None
        opinions = sum(kind == "opinion" and id not in undone for id, kind, *_ in own)
        state[item] = (answer, int(kind == "skip"), lease and lease[0], lease and lease[2], opinions)
        total, answered, skipped = tally.get((task, round), (0, 0, 0))
        tally[task, round] = (total + 1, answered + (answer is not None), skipped + (kind == "skip"))
    rows = ask(path, "SELECT item, answer, skipped, lease, person, opinions FROM state")
    assert {item: tuple(rest) for item, *rest in rows} == state
    rows = ask(path, "SELECT task, round, total, answered, skipped FROM tally")
    assert {(task, round): tuple(counts) for task, round, *counts in rows} == tally
    assert len(events) > 50


@pytest.mark.parametrize("name", ["a#b", "what?mode=ro", "50%20", "ü &"])
def test_any_folder_name_will_do(tmp_path, name):
    (tmp_path / name).mkdir()
    with Store(tmp_path / name / "labels.sqlite") as store:
        store.add_class("cat")
        store.open_round(0, 0, [Pick(0, 0)])
    assert {path.name for path in tmp_path.iterdir()} == {name}
    with Store(tmp_path / name / "labels.sqlite") as store:
        assert [c.name for c in store.classes()] == ["cat"]
