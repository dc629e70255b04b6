"""The store against a model of it: whatever people do, in whatever order, both must agree."""

from __future__ import annotations

import functools
import math
import random

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling import Pick, Store

WHAT = ("lease", "lease", "label", "label own", "skip", "undo", "renew", "release", "wait", "fix")


class Model:
    """What the store should do, in a few dictionaries."""

    def __init__(self, items):
        self.items, self.now = items, 0.0
        self.said = {}  # item: (class or None, person, corrected since)
        self.order = {}  # person: items in the order in which they answered them
        self.held = {}  # item: (person, until), in the order of the leases

    def holder(self, item):
        person, until = self.held.get(item, (None, 0.0))
        return person if until > self.now else None

    def lease(self, person, seconds):
        own = [item for item in self.held if self.holder(item) == person]
        if own:
            return own[-1]
        free = [item for item in self.items if item not in self.said and self.holder(item) is None]
        taken = free[0] if free else self.spared()
        if taken is not None:
            self.hold(person, taken, seconds)
        return taken

    def spared(self):
        """The oldest lease of whoever holds most, if that is more than would be left to each with one person more."""
        held = {}
        for item in self.held:
            if self.holder(item) is not None:
                held.setdefault(self.holder(item), []).append(item)
        most = max(held.values(), key=len, default=[])
        share = math.ceil(sum(map(len, held.values())) / (len(held) + 1))
        return most[0] if len(most) > share else None

    def hold(self, person, item, seconds):
        self.held.pop(item, None)
        self.held[item] = (person, self.now + seconds)

    def may_answer(self, person, item):
        return item not in self.said and self.holder(item) in (None, person)

    def answer(self, person, item, c):
        self.said[item] = (c, person, False)
        self.order.setdefault(person, []).append(item)
        self.held.pop(item, None)

    def undo(self, person, seconds):
        mine = [item for item in self.order.get(person, []) if self.said[item][1] == person and not self.said[item][2]]
        if not mine:
            return None
        del self.said[mine[-1]]
        self.order[person].remove(mine[-1])
        self.hold(person, mine[-1], seconds)
        return mine[-1]


@pytest.mark.parametrize("seed", range(8))
def test_the_store_does_what_the_model_does(tmp_path, seed):
    draw = random.Random(seed)
    clock = [1000.0]
    with Store(tmp_path / "labels.sqlite", lambda: clock[0], lambda: clock[0]) as store:
        for name in "abc":
            store.add_class(name)
        people = [store.person_of(store.add_person(f"p{i}")) for i in range(3)]
        items = draw.sample(range(100), 12)
        store.open_round(0, 0, [Pick(item, rank) for rank, item in enumerate(items)])
        model = Model(items)
        for step in range(250):
            model.now = clock[0]
            person, item, c = draw.choice(people), draw.choice(items), draw.randrange(3)
            what = draw.choice(WHAT)
            request = f"{seed}-{step}"
            if what == "wait":
                clock[0] += draw.choice([1, 20, 100])
            elif what == "lease":
                pick = store.lease(person, 60)
                assert (pick.item if pick else None) == model.lease(person.id, 60)
            elif what == "undo":
                assert store.undo(person, request, 60) == model.undo(person.id, 60)
            elif what == "release":
                store.release(person, item)
                if model.holder(item) == person.id:
                    del model.held[item]
            elif what == "fix":
                if model.said.get(item, (None,))[0] is None:
                    with pytest.raises(InputError, match="has no label"):
                        store.correct(person, item, c, request)
                else:
                    store.correct(person, item, c, request)
                    model.said[item] = (c, person.id, True)
            else:
                if what == "label own":
                    item = model.lease(person.id, 60)
                    pick = store.lease(person, 60)
                    assert (pick.item if pick else None) == item
                    if item is None:
                        continue
                allowed = model.may_answer(person.id, item)
                act = functools.partial(store.label, person, item, c, request)
                if what == "skip":
                    act = functools.partial(store.skip, person, item, request)
                elif what == "renew":
                    act = functools.partial(store.renew, person, item, 60)
                    allowed = allowed and model.held.get(item, (None,))[0] == person.id  # also if it has expired
                if not allowed:
                    with pytest.raises(InputError, match=r"already|someone else|do not have"):
                        act()
                else:
                    act()
                    if what == "renew":
                        model.hold(person.id, item, 60)
                    else:
                        model.answer(person.id, item, None if what == "skip" else c)
            expected = {item: said[0] for item, said in model.said.items()}
            assert {a.item: a.class_id for a in store.answers()} == expected
            state, model.now = store.status(), clock[0]
            assert state.labelled == sum(c is not None for c in expected.values())
            assert state.skipped == sum(c is None for c in expected.values())
            assert state.leased == sum(model.holder(item) is not None for item in model.held)
            assert store.complete(0, 0) == (len(expected) == 12)
