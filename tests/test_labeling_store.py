"""The store: nothing overwritten, nothing lost, nobody given what someone else has in hand."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Class, Pick, Store
from accuacl.labeling.store import Act, Expected, RoundIncomplete, StoreUnavailable, schema
from effort import times, wait_until


class Clock:
    """A wall clock and a steady one, both set by hand."""

    def __init__(self):
        self.wall, self.steady = 1000.0, 0.0

    def wait(self, seconds):
        self.wall += seconds
        self.steady += seconds


def request():
    return uuid.uuid4().hex


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "labels.sqlite", lambda: clock.wall, lambda: clock.steady) as store:
        store.add_class("cat")
        store.add_class("dog")
        yield store


def opened(store, count=4, task=0, round=0, first=10):
    store.open_round(task, round, [Pick(first + i, i, {"magnitude": 1.0 - i / 8}, 1, 0.5) for i in range(count)])


def test_tokens_are_shown_once_and_open_until_revoked(tmp_path, store):
    token = store.add_person("  Ada  Lovelace ")
    assert len(token) >= 43
    assert store.person_of(token).name == "Ada Lovelace"
    for wrong in ("", "x", token[:-1], token + "x", "\udc80"):
        assert store.person_of(wrong) is None
    assert token.encode() not in b"".join(p.read_bytes() for p in tmp_path.iterdir())
    with pytest.raises(InputError, match="there is already a person 'Ada Lovelace'"):
        store.add_person("Ada Lovelace")
    store.revoke("Ada Lovelace")
    assert store.person_of(token) is None
    assert [(p.name, p.revoked) for p in store.people()] == [("Ada Lovelace", True)]
    with pytest.raises(InputError, match="there is no person"):
        store.revoke("Ada Lovelace")
    again = store.person_of(store.add_person("Ada Lovelace"))  # a new person with the same name
    assert again.id == 1


def test_a_revoked_person_writes_nothing_and_gives_back_what_they_had(store, ada, bob):
    opened(store)
    assert store.lease(ada).item == 10
    store.revoke("Ada")
    assert store.lease(bob).item == 10
    with pytest.raises(InputError, match="has no access to this project"):
        store.label(ada, 11, 0, request())
    with pytest.raises(InputError, match="has no access to this project"):
        store.lease(ada)


@pytest.mark.parametrize("name", ["", "   ", "x" * 101, "a\x00b", "a\u202eb"])
def test_names_are_checked(store, name):
    for make in (store.add_class, store.add_person, lambda name: store.rename_class(0, name)):
        with pytest.raises(InputError, match="cannot be called"):
            make(name)


def test_classes_are_numbered_for_ever_renamed_and_merged(store, ada):
    opened(store, 3)
    for item, c in ((10, 0), (11, 1), (12, 1)):
        store.label(ada, item, c, request())
    assert store.add_class(" kitten \n", ada) == Class(2, "kitten")
    store.rename_class(1, "hound", ada)
    store.rename_class(1, "hound", ada)
    with pytest.raises(InputError, match="there is already a class 'hound'"):
        store.add_class("hound")
    store.merge_class(2, 0, ada)
    store.merge_class(0, 1, ada)
    assert store.classes() == [Class(0, "cat", 1), Class(1, "hound"), Class(2, "kitten", 0)]
    assert store.labels() == {10: 1, 11: 1, 12: 1}
    for wrong in (lambda: store.merge_class(1, 2), lambda: store.merge_class(0, 1), lambda: store.rename_class(2, "x")):
        with pytest.raises(InputError, match="has been merged into another"):
            wrong()
    for wrong in (lambda: store.merge_class(1, 7), lambda: store.rename_class(7, "x")):
        with pytest.raises(InputError, match="there is no class 7"):
            wrong()
    with pytest.raises(InputError, match="merged into itself"):
        store.merge_class(1, 1)
    assert store.add_class("cat").id == 3  # a name is free again once its class is merged away
    assert store.counts_by_class() == {1: 3}


def test_a_class_renamed_and_merged_while_a_round_is_open(store, ada, bob):
    opened(store, 3)
    store.label(ada, 10, 0, request())
    store.rename_class(0, "lion", bob)
    store.merge_class(0, 1, bob)
    store.label(ada, 11, 0, request())  # her page does not know yet: it stands for what it was merged into
    store.skip(ada, 12, request())
    assert store.close_round(0, 0) == {10: 1, 11: 1, 12: -1}
    assert [e.class_id for e in store.history(10)] == [0]  # what she said is kept as she said it


def test_a_round_opens_once_and_is_the_same_again(store, ada):
    assert store.status() is None
    assert store.lease(ada) is None
    opened(store)
    opened(store)
    state = store.status()
    assert (state.task, state.round, state.total, state.labelled, state.skipped, state.leased, state.open) == (
        *(0, 0, 4, 0, 0, 0),
        True,
    )
    with pytest.raises(InputError, match="opened with other picks"):
        opened(store, 3)
    with pytest.raises(InputError, match="item 10 is offered a second time"):
        opened(store, round=1)
    with pytest.raises(InputError, match="item 90 is offered a second time"):
        store.open_round(0, 1, [Pick(90, 0), Pick(90, 1)])
    assert store.picks(0, 0)[1] == Pick(11, 1, {"magnitude": 0.875}, 1, 0.5)


def test_a_large_round_opens_in_few_statements(tmp_path, monkeypatch):
    """Nobody can save a label while a round is opened, and other threads may interrupt it between two statements."""
    statements = []

    class Counting(sqlite3.Connection):
        def execute(self, statement, *values):
            statements.append(statement)
            return super().execute(statement, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **more: connect(*given, **more, factory=Counting))
    picks = [Pick(i, i, {"magnitude": i / 7}, i % 3, 1 / (i + 1)) for i in range(950)]
    with Store(tmp_path / "large.sqlite") as large:
        large.open_round(0, 0, picks[:300])
        statements.clear()
        large.open_round(0, 0, picks, {949})
        assert len(statements) < 25
        assert large.picks(0, 0) == picks
        assert large.status().total == 950


def test_a_round_closes_when_each_pick_is_labelled_or_skipped(store, ada):
    opened(store, 2)
    with pytest.raises(InputError, match="there is no round 1 of task 2"):
        store.close_round(1, 0)
    with pytest.raises(RoundIncomplete, match="is not complete: 2 of 2 are neither labelled nor skipped") as refused:
        store.close_round(0, 0)
    assert (refused.value.task, refused.value.round, refused.value.left, refused.value.total) == (0, 0, 2, 2)
    store.label(ada, 10, 1, request())
    assert not store.complete(0, 0)
    store.skip(ada, 11, request())
    assert store.complete(0, 0)
    assert store.status().open
    assert not store.complete(0, 1)
    assert store.close_round(0, 0) == {10: 1, 11: -1}
    assert not store.status().open
    store.correct(ada, 10, 0, request())
    assert store.close_round(0, 0) == {10: 1, 11: -1}  # frozen
    assert store.labels() == {10: 0}
    assert store.lease(ada) is None
    assert store.undo(ada, request()) is None
    for late in (lambda: store.label(ada, 11, 0, request()), lambda: store.skip(ada, 10, request())):
        with pytest.raises(InputError, match="is closed; correct its label"):
            late()
    with pytest.raises(InputError, match="item 11 has no label"):
        store.correct(ada, 11, 0, request())
    opened(store, 2, round=1, first=20)
    assert store.status().round == 1
    assert store.lease(ada).item == 20
    store.correct(ada, 10, 1, request())  # of the earlier round, while this one is open
    assert store.labels() == {10: 1}


def test_an_empty_round_is_complete(store):
    store.open_round(0, 0, [])
    assert store.complete(0, 0)
    assert store.close_round(0, 0) == {}


def test_leases_go_by_rank_to_one_person_each_and_come_back(store, ada, bob, clock):
    opened(store)
    assert store.lease(ada, 120).item == 10
    assert store.lease(ada, 120).item == 10
    assert store.lease(bob, 60).item == 11
    assert store.status().leased == 2
    clock.wait(61)
    assert store.status().leased == 1
    assert store.lease(bob, 60).item == 11  # free again, and still the best
    clock.wait(61)
    assert store.lease(bob).item == 10  # Ada's has run out too
    with pytest.raises(InputError, match="someone else has item 10 now"):
        store.label(ada, 10, 0, request())
    with pytest.raises(InputError, match="someone else has item 10 now"):
        store.renew(ada, 10)
    store.release(ada, 10)  # not hers: nothing happens
    assert store.lease(bob).item == 10
    store.release(bob, 10)
    for item in (10, 13):
        with pytest.raises(InputError, match=f"you do not have item {item}; take the next one"):
            store.renew(ada, item)  # nobody's, and not hers
    assert store.lease(ada, 5).item == 10
    clock.wait(6)
    store.renew(ada, 10)  # hers still, since nobody has taken it
    assert store.lease(bob).item == 11
    assert store.label(ada, 12, 0, request())  # nobody's: allowed
    assert {e.kind for e in store.history(10)} == {"lease", "release", "renew"}
    with pytest.raises(InputError, match="item 99 has not been picked"):
        store.label(ada, 99, 0, request())
    with pytest.raises(InputError, match="there is no class 9"):
        store.label(ada, 10, 9, request())


def test_a_late_label_after_somebody_elses_is_refused(store, ada, bob, clock):
    opened(store)
    store.lease(ada, 10)
    clock.wait(11)
    store.lease(bob)
    store.label(bob, 10, 1, request())
    with pytest.raises(InputError, match="is already labelled or skipped"):
        store.label(ada, 10, 0, request())
    assert store.labels() == {10: 1}


def test_undo_goes_back_any_number_of_steps_and_only_through_ones_own(store, ada, bob):
    opened(store, 6)
    for c in (0, 1, 0):
        store.label(ada, store.lease(ada).item, c, request())
    store.label(bob, store.lease(bob).item, 1, request())
    store.skip(ada, store.lease(ada).item, request())
    assert store.lease(ada).item == 15
    assert [store.undo(ada, request()) for _ in range(5)] == [14, 12, 11, 10, None]
    assert store.labels() == {13: 1}
    assert [store.label(ada, store.lease(ada).item, 1, request()) > 0 for _ in range(5)] == [True] * 5
    assert store.complete(0, 0)
    assert [e.kind for e in store.history(10)] == ["lease", "label", "undo", "lease", "label"]
    assert store.undo(bob, request()) == 13
    assert not store.complete(0, 0)
    assert store.lease(ada) is None  # Bob has it


def test_undo_leaves_what_was_corrected_since(store, ada, bob):
    opened(store)
    store.label(ada, 10, 0, request())
    store.label(ada, 11, 0, request())
    store.correct(bob, 11, 1, request())
    assert store.undo(ada, request()) == 10
    assert store.labels() == {11: 1}
    assert store.undo(bob, request()) is None
    assert store.counts_by_person() == {bob.id: 1}


def test_the_same_request_again_adds_nothing(store, ada, bob):
    opened(store)
    one, two, three, four = (request() for _ in range(4))
    assert store.label(ada, 10, 0, one) == store.label(ada, 10, 0, one)
    assert store.skip(ada, 11, two) == store.skip(ada, 11, two)
    assert store.undo(ada, three) == store.undo(ada, three) == 11
    assert store.label(ada, 10, 0, one)  # also much later
    assert store.correct(ada, 10, 1, four) == store.correct(ada, 10, 1, four)
    assert [e.kind for e in store.history(10)] == ["label", "correct"]
    for wrong in (
        lambda: store.label(ada, 10, 1, one),
        lambda: store.label(ada, 12, 0, one),
        lambda: store.label(bob, 10, 0, one),
        lambda: store.skip(ada, 10, one),
        lambda: store.undo(ada, one),
    ):
        with pytest.raises(InputError, match="already used for something else"):
            wrong()
    for wrong in ("", "x" * 101):
        with pytest.raises(InputError, match="a request id has"):
            store.label(ada, 12, 0, wrong)


def test_a_retry_succeeds_after_the_round_closed_and_the_person_left(store, ada):
    opened(store, 1)
    one = request()
    event = store.label(ada, 10, 0, one)
    store.close_round(0, 0)
    store.revoke("Ada")
    assert store.label(ada, 10, 0, one) == event


def test_time_never_goes_backwards_nor_stands_still(store, ada, bob, clock):
    opened(store)
    store.lease(ada, 60)
    clock.wall -= 500_000  # somebody set the clock
    store.label(bob, 11, 0, request())
    times = [e.time for item in (10, 11) for e in store.history(item)]
    assert times == [1000.0, 1000.0]
    assert store.lease(bob).item == 12
    clock.wait(30)
    assert store.lease(ada).item == 10
    clock.wait(31)
    assert store.status().leased == 1  # Ada's has run out all the same
    clock.wall = 5000.0
    store.skip(bob, 12, request())
    assert [e.time for e in store.history(12)][-1] == 5000.0


def test_nothing_can_be_changed_or_removed(tmp_path, store, ada):
    opened(store)
    store.label(ada, 10, 0, request())
    db = sqlite3.connect(tmp_path / "labels.sqlite")
    for table in ("people", "classes", "rounds", "picks", "events"):
        with pytest.raises(sqlite3.IntegrityError, match="nothing here is ever changed"):
            db.execute(f"DELETE FROM {table}")
    with pytest.raises(sqlite3.IntegrityError, match="nothing here is ever changed"):
        db.execute("UPDATE events SET class = 1")
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()


def test_a_full_disk_is_said_and_leaves_no_trace(store, ada):
    opened(store)
    (db,) = store._db._idle
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    labelled = 0
    with pytest.raises(StoreUnavailable, match=r"written \(no space left on device\); nothing was saved"):  # noqa: PT012
        while True:
            store.add_class(f"{labelled} " + "x" * 90, ada)
            labelled += 1
    db.execute("PRAGMA max_page_count = 1000000")
    assert len(store.classes()) == 2 + labelled
    assert store.label(ada, 10, 0, request())


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "labels.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreUnavailable, match=r"labels\.sqlite cannot be read") as refused:
        Store(tmp_path / "labels.sqlite")
    assert refused.value.path == tmp_path / "labels.sqlite"


def overlaps(path):
    """Pairs of leases of one item to two people at the same time, from the events alone."""
    db = sqlite3.connect(path)
    held, wrong = {}, []
    for time_, kind, person, item, until in db.execute(
        "SELECT time, kind, person, item, until FROM events WHERE item IS NOT NULL ORDER BY id"
    ):
        if kind in ("lease", "renew"):
            if item in held and held[item][0] != person and held[item][1] > time_:
                wrong.append((item, held[item], person, time_))
            held[item] = (person, until)
        elif kind in ("label", "skip", "release"):
            if item in held and held[item][0] != person and held[item][1] > time_:
                wrong.append((item, held[item], person, time_))
            held.pop(item, None)
    db.close()
    return wrong


def test_many_threads_label_a_round_once(tmp_path):
    with Store(tmp_path / "labels.sqlite") as store:
        store.add_class("a")
        opened(store, 200)
        people = [store.person_of(store.add_person(f"p{i}")) for i in range(12)]
        said, refused, failed = [], [], []

        def work(person, seed):
            draw = random.Random(seed)
            try:
                while True:
                    pick = store.lease(person, 0.05 if draw.random() < 0.1 else 60)
                    if pick is None:
                        if store.complete(0, 0):
                            return
                        continue
                    if draw.random() < 0.1:
                        store.undo(person, request())
                        continue
                    try:
                        said.append((pick.item, store.label(person, pick.item, 0, request())))
                    except InputError as error:
                        refused.append(str(error))
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(person, i)) for i, person in enumerate(people)]
        [thread.start() for thread in threads]
        [thread.join(300) for thread in threads]
        assert not failed
        assert all("is already labelled" in why or "someone else has" in why for why in refused)
        snapshot = store.close_round(0, 0)
        assert sorted(snapshot) == list(range(10, 210))
        events = {e.id: e for item in snapshot for e in store.history(item)}
        assert all(events[id].kind == "label" and events[id].item == item for item, id in said)
        assert len({id for _, id in said}) == len(said)
    assert overlaps(tmp_path / "labels.sqlite") == []


ANNOTATOR = """
import json, sys, uuid
from pathlib import Path
from accuacl.labeling import Store
with Store(Path(sys.argv[1])) as store:
    me = store.person_of(sys.argv[2])
    while (pick := store.lease(me, 0.5)) is not None:
        try:
            print(json.dumps([pick.item, store.label(me, pick.item, 0, uuid.uuid4().hex)]), flush=True)
        except ValueError:
            pass
