"""Second opinions: some items are labelled by two people, and gold items by everybody; only first labels count."""

from __future__ import annotations

import random
import uuid
from collections import Counter
from dataclasses import replace

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Pick, Store
from accuacl.labeling.store import Act, RoundIncomplete
from accuacl.labeling.store.opinions import GOLD_EVERY, _place_of_gold
from accuacl.labeling.store.records import Rating
from accuacl.labeling.store.rounds import ABSENT
from effort import times


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def store(tmp_path, clock):
    with Store(tmp_path / "labels.sqlite", lambda: clock[0], lambda: clock[0]) as store:
        for name in ("cat", "dog", "cow"):
            store.add_class(name)
        yield store


def opened(store, count=4, twice=(0, 2), round=0):
    first = 100 * round
    store.open_round(0, round, [Pick(first + i, i, {}, 0, 0.5) for i in range(count)], {first + i for i in twice})


def request():
    return uuid.uuid4().hex


def answer(store, person, class_id=0):
    """Label the next item; which."""
    pick = store.lease(person)
    if pick is None:
        return None
    store.label(person, pick.item, class_id, request())
    return pick.item


def all_of(store, person, class_id=0):
    items = []
    while (item := answer(store, person, class_id)) is not None:
        items.append(item)
    return items


def test_two_people_label_the_chosen_items_and_the_first_label_counts(store, ada, bob):
    opened(store)
    assert [answer(store, ada) for _ in range(3)] == [0, 1, 2]
    assert answer(store, bob, 1) == 0  # a second opinion, by rank
    assert answer(store, bob, 1) == 2
    assert answer(store, bob, 1) == 3
    assert store.lease(ada) is store.lease(bob) is None
    assert store.labels() == {0: 0, 1: 0, 2: 0, 3: 1}
    assert store.ratings() == [
        Rating(0, ada.id, 0),
        Rating(0, bob.id, 1),
        Rating(1, ada.id, 0),
        Rating(2, ada.id, 0),
        Rating(2, bob.id, 1),
        Rating(3, bob.id, 1),
    ]
    assert store.close_round(0, 0) == {0: 0, 1: 0, 2: 0, 3: 1}


def test_nobody_is_asked_twice_about_the_same_item(store, ada, bob):
    opened(store)
    assert all_of(store, ada) == [0, 1, 2, 3]
    with pytest.raises(InputError, match="item 0 is already labelled or skipped"):
        store.label(ada, 0, 1, request())
    assert all_of(store, bob) == [0, 2]
    cleo = store.person_of(store.add_person("Cleo"))
    assert store.lease(cleo) is None
    with pytest.raises(InputError, match="item 0 is already labelled or skipped"):
        store.label(cleo, 0, 1, request())


def test_a_round_waits_for_second_opinions_of_those_who_are_there(store, clock, ada, bob):
    opened(store)
    answer(store, bob)  # 0
    assert all_of(store, ada) == [0, 1, 2, 3]
    assert store.status().opinions == 1  # of Bob, about item 2
    assert store.look(bob).free
    assert not store.look(ada).free
    assert not store.complete(0, 0)
    with pytest.raises(RoundIncomplete) as waiting:
        store.close_round(0, 0)
    assert waiting.value.left == 1
    clock[0] += ABSENT + 1  # Bob has gone
    assert store.status().opinions == 0
    assert store.complete(0, 0)
    store.lease(bob)  # he is back
    assert not store.complete(0, 0)
    store.revoke("Bob")
    assert store.complete(0, 0)


def test_a_person_alone_is_not_waited_for(store, ada, bob):
    opened(store)
    all_of(store, ada)
    assert store.complete(0, 0)
    assert store.status().opinions == 0


def test_a_share_closes_a_round_without_the_opinions(store, clock, ada, bob):
    opened(store)
    store.lease(bob)
    clock[0] += 121  # his lease has expired, but he may come back
    all_of(store, ada)
    assert not store.complete(0, 0)
    assert store.complete(0, 0, share=0.9)


