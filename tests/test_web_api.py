"""What the page's script asks for: one example at a time, nothing kept twice, the guess only when asked."""

from __future__ import annotations

import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest

from accuacl import Features, select, strategy_names
from accuacl.base.errors import InputError
from accuacl.base.progress import Progress, ignore
from accuacl.labeling.project import NewItems, Project, make, read_images
from accuacl.labeling.store import Pick, Status
from accuacl.labeling.store.database import Transaction
from accuacl.labeling.web.api import UNKNOWN, meaning, reasons
from accuacl.labeling.web.trainer import Pace
from web_project import TestTrainer, browse, image_project, log_in, picture, running, wait_until

PER_ROUND = 4
PROJECT = {"per_round": PER_ROUND}


def take(client):
    return client.post("/api/next", json={}).json()


def label(client, item, class_id, request=None):
    said = {"item": item, "class_id": class_id, "request": request or f"request-{item}-{class_id}"}
    return client.post("/api/label", json=said)


def wait_for(client, reached):
    views = []
    wait_until(lambda: views.append(client.get("/api/state").json()["state"]) or reached(views[-1]))
    return views[-1]


def test_the_example_comes_with_its_reasons_but_without_the_guess(client, project):
    view = take(client)
    assert view["pick"].keys() == {"item", "rank", "of", "scores", "meanings", "kind", "image"}
    assert view["pick"]["rank"] == 0
    assert view["state"]["budget"] == {"used": 0, "total": 2 * PER_ROUND}
    assert view["classes"] == [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]
    assert take(client)["pick"]["item"] == view["pick"]["item"]  # still in hand
    assert client.get(f"/api/guess/{view['pick']['item']}").json() == {"name": None, "confidence": None}


def test_the_same_request_again_changes_nothing(client, project):
    wait_until(lambda: project.chosen(0, 0))
    wait_for(client, lambda view: view["progress"] is None)  # the trainer's progress is part of an answer
    item = take(client)["pick"]["item"]
    first = label(client, item, 1, "the-same-request").json()
    again = label(client, item, 1, "the-same-request").json()
    assert again == first
    assert project.store.labels() == {item: 1}
    assert sum(event.kind == "label" for event in project.store.history(item)) == 1
    assert label(client, item, 0, "the-same-request").status_code == 409
    assert label(client, item, 0, "another-request").status_code == 409


def test_round_after_round_until_all_is_done_and_then_the_next_task(client, project, tmp_path):
    for r in range(2):
        wait_for(client, lambda view: view["phase"] == "labelling")
        view = take(client)
        while view["pick"]:
            assert view["state"]["budget"]["used"] == r * PER_ROUND + view["state"]["labelled"]
            view = label(client, view["pick"]["item"], view["pick"]["item"] % 2).json()
    view = wait_for(client, lambda view: view["phase"] == "done")
    assert view["budget"] == {"used": 2 * PER_ROUND, "total": 2 * PER_ROUND}
    page = client.get("/dashboard").text
    assert '<svg class="plot"' in page
    assert "Accuracy on each task after each training" in page
    assert "The last training" in page
    assert "Confusion matrix, held-out examples" in page
    (tmp_path / "more").mkdir()
    for i in range(8):
        picture(100 + i).save(tmp_path / "more" / f"{i}.png")
    project.add(read_images(tmp_path / "more", ignore))  # noticed by itself
    view = wait_for(client, lambda view: view["phase"] == "labelling")
    assert (view["task"], view["round"], view["budget"]) == (1, 0, {"used": 0, "total": 8})


def test_skips_are_refunded_and_undone(client, project):
    item = take(client)["pick"]["item"]
    view = client.post("/api/skip", json={"item": item, "request": "a-skip-of-it"}).json()
    assert view["state"]["skipped"] == 1
    assert view["state"]["budget"]["used"] == 0
    view = client.post("/api/undo", json={"request": "the-undoing"}).json()
    assert view["pick"]["item"] == item
    assert client.post("/api/undo", json={"request": "nothing-left"}).status_code == 422


def test_the_last_label_can_be_undone_for_a_while(client, project, trainer):
    trainer.may_start.clear()
    view = take(client)
    while view["pick"]:
        last = view["pick"]["item"]
        view = label(client, last, 0).json()
    view = client.post("/api/undo", json={"request": "second-thoughts"}).json()
    assert view["pick"]["item"] == last
    trainer.may_start.set()
    checks = trainer.checks
    wait_until(lambda: trainer.checks > checks + 1)
    assert project.store.status().open


def test_a_lease_that_runs_out_goes_to_someone_else(client, project):
    with browse(client.base_url) as other:
        log_in(other, project, "Bob")
        item = take(client)["pick"]["item"]
        assert take(other)["pick"]["item"] != item
        ada = next(person for person in project.store.people() if person.name == "Ada")
        project.store.renew(ada, item, seconds=0.0)
        log_in(other, project, "Cleo")
        assert take(other)["pick"]["item"] == item
        answer = client.post("/api/renew", json={"item": item})
        assert answer.status_code == 409
        assert "Someone else has item" in answer.json()["detail"]


