"""Leads settle what people disagree about: who said what, one key, and a decision that is kept and can be undone."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from accuacl.labeling.project.exported_tables import write_answers
from accuacl.labeling.store import Store
from scripted import new_project
from test_web_others import People
from web_project import PATIENCE, TestTrainer, image_project, running

expect.set_options(timeout=1000 * PATIENCE)


@pytest.fixture
def people(tmp_path):
    """Bob and Cleo disagree about items 0 and 2; Cleo had been shown the model's guess for item 2."""
    with new_project(tmp_path / "p") as project:
        people = People(project)
        cleo = next(person for person in people.store.people() if person.name == "Cleo")
        people.store.show_guess(cleo, people.store.picks(0, 0)[2])
        for item in (0, 2):
            people.label("Bob", item)
            people.label("Cleo", item, as_class=1)
        yield people


def disputes(people):
    return people.get("Ada", "/api/disputes").json()


def test_everybodys_answers_are_side_by_side(people):
    view = disputes(people)
    assert (view["count"], [one["item"] for one in view["disputes"]]) == (2, [0, 2])
    assert [(a["person"], a["name"], a["kind"]) for a in view["disputes"][0]["answers"]] == [
        ("Bob", "cat", "label"),
        ("Cleo", "dog", "opinion"),
    ]
    assert [a["shown"] for a in view["disputes"][1]["answers"]] == [None, "dog"]
    assert view["disputes"][0]["guess"] == {"id": 1, "name": "dog", "confidence": 0.9}
    assert [one["item"] for one in people.get("Ada", "/api/disputes?first=2").json()["disputes"]] == [2, 0]
    assert 'href="/settle"' in people.get("Ada", "/dashboard").text
    assert 'href="/settle"' not in people.get("Bob", "/review").text
    for path in ("/settle", "/api/disputes"):
        assert people.clients["Bob"].get(path).status_code == 403
    assert people.post("Bob", "/api/settle", item=0, class_id=1).status_code == 403


def test_a_decision_is_the_label_is_exported_as_one_and_is_undone(people, tmp_path):
    said = {"item": 0, "class_id": 1, "request": "decision-0001"}
    for _ in range(2):  # sent again, it changes nothing
        view = people.clients["Ada"].post("/api/settle", json=said).raise_for_status().json()
        assert (view["count"], view["disputes"][0]["item"]) == (1, 2)
    assert people.store.labels()[0] == 1
    assert "decided what it is" in people.get("Ada", "/item/0").text
    write_answers(people.project, tmp_path)
    with (tmp_path / "answers.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["item"] == "0"]
    told = [(row["kind"], row["person"], row["class"], row["undone"]) for row in rows]
    assert told == [
        ("label", "Bob", "cat", "False"),
        ("opinion", "Cleo", "dog", "False"),
        ("decision", "Ada", "dog", "False"),
    ]
    again = people.post("Ada", "/api/settle", item=0, class_id=0)
    assert (again.status_code, "is no longer disputed" in again.json()["detail"]) == (409, True)
    people.post("Ada", "/api/relabel/undo", batch="decision-0001").raise_for_status()
    assert people.store.labels()[0] == 0
    assert disputes(people)["count"] == 2


def test_to_agree_with_the_label_that_is_there_settles_it_too(people):
    people.post("Ada", "/api/settle", item=0, class_id=0).raise_for_status()
    assert disputes(people)["count"] == 1
    assert people.store.labels()[0] == 0


DECIDES = """
import os, signal, sys
from pathlib import Path
from accuacl.labeling.store import Store
store = Store(Path(sys.argv[1]))
store.decide(store.people()[0], 2, 1, "decided-then-killed")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.posix
def test_a_decision_outlives_the_process(people):
    path = people.project.directory / "labels.sqlite"
    ended = subprocess.run([sys.executable, "-c", DECIDES, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    with Store(path) as store:
        assert store.labels()[2] == 1
        assert store.unsettled() == {0}


@pytest.fixture
def disputed(tmp_path):
    """A project whose first three picks are disputed; the second is a cat to everybody who was asked but the last."""
    with image_project(tmp_path) as project:
        ada, *others = (project.store.person_of(project.store.add_person(name)) for name in ("Ada", "Bob", "Cleo"))
        with running(project, trainer=TestTrainer(project)) as server:
            picks = [pick.item for pick in project.store.picks(0, 0)][:3]
            for item in picks:
                project.store.label(others[0], item, 0, f"bob-{item}")
                project.store.mark_gold(ada, [item])  # so that others may be asked
                project.store.label(others[1], item, 1, f"cleo-{item}")
            yield server, project, picks


def on_screen(page, item):
    page.wait_for_selector(f"#desk[data-seen='{item}']")


def test_disputes_are_settled_by_keys_alone(chromium, watch, disputed):
    server, project, picks = disputed
    page = watch.page(chromium)
    page.goto(f"{server}/login?next=/settle#token={project.store.invite('Ada')}")
    on_screen(page, picks[0])
    expect(page.locator("#said-by tr")).to_have_count(2)
    expect(page.locator("#said-by tr").nth(1)).to_contain_text("dogsecond opinion")
    expect(page.locator("nav .count")).to_have_text("3 to settle")
    page.keyboard.press("s")  # later
    on_screen(page, picks[1])
    page.keyboard.press("2")
    on_screen(page, picks[2])
    expect(page.locator("#said")).to_have_text("Settled: dog.")
    assert project.store.labels()[picks[1]] == 1
    page.keyboard.press("u")
    on_screen(page, picks[1])
    assert project.store.labels()[picks[1]] == 0
    for item in (picks[1], picks[2], picks[0]):  # what was put off comes last
        on_screen(page, item)
        page.keyboard.press("1")
    expect(page.locator("#nothing")).to_be_visible()
    assert project.store.unsettled() == set()
    page.locator("#undo-late").click()
    on_screen(page, picks[0])


def test_any_other_class_is_found_by_words(chromium, watch, disputed):
    server, project, picks = disputed
    for name in ("red big dog", "big red cat", "Löwe"):
        project.store.add_class(name)
    page = watch.page(chromium)
    page.goto(f"{server}/login?next=/settle#token={project.store.invite('Ada')}")
    on_screen(page, picks[0])
    page.keyboard.press("/")
    page.keyboard.type("red b")
    expect(page.locator("#classes button")).to_have_text(["Enterred big dog", "big red cat"])
    page.keyboard.press("ArrowDown")
    expect(page.locator("#classes button.first")).to_have_text("Enterbig red cat")
    page.keyboard.press("Enter")
    on_screen(page, picks[1])
    assert project.store.labels()[picks[0]] == 3
    page.keyboard.press("/")
    page.keyboard.type("lowex")
    expect(page.locator("#none")).to_have_text("No class matches “lowex”.")
    page.keyboard.press("Backspace")
    expect(page.locator("#classes button")).to_have_text(["EnterLöwe"])