"""


@pytest.mark.posix
def test_killed_processes_lose_nothing_that_was_acknowledged(tmp_path):
    path, draw = tmp_path / "labels.sqlite", random.Random(0)
    with Store(path) as store:
        store.add_class("a")
        opened(store, 1500)
        tokens = [store.add_person(f"p{i}") for i in range(2)]
    acknowledged, kills = [], 0
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        running = [
            subprocess.Popen([sys.executable, "-c", ANNOTATOR, path, token], stdout=subprocess.PIPE, text=True)
            for token in tokens
        ]
        if kills < 3:
            for _ in range(draw.randint(1, 100)):  # it is at work
                line = running[0].stdout.readline()
                acknowledged += [json.loads(line)] if line.endswith("\n") else []
            [os.kill(process.pid, signal.SIGKILL) for process in running]
            kills += 1
        for process in running:
            text = process.communicate(timeout=300)[0]
            acknowledged += [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
        with Store(path) as store:
            if store.complete(0, 0):
                break
            person = store.person_of(tokens[0])
            wait_until(functools.partial(store.lease, person, 0.5))  # the leases of the killed expire
    with Store(path) as store:
        assert sorted(store.close_round(0, 0)) == list(range(10, 1510))
        for item, event in acknowledged:
            assert [e.id for e in store.history(item) if e.kind == "label"] == [event]
    assert len(acknowledged) > 1000
    assert overlaps(path) == []


def test_many_processes_may_open_a_new_store_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from accuacl.labeling import Store\n"
        "with Store(Path(sys.argv[1])) as store: store.add_class(sys.argv[2])"
    )
    path = tmp_path / "labels.sqlite"
    running = [subprocess.Popen([sys.executable, "-c", code, path, f"c{i}"]) for i in range(3)]
    assert [process.wait(300) for process in running] == [0] * 3
    with Store(path) as store:
        assert sorted(c.name for c in store.classes()) == [f"c{i}" for i in range(3)]
        assert [c.id for c in store.classes()] == list(range(3))


def test_a_new_store_is_opened_once_another_process_lets_go_of_the_file(tmp_path, monkeypatch):
    other = sqlite3.connect(tmp_path / "labels.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(schema.time, "sleep", lambda seconds: other.in_transaction and other.execute("COMMIT"))
    with Store(tmp_path / "labels.sqlite") as store:
        assert not other.in_transaction
        assert store.classes() == []
    other.close()


def test_a_folder_that_is_not_there_is_said_and_a_bug_is_not_taken_for_the_disk(tmp_path, store):
    with pytest.raises(StoreUnavailable, match="no such file or directory"):
        Store(tmp_path / "nowhere" / "labels.sqlite")
    with pytest.raises(sqlite3.IntegrityError), store._db.write() as tx:
        tx.event("label", person=99, item=99)


def test_a_round_closes_at_a_share_once_nobody_is_busy(store, ada, bob, clock):
    opened(store, 10)
    for _ in range(7):
        store.label(ada, store.lease(ada).item, 0, request())
    assert not store.complete(0, 0, 0.8)
    store.skip(ada, store.lease(ada).item, request())
    store.lease(bob, 60)
    assert not store.complete(0, 0, 0.8)  # Bob is looking at one
    with pytest.raises(RoundIncomplete, match="2 of 10"):
        store.close_round(0, 0, 0.8)
    clock.wait(61)
    assert store.complete(0, 0, 0.8)
    assert not store.complete(0, 0)
    frozen = store.close_round(0, 0, 0.8)
    assert list(frozen.values()) == [0] * 7 + [-1] * 3
    with pytest.raises(InputError, match="is closed"):
        store.label(bob, 18, 0, request())


def test_a_lead_can_say_that_it_is_enough(store, ada):
    with pytest.raises(InputError, match="no round is open"):
        store.enough(ada)
    opened(store, 3)
    with pytest.raises(InputError, match="label something first"):
        store.enough(ada)
    store.label(ada, 11, 1, request())
    store.enough(ada)
    assert store.complete(0, 0)
    assert store.close_round(0, 0) == {10: -1, 11: 1, 12: -1}
    opened(store, 2, round=1, first=20)
    assert not store.complete(0, 1)  # it was enough of that round only


def test_what_others_expect_is_left_to_them_while_there_is_more(store, ada, bob):
    opened(store, 6)
    turn = store.turn(ada)
    assert (turn.pick.item, [p.item for p in turn.ahead]) == (10, [11, 12, 13])
    theirs = frozenset([11, 12, 13])
    turn = store.turn(bob, expected=Expected((), theirs))
    assert (turn.pick.item, [p.item for p in turn.ahead]) == (14, [15])  # and nothing that Ada has been told of
    act = Act("label", request(), 10, 0)
    turn = store.turn(ada, act, Expected((12, 11), frozenset()))
    assert (turn.pick.item, turn.status.labelled) == (12, 1)
    assert turn.done == store.answers([10])[0].event
    store.label(bob, 14, 0, request())
    store.label(bob, 15, 0, request())
    assert store.turn(bob, expected=Expected((), frozenset([11, 13]))).pick.item == 11  # rather than nothing


BRUTE = """SELECT s.item, (SELECT MAX(id) FROM standing WHERE item = s.item), (
    SELECT CASE WHEN kind IN ('lease', 'renew') THEN id END FROM events WHERE item = s.item
    AND kind IN ('lease', 'renew', 'release', 'label', 'skip') ORDER BY id DESC LIMIT 1) FROM picks s ORDER BY item"""


@pytest.mark.parametrize("seed", range(times(3, 60)))
def test_the_state_of_items_is_what_follows_from_their_events(tmp_path, store, ada, bob, clock, seed):
    rng = random.Random(seed)
    opened(store, 6)

    def act():
        who, item, c = rng.choice([ada, bob]), 10 + rng.randrange(6), rng.randrange(2)
        rng.choice(
            [
                lambda: store.lease(who, rng.choice([5, 100])),
                lambda: store.label(who, item, c, request()),
                lambda: store.skip(who, item, request()),
                lambda: store.correct(who, item, c, request()),
                lambda: store.undo(who, request()),
                lambda: store.release(who, item),
                lambda: store.renew(who, item),
                lambda: clock.wait(3),
            ]
        )()

    for _ in range(60):
        with contextlib.suppress(InputError):
            act()
    db = sqlite3.connect(tmp_path / "labels.sqlite")
    kept = db.execute("SELECT item, answer, lease FROM state ORDER BY item").fetchall()
    assert kept == db.execute(BRUTE).fetchall()
    skipped = "SELECT COUNT(*) FROM state s JOIN events e ON e.id = s.answer WHERE s.skipped != (e.kind = 'skip')"
    assert db.execute(skipped).fetchone() == (0,)
    db.close()


ITEMS = [10, 11, 12, 13]  # of `opened`


def log_of(path):
    return path.with_name(f"{path.name}-wal")


def test_a_round_that_is_closed_is_in_the_file_itself(store, ada, tmp_path):
    opened(store)
    for item in ITEMS:
        store.label(ada, item, 0, request())
    path = tmp_path / "labels.sqlite"
    assert log_of(path).stat().st_size > 0
    store.close_round(0, 0)
    assert log_of(path).stat().st_size == 0
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(path.read_bytes())  # without the log beside it
    with Store(copy) as other:
        assert other.labels() == dict.fromkeys(ITEMS, 0)


def test_nothing_of_a_forgotten_item_is_left_in_the_file_or_beside_it(store, ada, tmp_path):
    opened(store)
    store.comment(ada, [ITEMS[0]], "a name that nobody shall find", request())
    store.label(ada, ITEMS[0], 0, request())
    path = tmp_path / "labels.sqlite"

    def found():
        return [file.name for file in (path, log_of(path)) if b"a name that nobody" in file.read_bytes()]

    assert found()
    reader = sqlite3.connect(path, isolation_level=None)  # another process, which keeps the log
    store.forget([ITEMS[0]])
    reader.close()
    assert found() == []
    assert store.history(ITEMS[0]) == []


def test_a_long_reader_holds_up_nobody_for_long(store, ada, tmp_path, monkeypatch):
    monkeypatch.setattr("accuacl.labeling.store.database.CHECKPOINT", 0.05)
    opened(store)
    reader = sqlite3.connect(tmp_path / "labels.sqlite", isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM events").fetchone()
    store.label(ada, ITEMS[0], 0, request())
    store.enough(ada)
    assert store.close_round(0, 0)[ITEMS[0]] == 0
    reader.close()
    store.checkpoint()
    assert log_of(tmp_path / "labels.sqlite").stat().st_size == 0


def test_a_backup_is_one_moment_of_a_store_that_goes_on(store, ada, tmp_path):
    opened(store)
    store.label(ada, ITEMS[0], 1, request())
    store.backup(tmp_path / "backup.sqlite")
    store.label(ada, ITEMS[1], 0, request())
    assert not log_of(tmp_path / "backup.sqlite").exists()
    with Store(tmp_path / "backup.sqlite") as copy:
        assert copy.labels() == {ITEMS[0]: 1}
        copy.label(copy.people()[0], ITEMS[1], 1, request())  # and it goes on
    assert store.labels() == {ITEMS[0]: 1, ITEMS[1]: 0}


def test_comments_of_a_person_are_bounded(store, ada, bob, monkeypatch):
    monkeypatch.setattr("accuacl.labeling.store.labels.MOST_BYTES", 100)
    opened(store)
    store.comment(ada, ITEMS[:2], "ü" * 10, request())  # 40 bytes
    store.flag(ada, ITEMS[0], "x" * 40, request())
    with pytest.raises(InputError, match="your comments have 80 bytes already, and may have 100 in all"):
        store.comment(ada, ITEMS[:3], "too long", request())
    with pytest.raises(InputError, match="write a shorter one to fewer"):
        store.flag(ada, ITEMS[0], "x" * 21, request())
    store.comment(ada, ITEMS[:2], "x" * 10, request())
    store.comment(bob, ITEMS[:1], "x" * 100, request())
    assert len(store.comments()) == 6
