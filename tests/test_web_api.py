"""What the page's script asks for: one example at a time, nothing kept twice, the guess only when asked."""

from __future__ import annotations

import errno
import time

import httpx
import numpy as np
import pytest

from accuacl.base.progress import ignore
from accuacl.labeling.project import NewItems, Project, make, read_images
from web_project import image_project, log_in, picture, running

PER_ROUND = 4


@pytest.fixture
def project(tmp_path):
    with image_project(tmp_path, per_round=PER_ROUND) as project:
        yield project


@pytest.fixture
def client(project):
    with running(project) as address, httpx.Client(base_url=address, timeout=30) as client:
        log_in(client, project, "Ada")
        yield client


def take(client):
    return client.post("/api/next", json={}).json()


def label(client, item, class_id, request=None):
    said = {"item": item, "class_id": class_id, "request": request or f"request-{item}-{class_id}"}
    return client.post("/api/label", json=said)


def wait_for(client, reached, seconds=60):
    deadline = time.monotonic() + seconds
    while not reached(view := client.get("/api/state").json()["state"]):
        assert time.monotonic() < deadline, view
        time.sleep(0.05)
    return view


def test_the_example_comes_with_its_reasons_but_without_the_guess(client, project):
    view = take(client)
    assert view["pick"].keys() == {"item", "rank", "of", "scores", "kind", "image"}
    assert view["pick"]["rank"] == 0
    assert view["state"]["budget"] == {"used": 0, "total": 2 * PER_ROUND}
    assert view["classes"] == [{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]
    assert take(client)["pick"]["item"] == view["pick"]["item"]  # still in hand
    assert client.get(f"/api/guess/{view['pick']['item']}").json() == {"name": None, "confidence": None}


def test_the_same_request_again_changes_nothing(client, project):
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
    assert "Accuracy on each task after each round" in page
    assert "Confusion, on held-out examples" in page
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


def test_the_last_label_can_be_undone_for_a_while(client, project):
    view = take(client)
    while view["pick"]:
        last = view["pick"]["item"]
        view = label(client, last, 0).json()
    view = client.post("/api/undo", json={"request": "second-thoughts"}).json()
    assert view["pick"]["item"] == last
    time.sleep(1)
    assert project.store.status().open


def test_a_lease_that_runs_out_goes_to_someone_else(client, project):
    with httpx.Client(base_url=client.base_url) as other:
        log_in(other, project, "Bob")
        item = take(client)["pick"]["item"]
        assert take(other)["pick"]["item"] != item
        ada = next(person for person in project.store.people() if person.name == "Ada")
        project.store.renew(ada, item, seconds=0.1)
        time.sleep(0.2)
        log_in(other, project, "Cleo")
        assert take(other)["pick"]["item"] == item
        answer = client.post("/api/renew", json={"item": item})
        assert answer.status_code == 409
        assert "Someone else has item" in answer.json()["detail"]


def test_a_full_disk_is_said_and_nothing_is_kept(client, project, monkeypatch):
    item = take(client)["pick"]["item"]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(project.store, "label", full)
        answer = label(client, item, 0)
    assert answer.status_code == 503  # on which the page sends the same again
    assert "No space left" in answer.json()["detail"]
    assert label(client, item, 0).status_code == 200


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


def test_training_that_fails_is_said(client, project, monkeypatch):
    def fail(report: object) -> None:
        raise ValueError("another process (id 1) is working on it")

    monkeypatch.setattr(project, "advance", fail)
    view = take(client)
    while view["pick"]:
        view = label(client, view["pick"]["item"], 0).json()
    wait_for(client, lambda view: "another process" in view["text"])
    assert "another process" in client.get("/dashboard").text
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
        with running(project) as address, httpx.Client(base_url=address) as client:
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
