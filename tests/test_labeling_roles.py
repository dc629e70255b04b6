"""What leads and annotators do to a store besides labelling: classes and their undo, guidelines, proposals, flags."""

from __future__ import annotations

import itertools
import json

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project import measure_quality
from accuacl.labeling.store import Class, Guideline, Pick, Store


@pytest.fixture
def store(tmp_path):
    clock = itertools.count(1000.0, 1.0)
    with Store(tmp_path / "labels.sqlite", clock=lambda: next(clock), steady=lambda: 0.0) as store:
        for name in ("cat", "dog"):
            store.add_class(name)
        store.open_round(0, 0, [Pick(i, i) for i in range(6)])
        yield store


@pytest.fixture
def ada(store):
    return store.person_of(store.add_person("Ada"))


def names(store):
    return [one.name for one in store.classes()]


def undo(store, ada):
    return store.undo_class_change(ada, store.class_changes()[0].event)


def test_changes_of_classes_are_undone_one_after_another(store, ada):
    store.rename_class(0, "tom", ada)
    store.add_class("lion", ada)
    store.merge_class(0, 1, ada)
    item = store.lease(ada).item
    store.label(ada, item, 0, "a-label-of-it")
    assert store.labels() == {item: 1}
    said = [(change.kind, change.name, change.to, change.person) for change in store.class_changes()[:3]]
    assert said == [("merged", "tom", "dog", 0), ("added", None, "lion", 0), ("renamed", "cat", "tom", 0)]
    assert undo(store, ada).kind == "merged"
    assert store.labels() == {item: 0}  # it counts as what it was given as
    assert undo(store, ada).to == "lion"
    assert names(store) == ["tom", "dog"]
    assert undo(store, ada).name == "cat"
    assert names(store) == ["cat", "dog"]
    assert store.add_class("lion").id == 3  # a number is never given twice


def test_only_the_latest_change_is_undone_and_only_once(store, ada):
    first = store.class_changes()[0].event
    store.add_class("lion", ada)
    with pytest.raises(InputError, match="a later change has been made to the classes"):
        store.undo_class_change(ada, first)
    latest = store.class_changes()[0].event
    store.undo_class_change(ada, latest)
    with pytest.raises(InputError, match="a later change has been made"):
        store.undo_class_change(ada, latest)


def test_a_class_in_use_stays_and_one_that_is_gone_cannot_be_used(store, ada):
    lion = store.add_class("lion", ada).id
    item = store.lease(ada).item
    store.label(ada, item, lion, "a-label-of-it")
    with pytest.raises(InputError, match="class 'lion' is in use; merge it into another one instead"):
        undo(store, ada)
    tiger = store.add_class("tiger", ada).id
    undo(store, ada)
    with pytest.raises(InputError, match=f"there is no class {tiger}; add it first"):
        store.label(ada, store.lease(ada).item, tiger, "another-label")
    assert store.add_class("tiger").name == "tiger"  # the name is free again


def test_a_merge_is_undone_although_a_class_was_added_and_used_since(store, ada):
    store.merge_class(0, 1, ada)
    merge = store.class_changes()[0].event
    lion = store.add_class("lion", ada).id
    store.label(ada, 0, 0, "as-a-cat")
    store.label(ada, 1, lion, "as-a-lion")
    added = store.class_changes()[0].event
    assert store.undoable_class_changes() == {merge}
    with pytest.raises(InputError, match="class 'lion' is in use"):
        store.undo_class_change(ada, added)
    store.merge_class(1, lion, ada)  # what cats count as goes on to count as something else
    assert store.labels() == {0: lion, 1: lion}
    assert store.undo_class_change(ada, merge).kind == "merged"
    assert store.labels() == {0: 0, 1: lion}
    assert store.undoable_class_changes() == {store.class_changes()[0].event}
    with pytest.raises(InputError, match="a later change has been made"):
        store.undo_class_change(ada, merge)  # again