def test_a_full_disk_is_said_and_nothing_is_kept(client, project, monkeypatch):
    item = take(client)["pick"]["item"]

    def full(*_: object, **__: object) -> None:
        raise sqlite3_error("database or disk is full", sqlite3.SQLITE_FULL)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "event", full)
        answer = label(client, item, 0)
    assert answer.status_code == 503  # on which the page sends the same again
    # the file is named without its folders, which are nobody's business
    assert answer.json()["detail"].startswith(
        "project/labels.sqlite cannot be read or written (no space left on device)"
    )
    assert label(client, item, 0).status_code == 200


def sqlite3_error(text, code):
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


def test_a_bug_is_not_taken_for_wrong_input(client, project, monkeypatch, caplog):
    item = take(client)["pick"]["item"]

    def broken(*_: object) -> None:
        raise ValueError("operands could not be broadcast together")

    with monkeypatch.context() as patched:
        patched.setattr(project.store, "turn", broken)
        answer = label(client, item, 0)
    assert answer.status_code == 500
    assert answer.json() == {"detail": "Something went wrong on the server; its log has the details."}
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert answer.headers["cache-control"] == "no-store"
    wait_until(lambda: "operands could not be broadcast" in caplog.text)  # the server logs it after it has answered
    assert "in broken" in caplog.text  # the traceback
    assert label(client, item, 0).status_code == 200


@pytest.mark.parametrize(
    ("strategy", "names", "unnamed"),
    [
        ("kcenter", ["labelled in this task"], ["memory"]),
        ("kcenter+memory", ["labelled in this task", "replay memory"], []),
        ("badge", ["chosen before it in this round"], ["labelled", "memory"]),
        ("badge+memory", ["chosen before it in this round", "replay memory"], ["labelled"]),
        ("a-plugin", ["a score of the strategy"], []),
    ],
)
def test_a_distance_is_explained_as_the_strategy_measures_it(strategy, names, unnamed):
    text = meaning(strategy, "distance")
    assert all(name in text for name in names)
    assert not any(name in text for name in unnamed)


def test_every_score_of_every_strategy_is_explained():
    rng = np.random.default_rng(0)
    pool = Features(rng.normal(size=(40, 5)), rng.dirichlet(np.ones(3), 40))
    for strategy in strategy_names():
        picked = select(strategy, pool=pool, budget=3, labelled=pool.rows(slice(0, 4)), memory=pool, past=40)
        assert picked.scores
        assert not [name for name in picked.scores if meaning(strategy, name) == UNKNOWN], strategy


def test_a_class_that_is_there_is_not_added_twice(client, project):
    first = client.post("/api/classes", json={"name": " okapi "}).json()
    again = client.post("/api/classes", json={"name": "okapi"}).json()
    assert first["added"] == again["added"] == 2
    assert [one.name for one in project.store.classes()] == ["cat", "dog", "okapi"]


def test_classes_are_renamed_and_merged(client, project):
    item = take(client)["pick"]["item"]
    label(client, item, 1)
    assert client.post("/api/classes/1/rename", json={"name": "hound"}).status_code == 200
    assert client.post("/api/classes/1/rename", json={"name": "cat"}).status_code == 409
    assert client.post("/api/classes/1/merge", json={"into": "0"}).status_code == 200
    assert project.store.labels() == {item: 0}
    assert client.get("/api/state").json()["classes"] == [{"id": 0, "name": "cat"}]
    assert "hound counts as cat" in client.get("/classes").text


def test_the_page_of_many_classes_is_small(client, project):
    for i in range(150):
        project.store.add_class(f"animal {i}")
    assert len(client.get("/classes").content) < 80_000  # once a megabyte