def test_skips_need_no_second_opinion_and_may_be_one(store, ada, bob):
    opened(store)
    pick = store.lease(ada)
    store.skip(ada, pick.item, "a-skip")
    assert all_of(store, ada) == [1, 2, 3]
    pick = store.lease(bob)
    assert pick.item == 2
    first = store.skip(bob, 2, "unsure")
    assert store.skip(bob, 2, "unsure") == first
    assert store.complete(0, 0)
    assert [one.item for one in store.ratings()] == [1, 2, 3]


def test_opinions_are_undone_and_repeated_requests_change_nothing(store, ada, bob):
    opened(store)
    all_of(store, ada)
    turn = store.turn(bob, None)
    assert turn.pick.item == 0
    done = [store.turn(bob, Act("label", "the-request", 0, 1)).done for _ in range(2)]
    assert done[0] == done[1]
    assert store.undo(bob, "undo-it") == 0
    assert store.undo(bob, "undo-it") == 0
    assert store.ratings() == [Rating(i, ada.id, 0) for i in range(4)]
    assert store.lease(bob).item == 0
    store.label(bob, 0, 2, request())
    assert store.look(bob).undo
    store.undo(ada, request())  # her last label, of item 3
    assert answer(store, bob) == 2  # the rest
    assert answer(store, ada) == 3


def test_the_first_label_is_undone_after_the_second_opinion(store, ada, bob):
    opened(store, 1, (0,))
    answer(store, ada)
    assert answer(store, bob, 1) == 0
    assert store.undo(ada, request()) == 0
    store.release(ada, 0)
    assert store.lease(bob) is None  # his opinion stands
    with pytest.raises(InputError, match="you have already given your opinion about item 0"):
        store.label(bob, 0, 1, request())
    assert answer(store, ada, 2) == 0
    assert store.labels() == {0: 2}
    assert store.complete(0, 0)


def test_opinions_that_differ_are_to_settle_until_somebody_does(store, ada, bob):
    opened(store)
    all_of(store, ada)
    assert (answer(store, bob, 0), answer(store, bob, 1)) == (0, 2)

    def unsettled():
        return {row.item for row in store.everything() if row.unsettled}

    assert unsettled() == {2}
    assert {row.item for row in store.everything() if row.disputed} == {2}
    store.relabel(ada, [2], 0, request())
    assert unsettled() == set()
    store.close_round(0, 0)
    opened(store, 1, (0,), round=1)
    answer(store, ada, 0)
    answer(store, bob, 1)
    assert unsettled() == {100}
    store.merge_class(1, 0)
    assert unsettled() == set()


def test_in_the_gallery_too(store, ada, bob):
    opened(store)
    all_of(store, ada)
    assert [pick.item for pick in store.lease_batch(bob, 10)] == [0, 2]
    assert store.label_batch(bob, {0: 0, 2: 1, 1: 1}, "batch").saved == [0, 2]
    assert store.labels() == dict.fromkeys(range(4), 0)
    assert store.undo_batch(bob, "batch", request()) == [0, 2]
    assert [pick.item for pick in store.lease_batch(bob, 10)] == [0, 2]


def test_gold_items_are_asked_of_everybody_now_and_then(store, ada, bob):
    opened(store, 40, ())
    for _ in range(3):
        answer(store, ada, 1)
    assert store.mark_gold(ada, [0, 1]) == 2
    store.set_gold({2: 0, 500: 2})  # one that has not been picked yet
    assert store.gold() == {0: 1, 1: 1, 2: 0, 500: 2}
    order = [answer(store, bob, 1) for _ in range(3 * GOLD_EVERY)]
    blocks = [order[i : i + GOLD_EVERY] for i in range(0, len(order), GOLD_EVERY)]
    assert [len({0, 1, 2} & set(block)) for block in blocks] == [1, 1, 1]
    assert [item for item in order if item > 2] == list(range(3, 30))
    assert store.labels()[2] == 1  # an opinion changes no label
    assert {one.item for one in store.ratings() if one.person == bob.id} >= {0, 1, 2}
    assert all_of(store, bob) == list(range(30, 40))  # there is no other gold for him
    assert store.mark_gold(ada, [0, 500], gold=False) == 2
    assert store.gold() == {1: 1, 2: 0}
    with pytest.raises(InputError, match="item 77 has no label"):
        store.mark_gold(ada, [77])
    with pytest.raises(InputError, match="there is no class 9"):
        store.set_gold({3: 9})
    store.forget([1])
    assert store.gold() == {2: 0}


