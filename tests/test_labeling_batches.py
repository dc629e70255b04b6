"""Many items at once: leased, shown with the model's guesses, labelled and undone in one transaction."""

from __future__ import annotations

import uuid

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Pick, Store
from accuacl.labeling.store import Expected


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "labels.sqlite", lambda: clock[0], lambda: clock[0]) as store:
        for name in ("cat", "dog"):
            store.add_class(name)
        yield store


def opened(store, count=8, round=0, guess=1):
    store.open_round(0, round, [Pick(10 * round + i, i, {}, guess, 0.5) for i in range(count)])


def items(picks):
    return [pick.item for pick in picks]


def request():
    return uuid.uuid4().hex


def kinds(store, item):
    return [event.kind for event in store.history(item)]


def test_a_batch_is_leased_by_rank_and_stays_with_its_person(store, ada, bob):
    opened(store)
    assert items(store.lease_batch(ada, 3)) == [0, 1, 2]
    assert items(store.lease_batch(ada, 3)) == [0, 1, 2]
    assert store.lease(bob).item == 3
    with pytest.raises(InputError, match="someone else has item 1 now"):
        store.label(bob, 1, 0, request())


def test_nobody_takes_more_than_their_share(store, ada, bob):
    opened(store, 8)
    store.lease(bob)
    assert items(store.lease_batch(ada, 60)) == [1, 2, 3, 4]  # half of the seven that are free
    assert items(store.lease_batch(bob, 60)) == [0, 5]
    assert items(store.lease_batch(ada, 60)) == [1, 2, 3, 4]


def test_whoever_finds_nothing_free_is_given_a_fair_part(store, clock, ada, bob):
    opened(store, 20)
    assert len(store.lease_batch(ada, 60)) == 20
    store.show_guesses(ada, range(8, 20))
    clock[0] += 30
    store.renew_batch(ada, range(20))  # she works on 0, and so comes to 1 next
    assert store.look(bob).free
    assert items(store.lease_batch(bob, 60)) == [1, 2, 3, 4, 5, 6, 7, 17, 18, 19]  # not shown, then the farthest away
    assert not store.look(bob).free
    assert store.renew_batch(ada, range(20)) == [1, 2, 3, 4, 5, 6, 7, 17, 18, 19]
    assert items(store.lease_batch(ada, 60)) == [0, *range(8, 17)]
    cleo = store.person_of(store.add_person("Cleo"))
    assert store.lease(cleo).item == 19  # Bob has not been shown any
    assert items(store.lease_batch(bob, 60)) == [1, 2, 3, 4, 5, 6, 7, 17, 18]
    done = store.label_batch(ada, {0: 1, 8: 1, 17: 1, 19: 1}, "batch")
    assert done.saved == [0, 8]
    assert set(done.refused.values()) == {f"someone else has item {item} now; take another one." for item in (17, 19)}
    assert store.status().leased == 18


def test_nobody_is_left_with_nothing(store, ada, bob):
    opened(store, 3)
    store.lease_batch(ada, 60)
    assert store.lease(bob).item == 2  # from the end: 0 is the first that Ada sees
    cleo = store.person_of(store.add_person("Cleo"))
    assert store.lease(cleo).item == 1
    assert [len(store.lease_batch(person, 60)) for person in (ada, bob, cleo)] == [1, 1, 1]
    dora = store.person_of(store.add_person("Dora"))
    assert not store.look(dora).free
    assert store.lease(dora) is None
    assert store.lease_batch(dora, 60) == []


def test_nobody_is_given_what_they_have_labelled_themselves(store, ada, bob):
    store.open_round(0, 0, [Pick(i, i, {}, 1, 0.5) for i in range(4)], twice=range(4))
    for item in range(4):
        store.label(ada, item, 1, request())
    assert len(store.lease_batch(bob, 60)) == 4
    assert store.lease(ada) is None
    cleo = store.person_of(store.add_person("Cleo"))
    assert len(store.lease_batch(cleo, 60)) == 2


def test_what_others_expect_is_taken_last(store, ada):
    opened(store, 6)
    assert items(store.lease_batch(ada, 4, Expected((), frozenset({0, 1, 2})))) == [0, 3, 4, 5]


def test_without_guesses_there_is_no_batch(store, ada):
    assert store.lease_batch(ada, 5) == []  # nor before the first round
    opened(store, guess=None)
    assert store.lease_batch(ada, 5) == []
    assert store.status().leased == 0
    store.lease(ada)
    assert store.lease_batch(ada, 5) == []


