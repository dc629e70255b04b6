"""What one person may know, change and hold beside others: blind second opinions, own labels, fair shares."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.testclient import TestClient

from accuacl.labeling.store import Pick
from accuacl.labeling.web.app import make_app
from scripted import new_project

COUNT = 6
TWICE = (0, 2)


class People:
    """Ada leads; Bob and Cleo are annotators. The round is opened by the test, and nothing is trained."""

    def __init__(self, project, count=COUNT, twice=TWICE, guess=1):
        self.project, self.store, self.app = project, project.store, make_app(project)
        self.requests = itertools.count()
        for name in ("cat", "dog"):
            project.store.add_class(name)
        self.clients = {"Ada": self.enter("Ada", project.store.invite("Ada"))}
        for name in ("Bob", "Cleo"):
            self.clients[name] = self.enter(name, project.store.add_person(name, lead=False))
        picks = [Pick(i, i, {}, guess, 0.9) for i in range(count)]
        project.store.open_round(0, 0, picks, twice)

    def enter(self, name, token):
        client = TestClient(self.app, base_url="http://127.0.0.1")
        client.post("/api/login", json={"token": token}).raise_for_status()
        return client

    def get(self, name, path):
        return self.clients[name].get(path).raise_for_status()

    def post(self, name, path, **body):
        return self.clients[name].post(path, json=body | {"request": f"request-{next(self.requests):04}"})

    def label(self, name, *items, as_class=0):
        person = next(person for person in self.store.people() if person.name == name)
        for item in items:  # without taking the next one
            self.store.label(person, item, as_class, f"label-{next(self.requests)}")

    def reviewed(self, name, query=""):
        page = self.get(name, f"/review?{query}").text
        return {int(item) for item in re.findall(r'name="item" value="(\d+)"', page)}


@pytest.fixture
def people(tmp_path):
    with new_project(tmp_path / "p") as project:
        yield People(project)


def test_annotators_change_only_labels_that_are_theirs(people):
    people.label("Ada", 1, 3)
    people.label("Bob", 4, 5)
    before = people.store.latest_change()
    for path, body in (
        ("/api/correct", {"item": 3, "class_id": 1}),
        ("/api/relabel", {"items": [4, 3], "class_id": 1}),
        ("/api/relabel", {"items": [3], "class_id": 1}),
    ):
        answer = people.post("Bob", path, **body)
        said = "Item 3 was not answered by you; only a lead may change it."
        assert (answer.status_code, answer.json()["detail"]) == (409, said)
    assert people.store.latest_change() == before  # nor one of several
    people.post("Bob", "/api/correct", item=4, class_id=1).raise_for_status()
    people.post("Bob", "/api/relabel", items=[4, 5], class_id=1).raise_for_status()
    assert people.store.labels() == {1: 0, 3: 0, 4: 1, 5: 1}
    people.post("Ada", "/api/relabel", items=[4], class_id=0).raise_for_status()
    assert people.post("Bob", "/api/correct", item=4, class_id=1).status_code == 409  # not his any more
    people.post("Bob", "/api/comment", items=[3, 4], text="?").raise_for_status()  # of any
    # The pages offer what the server allows.
    forms = {
        (name, item): "/api/correct" in people.get(name, f"/item/{item}").text
        for name in ("Ada", "Bob")
        for item in (3, 4, 5)
    }
    assert forms == {
        ("Ada", 3): True,
        ("Ada", 4): True,
        ("Ada", 5): True,
        ("Bob", 3): False,
        ("Bob", 4): False,
        ("Bob", 5): True,
    }
    page = people.get("Bob", "/review").text
    assert 'id="relabel"' in page
    assert set(re.findall(r'value="(\d+)" data-others', page)) == {"1", "3", "4"}
    assert 'id="relabel"' not in people.get("Cleo", "/review").text
    assert "data-others" not in people.get("Ada", "/review").text


def test_an_annotator_settles_no_dispute_by_changing_their_own_label(people):
    people.label("Bob", 0)
    people.label("Cleo", 0, as_class=1)
    assert people.reviewed("Ada", "show=settle") == {0}
    people.store.add_class("cow")
    people.post("Bob", "/api/correct", item=0, class_id=2).raise_for_status()
    assert people.reviewed("Ada", "show=settle") == {0}  # they still differ
    people.post("Bob", "/api/correct", item=0, class_id=1).raise_for_status()
    assert people.reviewed("Ada", "show=settle") == set()  # now they agree
    people.post("Bob", "/api/correct", item=0, class_id=0).raise_for_status()
    assert people.reviewed("Ada", "show=settle") == {0}
    people.post("Ada", "/api/relabel", items=[0], class_id=0).raise_for_status()
    assert people.reviewed("Ada", "show=settle") == set()


def told(people, name, item):
    """What a person is told of an item, on all pages and by all calls: the places that name its label."""
    places = set()
    page = people.get(name, "/review").text
    if f'name="item" value="{item}"' in page:
        places.add("review")
    if people.reviewed(name, "guess=1") & {item}:
        places.add("guess")
    if people.reviewed(name, "show=gold") & {item}:
        places.add("gold")
    history = people.get(name, f"/item/{item}").text
    if "labelled it" in history or "<h2>dog</h2>" in history:
        places.add("item")
    sheet = people.get(name, "/dashboard").text.partition(f'href="/item/{item}"')[2].partition("</li>")[0]
    if "dog" in sheet:
        places.add("dashboard")
    if any(item in examples(guide) for guide in people.get(name, "/api/guidelines").json()["classes"]):
        places.add("guideline")
    if f'/item/{item}"' in people.get(name, "/classes").text:
        places.add("classes")
    return places


def examples(guide):
    return [one["item"] for one in guide["examples"]]


EVERYWHERE = {"review", "guess", "item", "dashboard", "guideline", "classes"}


def test_nothing_is_told_of_what_somebody_is_still_to_be_asked(people):
    people.label("Ada", 0, 1, as_class=1)  # 0 is to have a second label
    people.store.add_examples(people.store.people()[0], 1, [0, 1])
    assert told(people, "Ada", 0) == told(people, "Ada", 1) == told(people, "Bob", 1) == EVERYWHERE
    assert told(people, "Bob", 0) == told(people, "Cleo", 0) == set()
    assert people.reviewed("Bob", "guess=1") == {1}  # nor the guesses for what has no answer yet
    people.label("Bob", 0)
    assert told(people, "Bob", 0) == EVERYWHERE
    assert told(people, "Cleo", 0) == set()  # Bob may undo it
    people.store.mark_gold(people.store.people()[0], [1])
    assert told(people, "Ada", 1) == EVERYWHERE | {"gold"}
    assert told(people, "Bob", 1) == set()
    people.label("Bob", 1, as_class=1)
    assert told(people, "Bob", 1) == EVERYWHERE | {"gold"}
    people.label("Ada", 2, 3, 4, 5)
    people.store.close_round(0, 0, share=0.5)
    assert told(people, "Cleo", 0) == EVERYWHERE
    assert told(people, "Cleo", 1) == set()


def test_ones_own_last_relabelling_is_undone_on_the_page(people):
    people.label("Bob", 1, 3)
    people.label("Cleo", 4)
    people.post("Bob", "/api/relabel", items=[1, 3], class_id=1).raise_for_status()
    assert "Undo that" not in people.get("Ada", "/review").text
    page = people.get("Bob", "/review").text
    assert "You gave 2 examples the label “dog”." in page
    (batch,) = re.findall(r'name="batch" value="([\w-]+)"', page)
    assert people.post("Ada", "/api/relabel/undo", batch=batch).status_code == 409
    assert people.post("Bob", "/api/relabel/undo", batch=batch).json() == {"changed": 2}
    assert people.store.labels() == {1: 0, 3: 0, 4: 0}
    assert "Undo that" not in people.get("Bob", "/review").text


def test_nobody_holds_a_whole_round(people):
    def holds():
        view = people.post("Bob", "/api/gallery").json()
        return [cell["item"] for group in view["groups"] for cell in group["items"]]

    mine = holds()
    assert len(mine) == COUNT
    people.post("Bob", "/api/gallery/renew", items=mine).raise_for_status()
    assert people.get("Cleo", "/api/state").json()["state"]["free"]  # so that her page asks
    pick = people.post("Cleo", "/api/next").json()["pick"]
    assert pick["item"] == mine[-1]
    assert people.post("Bob", "/api/gallery/renew", items=mine).json() == {"lost": [mine[-1]]}
    assert holds() == mine[:-1]
    labels = [{"item": item, "class_id": 0} for item in mine]
    done = people.post("Bob", "/api/gallery/label", labels=labels).json()
    assert done["saved"] == mine[:-1]
    assert done["refused"] == [f"Someone else has item {mine[-1]} now; take another one."]


def test_who_logs_out_is_not_waited_for_and_a_lead_can_close_the_round(people, monkeypatch):
    monkeypatch.setattr(people.project, "chosen", lambda task, round: True)  # the test has chosen them
    button = "Close this round now"
    assert button not in people.get("Ada", "/project").text  # nothing is labelled yet
    people.post("Cleo", "/api/next").raise_for_status()  # she is there
    people.post("Bob", "/api/next").raise_for_status()
    people.label("Ada", 1, 2, 3, 5)
    assert button in people.get("Ada", "/project").text
    people.label("Bob", 4)
    people.label("Cleo", 0)
    assert (people.store.status().left, people.store.status().opinions) == (0, 2)
    assert button in people.get("Ada", "/project").text  # it does not wait for second labels then
    people.post("Cleo", "/api/logout").raise_for_status()
    assert people.store.status().opinions == 2  # Bob can give both
    people.post("Bob", "/api/gallery").raise_for_status()
    assert people.store.status().opinions == 2
    people.post("Bob", "/api/logout").raise_for_status()
    assert people.store.status().opinions == 0
    assert people.store.complete(0, 0)
    assert button not in people.get("Ada", "/project").text  # it closes by itself
    people.clients["Bob"] = people.enter("Bob", people.store.invite("Bob"))
    people.post("Bob", "/api/next").raise_for_status()
    assert people.store.status().opinions == 2  # he is back
    people.post("Ada", "/api/round/enough").raise_for_status()
    assert button not in people.get("Ada", "/project").text


def test_the_map_does_not_tell_either(people, monkeypatch):
    people.label("Ada", 0, 1, as_class=1)
    places = (np.arange(COUNT), np.zeros((COUNT, 2)), COUNT)
    monkeypatch.setattr(people.app.state.site, "pool_map", SimpleNamespace(shown=lambda latest: places))

    def states(name):
        return {point[0]: point[3:] for point in people.get(name, "/api/map").json()["points"]}

    assert [states("Ada")[item] for item in (0, 1, 2)] == [[2, 1], [2, 1], [1, -1]]
    assert [states("Bob")[item] for item in (0, 1, 2)] == [[0, -1], [2, 1], [0, -1]]
    people.store.mark_gold(people.store.people()[0], [1])
    assert [states("Bob")[item] for item in (0, 1, 2)] == [[0, -1]] * 3


def seen_by(people, name):
    """All that a person is told, but for what is on the screen: numbers of items are left out."""
    told = {
        path: people.get(name, path).text for path in ("/dashboard", "/classes", "/review", "/api/map", "/api/state")
    }
    dropped = re.compile(r'stamp="[^"]*"|"request" value="\w+"|/item/\d+|[Ii]tem \d+|value="\d+"')
    return {path: dropped.sub("", text) for path, text in told.items()}


def answer(people, name, view):
    """Answer the example on the screen; the view after it."""
    return people.post(name, "/api/label", item=view["pick"]["item"], class_id=1).raise_for_status().json()


@pytest.mark.parametrize("what", ["second", "gold"])
def test_what_is_asked_again_looks_like_everything_else(tmp_path, what):
    """Bob answers fresh items and one that has a label: they are alike in every call, before his answer and after."""
    with new_project(tmp_path / "p") as project:
        people = People(project, count=14, twice=(0,) if what == "second" else ())
        people.label("Ada", 0, 1, as_class=1)
        if what == "gold":
            people.store.mark_gold(people.store.people()[0], [0])
        view, told, examples, counters = people.post("Bob", "/api/next").json(), [], [], []
        for _ in range(11):
            item, ahead = view["pick"]["item"], view["ahead"]
            before = seen_by(people, "Bob") if item in (0, 3) else None
            examples.append((item, sorted(view["pick"])))
            assert view["state"].keys().isdisjoint({"labelled", "skipped", "total", "budget", "opinions"})
            view = answer(people, "Bob", view)
            counters.append(view["state"]["own"]["labelled"])
            assert not ahead or view["pick"] is None or view["pick"]["item"] == ahead[0]["item"]  # as announced
            if before:
                after = seen_by(people, "Bob")
                told.append({path for path in before if before[path] != after[path]})
        assert {item for item, _ in examples} >= {0, 3}
        assert all(names == ["fields", "item", "kind"] for _, names in examples)
        assert counters == list(range(1, 12))
        assert told == [told[0]] * 2
        assert "/classes" not in told[0]
        assert people.post("Ada", "/api/next").json()["state"]["labelled"] == 12  # leads are told


@pytest.mark.parametrize("known", [True, False])
def test_gold_is_not_known_by_the_guess_that_it_lacks(tmp_path, monkeypatch, known):
    """Gold of the first round, when there was no model: either there is a guess for everything or for nothing."""
    with new_project(tmp_path / "p") as project:
        people = People(project, count=2, twice=(), guess=None)
        people.label("Ada", 0, 1, as_class=1)
        people.store.mark_gold(people.store.people()[0], [0])
        assert people.store.close_round(0, 0)
        people.store.open_round(0, 1, [Pick(i, i - 2, {}, 0, 0.9) for i in range(2, 16)])
        monkeypatch.setattr("accuacl.labeling.web.api.unlearned_guesses", lambda _: {0: (1, 0.8)} if known else {})
        view, guesses = people.post("Bob", "/api/next").json(), {}
        for _ in range(10):
            item = view["pick"]["item"]
            guesses[item] = people.get("Bob", f"/api/guess/{item}").json()["name"]
            view = answer(people, "Bob", view)
        assert guesses.pop(0) == ("dog" if known else None)
        assert set(guesses.values()) == ({"cat"} if known else {None})
        view = people.post("Ada", "/api/next").json()  # leads are told
        assert people.get("Ada", f"/api/guess/{view['pick']['item']}").json()["name"] == "cat"


def test_where_nobody_is_asked_twice_all_are_told_how_far_the_round_is(tmp_path):
    with new_project(tmp_path / "p") as project:
        people = People(project, twice=())
        people.label("Ada", 0, 1)
        view = people.post("Bob", "/api/next").json()
        view = answer(people, "Bob", view)
        state = view["state"]
        assert (state["labelled"], state["total"], state["own"]["labelled"]) == (3, COUNT, 1)
        assert state["budget"]["used"] == 3
        assert view["pick"]["rank"] == 3
        assert "labels left in the budget" in people.get("Bob", "/dashboard").text