@pytest.mark.parametrize("seed", range(times(3, 30)))
def test_the_count_of_opinions_is_what_follows_from_the_events(store, seed):
    """Random acts of three people; nobody answers an item twice, and nobody has what somebody else has."""
    rng = random.Random(seed)
    people = [store.person_of(store.add_person(name)) for name in "ABC"]
    opened(store, 12, range(0, 12, 2))
    for _ in range(150):
        person = rng.choice(people)
        match rng.random():
            case x if x < 0.6:
                answer(store, person, rng.randrange(3))
            case x if x < 0.75:
                pick = store.lease(person)
                if pick:
                    store.skip(person, pick.item, request())
            case x if x < 0.9:
                store.undo(person, request())
            case _:
                store.lease_batch(person, 3)
    pairs = [(one.item, one.person) for one in store.ratings()]
    assert len(pairs) == len(set(pairs))
    with store._db.read() as tx:
        counted = dict(tx.rows("SELECT item, opinions FROM state"))
        tally = tx.rows("SELECT total, answered, skipped FROM tally")
        again = "SELECT COUNT(*), COUNT(answer), SUM(answer IS NOT NULL AND skipped) FROM state"
        assert tally == tx.rows(again)  # kept by triggers
        derived = dict(tx.rows("SELECT item, COUNT(*) FROM given WHERE kind = 'opinion' GROUP BY item"))
    assert counted == {item: derived.get(item, 0) for item in range(12)}
    assert all(count <= (item % 2 == 0) for item, count in counted.items())


def test_every_answer_counts_as_ones_own(store, ada, bob):
    opened(store, 12, (0,))
    assert (store.own_answers(ada).labelled, store.asks_twice()) == (0, True)
    for _ in range(3):
        answer(store, ada)
    assert answer(store, bob, 1) == 0  # a second opinion
    assert store.own_answers(bob).labelled == 1
    store.skip(bob, store.lease(bob).item, request())
    counts = [(own.labelled, own.skipped) for own in map(store.own_answers, (ada, bob))]
    assert counts == [(3, 0), (1, 1)]
    store.undo(bob, request())
    store.undo(bob, request())
    assert store.own_answers(bob).labelled == store.own_answers(bob).skipped == 0
    store.enough(ada)
    store.close_round(0, 0)
    opened(store, 4, (), round=1)
    assert (store.own_answers(ada).labelled, store.asks_twice()) == (0, False)
    store.mark_gold(ada, [0])
    assert store.asks_twice()


def test_nobody_knows_by_counting_when_gold_comes(store, ada):
    """In every block of ten answers it has a place of its own, for each person and in each store."""
    opened(store, 2, ())
    with store._db.read() as tx:
        places = [_place_of_gold(tx, replace(ada, id=person), block) for person in range(20) for block in range(20)]
        assert places == [_place_of_gold(tx, replace(ada, id=i // 20), i % 20) for i in range(400)]  # not drawn anew
    assert min(Counter(places)[place] for place in range(GOLD_EVERY)) > 10  # 40 are expected


def test_gold_is_announced_like_everything_else(store, ada, bob):
    """What a page is told of ahead comes next, every time: an item that comes unannounced would be known to be gold."""
    opened(store, 30, ())
    for _ in range(2):
        answer(store, ada)
    store.mark_gold(ada, [0, 1])
    ahead, gold = None, 0
    for _ in range(2 * GOLD_EVERY + 2):
        now = store.turn(bob)
        assert ahead is None or now.pick.item == ahead[0].item
        ahead = now.ahead
        gold += now.pick.item in (0, 1)
        store.label(bob, now.pick.item, 0, request())
    assert gold == 2