def test_many_labels_are_kept_once_and_what_is_refused_is_said(store, ada, bob):
    opened(store)
    store.lease(bob)  # item 0
    store.lease_batch(ada, 3)
    again = [store.label_batch(ada, {0: 1, 1: 1, 2: 0, 99: 1, 3: 7}, "a-batch") for _ in range(2)]
    assert again[0] == again[1]
    assert again[0].saved == [1, 2]
    assert {item: text.split(";")[0] for item, text in again[0].refused.items()} == {
        0: "someone else has item 0 now",
        99: "item 99 has not been picked",
        3: "there is no class 7",
    }
    assert store.labels() == {1: 1, 2: 0}
    assert kinds(store, 1) == ["lease", "guess", "label"]
    other = store.label_batch(bob, {4: 0}, "a-batch")  # somebody else's request of that name
    assert other.saved == [4]
    assert "was already used for something else" in store.label_batch(bob, {1: 0, 5: 0}, "a-batch").refused[5]


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_has_a_size(store, ada, count):
    opened(store)
    for call in (
        lambda: store.label_batch(ada, dict.fromkeys(range(count), 0), "batch"),
        lambda: store.renew_batch(ada, range(count)),
        lambda: store.release_batch(ada, range(count)),
    ):
        with pytest.raises(InputError, match=f"{count} items were given; give 1 to 100"):
            call()


def test_a_batch_is_undone_as_far_as_it_still_stands(store, ada, bob):
    opened(store)
    store.lease_batch(ada, 4)
    store.label_batch(ada, {0: 1, 1: 1, 2: 1}, "batch-1")
    store.label_batch(ada, {3: 1}, "batch-10")
    store.correct(bob, 1, 0, request())
    assert store.undo_batch(bob, "batch-1", request()) == []  # not Bob's
    assert store.undo_batch(ada, "batch-1", "undo") == [0, 2]
    assert store.undo_batch(ada, "batch-1", "undo") == []  # sent again
    assert store.labels() == {1: 0, 3: 1}
    assert items(store.lease_batch(ada, 2)) == [0, 2]
    store.label_batch(ada, dict.fromkeys((0, 2, 4, 5, 6, 7), 0), "the-rest")
    store.close_round(0, 0)
    assert store.undo_batch(ada, "the-rest", request()) == []
    opened(store, round=1)
    assert store.undo_batch(ada, "the-rest", request()) == []


def test_leases_of_a_batch_are_renewed_lost_and_given_back(store, clock, ada, bob):
    opened(store, 4)
    store.lease_batch(ada, 4)
    clock[0] += 100
    assert store.renew_batch(ada, [0, 1]) == []
    clock[0] += 50
    assert items(store.lease_batch(bob, 4)) == [2]  # a half of what is free: Ada is there too
    assert store.renew_batch(ada, [0, 1, 2]) == [2]
    store.release_batch(ada, [0, 1, 2])
    assert store.status().leased == 1


def test_a_guess_is_recorded_for_whoever_has_seen_it(store, ada, bob):
    opened(store, 4)
    assert items(store.lease_batch(ada, 2)) == [0, 1]
    assert kinds(store, 0) == kinds(store, 1) == ["lease"]  # it may lie below the screen
    for _ in range(2):
        store.show_guesses(ada, [0, 3, 99])  # she does not have the others
    assert (kinds(store, 0), kinds(store, 1), kinds(store, 3)) == (["lease", "guess"], ["lease"], [])  # once
    store.label_batch(ada, {0: 1, 1: 0}, "batch")
    pick = store.lease(bob)
    store.label(bob, pick.item, 0, request())
    assert store.guesses_shown() == {0: 1, 1: 1}
    store.show_guess(bob, pick)  # afterwards, so that it had no influence
    assert store.guesses_shown() == {0: 1, 1: 1}
    store.correct(bob, 0, 0, request())  # Bob has not seen that one
    assert store.guesses_shown() == {1: 1}
    shown = {row.item: row.shown for row in store.everything()}
    assert shown == {0: None, 1: 1, 2: None, 3: None}
    store.show_guess(bob, store.lease(bob))
    store.label(bob, 3, 0, request())
    assert store.guesses_shown() == {1: 1, 3: 1}
    store.merge_class(1, 0)
    assert {row.item: row.shown for row in store.everything()}[3] == 0


def test_a_revoked_person_labels_nothing(store, ada, bob):
    opened(store)
    store.revoke("Bob")
    for call in (
        lambda: store.lease_batch(bob, 4),
        lambda: store.label_batch(bob, {0: 1}, "batch"),
        lambda: store.undo_batch(bob, "batch", "undo"),
        lambda: store.renew_batch(bob, [0]),
    ):
        with pytest.raises(InputError, match="has no access"):
            call()


def test_guesses_at_chance_level_are_left_out(store, ada, bob):
    picks = [Pick(i, i, {}, 1, confidence) for i, confidence in enumerate((0.5, 0.52, 0.9, None, 0.61, 0.3))]
    store.open_round(0, 0, [*picks, Pick(6, 6)], {4})
    assert items(store.lease_batch(ada, 2, least=0.6)) == [2, 3]
    store.release_batch(ada, [2, 3])
    assert items(store.lease_batch(ada, 10, least=0.6)) == [2, 3, 4]
    assert store.lease(bob).item == 0
    store.label(ada, 4, 0, request())
    assert items(store.lease_batch(bob, 10, least=0.6)) == [4]  # an opinion