def test_browsers_are_told_what_happened(client):
    page = client.get("/nowhere", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "<h1>There is no such page</h1>" in page.text
    page = client.get("/item/999999", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "<h1>There is no such item</h1>" in page.text
    assert 'href="/dashboard"' in page.text  # the way to the other pages
    page = client.get("/item/five", headers={"Accept": "text/html"})
    assert page.status_code == 404
    assert "<h1>There is no such page</h1>" in page.text
    assert client.get("/nowhere").json() == {"detail": "Not Found"}


def test_preparing_is_reported_from_the_start(tmp_path):
    with image_project(tmp_path / "other") as project:
        told = []
        project.advance(lambda progress: told.append((progress.stage, progress.done)))
    assert [done for stage, done in told if stage == "preparing"][:2] == [0, 32]


def test_how_long_preparing_will_take_is_said(project):
    now = 0.0
    trainer = TestTrainer(project)
    trainer._pace = Pace(lambda: now)
    said = []
    for now, done in ((0.0, 25_600), (1.0, 25_632), (10.0, 26_600), (400.0, 49_000), (401.0, 50_000)):  # noqa: B007
        trainer._report(Progress(done, 50_000, "task 1", "preparing"))
        said.append(trainer.now.text)
    assert said == [
        "25,600 of 50,000 examples are prepared",  # by an earlier process: that says nothing of the pace
        "25,632 of 50,000 examples are prepared",
        "26,600 of 50,000 examples are prepared, 100 a second, about 4 minutes left",
        "49,000 of 50,000 examples are prepared, 58.5 a second, less than a minute left",
        "50,000 of 50,000 examples are prepared, 60.8 a second, less than a minute left",
    ]
    trainer._report(Progress(0, 600, "task 2", "preparing"))
    assert trainer.now.text == "0 of 600 examples are prepared"


def test_training_that_fails_is_said(client, project, monkeypatch):
    def fail(report: object, ahead: bool = False) -> None:
        raise InputError("another process (id 1) is working on it.")

    monkeypatch.setattr(project, "advance", fail)
    view = take(client)
    while view["pick"]:
        view = label(client, view["pick"]["item"], 0).json()
    wait_for(client, lambda view: view["text"] == "Another process (id 1) is working on it.")
    assert "Another process (id 1) is working on it." in client.get("/dashboard").text
    monkeypatch.undo()
    wait_for(client, lambda view: view["round"] == 1 and view["phase"] == "labelling")


def test_a_bug_in_training_is_shown_with_its_type_and_logged_once(client, project, trainer, monkeypatch, caplog):
    def fail(report: object, ahead: bool = False) -> None:
        raise KeyError("mean")

    monkeypatch.setattr(project, "advance", fail)
    view = take(client)
    while view["pick"]:
        view = label(client, view["pick"]["item"], 0).json()
    wait_for(client, lambda view: view["text"].startswith("KeyError: 'mean' (a bug"))
    assert "KeyError: &#39;mean&#39; (a bug" in client.get("/dashboard").text
    tries = []
    monkeypatch.setattr(project, "advance", lambda report, ahead: tries.append(1) or fail(report))
    wait_until(lambda: len(tries) > 2)
    records = [record for record in caplog.records if record.name == "accuacl.labeling.web.trainer"]
    assert len(records) == 1
    assert "in fail" in caplog.text  # the traceback
    monkeypatch.undo()
    wait_for(client, lambda view: view["round"] == 1 and view["phase"] == "labelling")


@pytest.mark.parametrize("kind", ["texts", "vectors"])
def test_texts_and_vectors_are_shown_too(tmp_path, kind):
    names = [f"row {i}" for i in range(12)]
    texts = [f"line one\n<b>line two of {i}</b>" for i in range(12)] if kind == "texts" else None
    vectors = np.eye(12, dtype=np.float32) if kind == "vectors" else None
    shown = [{"amount": i / 3, "country": "<i>"} for i in range(12)] if kind == "vectors" else None
    settings = make({"kind": kind, "per_round": 4, "rounds": 1})
    with Project.create(tmp_path / "project", settings, ["good", "bad"]) as project:
        project.add(NewItems(kind, "made up", names, texts=texts, vectors=vectors, shown=shown))
        with running(project) as address, browse(address) as client:
            log_in(client, project)
            pick = take(client)["pick"]
            if kind == "texts":
                assert pick["text"] == texts[pick["item"]]
            else:
                fields = dict(pick["fields"])
                assert fields["amount"] == f"{pick['item'] / 3:.6g}"
                assert fields["country"] == "<i>"
            page = client.get(f"/item/{pick['item']}")
            assert "&lt;" in page.text
            assert client.get("/dashboard").status_code == 200
            assert client.get(f"/item/{pick['item']}/image").status_code == 404


def test_a_choice_that_takes_long_moves_the_bar(trainer):
    trainer._report(Progress(0.4, 2, "task 1/2 round 2/4 choosing", "choosing", (0, 1)))
    assert (trainer.now.text, trainer.now.done) == ("Choosing the next examples", None)
    trainer._report(Progress(0.4, 2, "task 1/2 round 2/4 choosing 25 %", "choosing", (0, 1), step=0.25))
    assert (trainer.now.text, trainer.now.done) == ("Choosing the next examples", 0.25)


@pytest.mark.parametrize(
    ("first", "round", "by"),
    [("coverage", 0, "coverage"), ("coverage", 1, "uncertain-coverage"), ("uniform", 0, "uncertain-coverage")],
)
def test_a_first_round_that_covers_the_pool_says_so_whatever_chooses_the_others(first, round, by):
    settings = SimpleNamespace(strategy="uncertain-coverage", first_round=first)
    site = SimpleNamespace(project=SimpleNamespace(settings=settings))
    shown = reasons(site, Pick(3, 0, {"gain": 2.5}), Status(0, round, 10, 0, 0, 0, True))
    assert shown["meanings"] == {"gain": meaning(by, "gain")}