def test_a_change_is_not_undone_if_two_classes_would_have_one_name(store, ada):
    store.merge_class(0, 1, ada)
    merge = store.class_changes()[0].event
    store.rename_class(1, "cat", ada)  # the name was free
    first = store.class_changes()[0].event
    assert store.undoable_class_changes() == {first}
    with pytest.raises(InputError, match="then two classes would be called 'cat'; rename the present one first"):
        store.undo_class_change(ada, merge)
    store.rename_class(1, "wolf", ada)
    store.undo_class_change(ada, merge)
    assert names(store) == ["cat", "wolf"]
    assert store.undoable_class_changes() == set()  # the wolf was called cat before
    with pytest.raises(InputError, match="then two classes would be called 'cat'"):
        undo(store, ada)


def test_the_last_relabelling_is_undone_unless_somebody_has_changed_it(store, ada):
    bob = store.person_of(store.add_person("Bob"))
    for item in range(3):
        store.label(ada, item, 0, f"label-{item}")
    store.skip(ada, 3, "skip-it")
    before = store.answers()
    assert store.last_relabel(bob) is None
    store.relabel(bob, [1, 2, 3], 1, "first-one")
    store.relabel(bob, [0, 1], 1, "second-one")
    with pytest.raises(InputError, match="these labels have since been changed or undone"):
        store.undo_relabel(bob, "first-one", "undo-1")
    with pytest.raises(InputError, match="these labels have since been changed"):
        store.undo_relabel(ada, "second-one", "undo-2")  # not hers
    assert [store.undo_relabel(bob, "second-one", "undo-3") for _ in range(2)] == [2, 0]  # sent again
    assert store.labels() == {0: 0, 1: 1, 2: 1, 3: 1}
    assert store.undo_relabel(bob, "first-one", "undo-4") == 3
    assert store.answers() == before
    assert store.last_relabel(bob) is None
    store.relabel(bob, [0, 1], 1, "third-one")
    store.correct(ada, 1, 0, "ada-corrects")
    assert store.last_relabel(bob) is None
    with pytest.raises(InputError, match="these labels have since been changed"):
        store.undo_relabel(bob, "third-one", "undo-5")


def test_what_the_model_may_have_learned_keeps_a_label(store, ada):
    for item in range(5):
        store.label(ada, item, 0, f"label-{item}")
    store.skip(ada, 5, "skip-it")
    store.close_round(0, 0)
    store.relabel(ada, [4, 5], 1, "the-request")
    assert (list(store.last_relabel(ada).undone.values()), store.last_relabel(ada).kept) == ([4], 1)
    assert store.undo_relabel(ada, "the-request", "undo-it") == 1
    assert (store.labels()[4], store.labels()[5]) == (0, 1)
    store.relabel(ada, [4], 1, "another-one")
    store.seal(0)
    assert store.last_relabel(ada) is None


def test_where_only_sums_are_kept_a_merge_stays(store, ada):
    store.merge_class(0, 1, ada)
    store.seal(0)
    with pytest.raises(InputError, match="the merge has to stay"):
        undo(store, ada)


def test_guidelines_say_what_was_said_last(store, ada):
    assert store.guidelines() == {}
    store.guide(ada, 0, "has\nwhiskers", [3, 1, 3])
    store.guide(ada, 1, "barks")
    store.guide(ada, 1, "")
    assert store.guidelines() == {0: Guideline("has\nwhiskers", (3, 1))}
    store.forget([3])
    assert store.guidelines()[0].examples == (1,)
    with store._db.read() as tx:  # what was said before it has them no longer either
        said = [json.loads(text) for (text,) in tx.rows("SELECT text FROM events WHERE kind = 'guide' ORDER BY id")]
    assert [one["examples"] for one in said] == [[1], [], []]
    store.add_examples(ada, 0, [2, 1])
    store.add_examples(ada, 1, [2])
    assert store.guidelines() == {0: Guideline("has\nwhiskers", (1, 2)), 1: Guideline("", (2,))}
    for wrong, why in (
        ((7, "x", []), "there is no class 7"),
        ((0, "x" * 2001, []), "a guideline has 0 to 2000 printable characters"),
        ((0, "a\0b", []), "a guideline has 0 to 2000 printable"),
        ((0, "x", [99]), "item 99 has not been picked"),
        ((0, "x", range(13)), "13 examples were given; give at most 12"),
    ):
        with pytest.raises(InputError, match=why):
            store.guide(ada, *wrong)


def test_proposals_wait_until_they_are_settled_once(store, ada):
    bob = store.person_of(store.add_person("Bob"))
    lion = store.propose(bob, " lion ", "propose-lion")
    assert store.propose(bob, "lion", "propose-lion") == store.propose(ada, "lion", "by-ada-too") == lion
    bear = store.propose(bob, "bear", "propose-bear")
    assert [one.name for one in store.proposals()] == ["lion", "bear"]
    assert store.settle(ada, lion.id, "Lion") == 2
    assert store.settle(ada, bear.id, None) is None
    assert store.proposals() == []
    assert store.classes()[-1] == Class(2, "Lion")
    with pytest.raises(InputError, match="this proposal has already been settled"):
        store.settle(ada, bear.id, "bear")
    with pytest.raises(InputError, match="there is already a class 'Lion'; use it"):
        store.propose(bob, "Lion", "propose-lion-again")
    for i in range(50):
        store.propose(bob, f"kind {i}", f"propose-{i}")
    with pytest.raises(InputError, match="50 proposals wait for a lead"):
        store.propose(bob, "one more", "propose-more")


def test_flags_stay_until_they_are_taken_down(store, ada):
    store.flag(ada, 2, "two animals?", "flag-2")
    store.flag(ada, 2, "two animals?", "flag-2")  # sent again
    store.flag(ada, 4, "", "flag-4")
    rows = {row.item: row for row in store.everything()}
    assert {item for item, row in rows.items() if row.flagged} == {2, 4}
    assert (rows[2].comments, rows[4].comments) == (("two animals?",), ())
    assert store.unflag(ada, [2, 3]) == 1
    assert {row.item for row in store.everything() if row.flagged} == {4}
    assert store.unflag(ada, [2]) == 0
    store.flag(ada, 2, "", "flag-2-again")
    assert next(row for row in store.everything() if row.item == 2).flagged
    with pytest.raises(InputError, match="item 99 has not been picked"):
        store.flag(ada, 99, "", "flag-99")
    with pytest.raises(InputError, match="was already used for something else"):
        store.flag(ada, 3, "", "flag-2")


def test_work_is_counted_with_its_pace_and_agreement(tmp_path):
    now = [0.0]
    with Store(tmp_path / "work.sqlite", clock=lambda: now[0], steady=lambda: 0.0) as store:
        for name in ("cat", "dog", "cow"):
            store.add_class(name)
        ada, bob, eve = (store.person_of(store.add_person(name)) for name in ("Ada", "Bob", "Eve"))
        store.open_round(0, 0, [Pick(i, i) for i in range(6)])
        for i, (gap, label) in enumerate([(5, 0), (2, 1), (4, 0), (500, 0), (6, None)]):
            now[0] += gap
            item = store.lease(ada).item
            if label is None:
                store.skip(ada, item, f"skip-of-{i}")
            else:
                store.label(ada, item, label, f"label-{i}-of-ada")
        assert store.work()[ada.id].seconds == 4.0  # of 2, 4 and 6; the break is left out
        store.relabel(bob, [0, 1], 0, "bob-relabels")  # agrees about 0, not about 1, knowing Ada's labels
        store.relabel(eve, [1], 2, "eve-relabels")
        assert [store.work()[one.id].compared for one in (ada, bob, eve)] == [0, 0, 0]
        store.set_gold({0: 0, 1: 0})  # so that others are asked about them
        zoe = store.person_of(store.add_person("Zoe"))
        for item in (0, 1):
            store.label(zoe, item, 2, f"zoe-{item}")
        store.merge_class(2, 1)  # now Zoe agrees with Ada about one of two
        work = store.work()
        (kappa,) = measure_quality(store).pairs.values()
        assert (kappa.count, kappa.agreement) == (2, 50.0)  # the same as in the table of people
        assert (work[ada.id].labels, work[ada.id].skips, work[ada.id].last) == (4, 1, 517.0)
        assert [(work[one.id].agreed, work[one.id].compared) for one in (ada, bob, zoe)] == [(1, 2), (0, 0), (1, 2)]
        assert (work[ada.id].corrected, work[bob.id].labels) == (1, 0)
        store.add_person("Hal")
        assert set(store.work()) == {ada.id, bob.id, eve.id, zoe.id}
