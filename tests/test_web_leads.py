"""What leads do without the command line: bring in data and labels, change the plan, take out backups, forget items."""

from __future__ import annotations

import io
import json
import os
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from accuacl import InputError
from accuacl.labeling.project import Project, make, preview, read_texts
from accuacl.labeling.web.incoming import Places
from effort import wait_until
from web_project import TestTrainer, browse, log_in, picture, running

pytestmark = pytest.mark.posix

TEXTS = [f"{word} number {i}" for i in range(30) for word in ("apples", "bolts")]


@pytest.fixture
def texts(tmp_path):
    """A project of texts, with the words `apples` and `bolts`; it can forget."""
    path = tmp_path / "texts.csv"
    path.write_text("id,text\n" + "\n".join(f"t{i},{text}" for i, text in enumerate(TEXTS)))
    settings = make({"kind": "texts", "model": "none", "per_round": 4, "rounds": 1, "text_features": 64})
    with Project.create(tmp_path / "project", settings, ["fruit", "tool"]) as project:
        project.add(read_texts(path, "text"))
        yield project


@pytest.fixture
def lead(texts, tmp_path):
    """Ada, who leads the project of texts; below /data there are files of the server."""
    data = tmp_path / "data"
    (data / "more").mkdir(parents=True)
    (data / "more" / "second.csv").write_text("body,kind\npears and plums,fruit\nscrews,\nnuts,\n")
    (data / "notes.md").write_text("secret")
    (data / ".hidden").mkdir()
    (tmp_path / "outside.csv").write_text("text\nsecret\n")
    os.symlink(tmp_path / "outside.csv", data / "link.csv")
    os.symlink(tmp_path, data / "up")
    trainer = TestTrainer(texts)
    with running(texts, trainer=trainer, places=Places([data])) as address, browse(address) as client:
        wait_until(trainer.has_chosen)
        log_in(client, texts, "Ada")
        yield client


def send(client, path, data, name, **more):
    headers = {"Content-Type": "application/octet-stream"}
    return client.post(path, params={"name": name, **more}, content=data, headers=headers)


def label_all(client):
    view = client.post("/api/next", json={}).json()
    while view["state"]["phase"] != "done":
        if view["pick"] is None:
            view = client.post("/api/next", json={}).json()
            continue
        body = {
            "item": view["pick"]["item"],
            "class_id": int("bolts" in view["pick"]["text"]),
            "request": os.urandom(8).hex(),
        }
        view = client.post("/api/label", json=body).json()


def test_one_more_round_and_the_plan(lead, texts):
    assert lead.post("/api/tasks/3/round", json={}).status_code == 409
    label_all(lead)
    assert "One more round of task 1" in lead.get("/project").text
    assert lead.post("/api/tasks/0/round", json={}).status_code == 200
    label_all(lead)
    assert texts.store.used(0) == 8
    assert lead.post("/api/plan", json={"overlap": "25", "holdout": "10"}).status_code == 200  # as a form sends them
    assert (texts.overlap, texts.settings.holdout) == (0.25, 0.1)
    answer = lead.post("/api/plan", json={"budget": 50})
    assert (answer.status_code, "add rounds instead" in answer.json()["detail"]) == (409, True)
    assert lead.post("/api/plan", json={"overlap": 101}).status_code == 422
    page = lead.get("/project").text
    assert 'name="overlap" min="0" max="100" step="any" value="25"' in page


def test_labels_and_gold_from_a_file(lead, texts):
    rows = "name,class\nt0,fruit\nt1,tool\nt2,metal\nnobody,fruit\n"
    answer = send(lead, "/api/labels/file", rows, "my labels.csv").json()
    assert (answer["labels"], answer["refusals"]) == (2, 2)
    assert answer["refused"] == [
        "line 4: there is no class 'metal'; fix it, or add it on the page.",
        "line 5: there is no item 'nobody' in this project; fix it or leave the row out.",
    ]
    assert send(lead, "/api/labels/file", rows, "x.csv", new_classes=True).json()["labels"] == 1
    assert [c.name for c in texts.store.classes()] == ["fruit", "tool", "metal"]
    assert texts.store.people()[0].name == "Ada"
    answer = send(lead, "/api/gold/file", "name,class\nt3,tool\n", "gold.csv").json()
    assert (answer["gold"], answer["total"]) == (1, 1)
    wrong = send(lead, "/api/gold/file", "name,class\nt3,nothing\n", "gold.csv")
    assert (wrong.status_code, "/" in wrong.json()["detail"]) == (409, False)
    for name in ("labels.txt", "labels.csv.xz", "../../labels"):
        assert send(lead, "/api/labels/file", rows, name).status_code == 409, name
    texts = pa.array(["x" * 1000] * 1_000_000)
    for column in (texts, texts.dictionary_encode()):
        bomb = io.BytesIO()
        pq.write_table(pa.table({"name": column}), bomb)
        detail = send(lead, "/api/labels/file", bomb.getvalue(), "b.parquet").json()["detail"]
        assert detail.startswith("The file takes more")


def test_a_table_is_shown_before_it_is_added(lead, texts):
    upload = lead.post("/api/uploads", json={}).json()["upload"]
    assert lead.post(f"/api/uploads/{upload}/preview", json={}).status_code == 409
    send(
        lead, f"/api/uploads/{upload}/files", "words,kind,when\nplums,fruit,b\nscrews,,a\n", "a.csv"
    ).raise_for_status()
    shown = lead.post(f"/api/uploads/{upload}/preview", json={}).json()
    assert shown == {
        "columns": [
            {"name": "words", "values": ["plums", "screws"]},
            {"name": "kind", "values": ["fruit", ""]},
            {"name": "when", "values": ["b", "a"]},
        ],
        "rows": 2,
    }
    added = lead.post(f"/api/uploads/{upload}/finish", json={"column": "words", "label": "kind", "task": "when"}).json()
    assert (added["task"], added["tasks"], added["count"]) == (2, 2, 2)
    assert [texts.tasks.table(i)["text"] for i in (1, 2)] == [["screws"], ["plums"]]
    assert texts.tasks.table(2)["label"] == ["fruit"]
    other = lead.post("/api/uploads", json={}).json()["upload"]
    send(lead, f"/api/uploads/{other}/files", "text\nx\n", "a.csv").raise_for_status()
    lead.post(f"/api/uploads/{other}/discard", json={}).raise_for_status()
    assert lead.post(f"/api/uploads/{other}/finish", json={}).status_code == 409
    assert not [path for path in (texts.directory / "uploads").iterdir() if other in path.name]


def test_values_of_a_preview_are_short_and_few(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"text": "x" * 500, "n": None}) for _ in range(50)))
    shown = preview(path)
    assert shown.rows == 50
    assert shown.columns == [("text", ["x" * 80] * 5), ("n", [""] * 5)]


def test_a_folder_of_the_server_is_listed_and_added_and_nothing_else_is(lead, texts):
    assert lead.get("/api/places").json()["folders"] == ["data"]
    listed = lead.get("/api/places", params={"under": "data"}).json()
    assert (listed["folders"], listed["files"]) == (["data/more"], [])  # no links, nothing hidden, no other kinds
    assert lead.get("/api/places", params={"under": "data/more"}).json()["files"] == ["data/more/second.csv"]
    for place in ("data/..", "data/../outside.csv", "data/up/outside.csv", "data/link.csv", "/etc", "data//etc/passwd",
                  "data/.hidden", "other", "", "data/\0", "data/" + "x" * 900):  # fmt: skip
        for call in ("preview", "add"):
            answer = lead.post(f"/api/places/{call}", json={"place": place})
            assert answer.status_code == 409, (call, place)
            assert answer.json()["detail"] == "This server has no such folder or file; choose one from the list."
    assert lead.post("/api/places/preview", json={"place": "data/notes.md"}).status_code == 409
    shown = lead.post("/api/places/preview", json={"place": "data/more/second.csv"}).json()
    assert [column["name"] for column in shown["columns"]] == ["body", "kind"]
    added = lead.post("/api/places/add", json={"place": "data/more/second.csv", "column": "body", "label": "kind"})
    assert added.json()["count"] == 3
    refused = lead.post("/api/places/add", json={"place": "data/more"})
    assert "task-1" in refused.json()["detail"]


def test_places_are_folders_each_under_a_name_of_its_own(tmp_path):
    for name in ("a/data", "b/data"):
        (tmp_path / name).mkdir(parents=True)
        picture(1).save(tmp_path / name / f"{name[0]}.png")
    places = Places([tmp_path / "a" / "data", tmp_path / "b" / "data"])
    assert places.list("", ())["folders"] == ["data", "data-2"]
    assert places.list("data-2", (".png",))["files"] == ["data-2/b.png"]
    assert places.resolve("data-2/b.png") == (tmp_path / "b" / "data" / "b.png").resolve()
    with pytest.raises(InputError, match="this is a file"):
        places.list("data/a.png", ())
    with pytest.raises(InputError, match="is not a folder"):
        Places([tmp_path / "a" / "data" / "a.png"])


def test_a_backup_is_a_project_and_an_export_has_predictions_for_new_data(lead, texts, tmp_path):
    label_all(lead)
    archive = zipfile.ZipFile(io.BytesIO(lead.get("/backup").content))
    archive.extractall(tmp_path / "copy")
    with Project.open(tmp_path / "copy") as copy:
        assert copy.store.labels() == texts.store.labels()
        assert copy.state().finished
    upload = lead.post("/api/uploads", json={}).json()["upload"]
    send(lead, f"/api/uploads/{upload}/files", "text\nmore apples\nmore bolts\n", "new.csv").raise_for_status()
    exported = zipfile.ZipFile(io.BytesIO(lead.get("/export", params={"upload": upload}).content))
    lines = exported.read("predictions.csv").decode().splitlines()
    assert len(lines) == 3
    assert {"labels.csv", "answers.csv", "unlabelled.csv", "model.safetensors"} <= set(exported.namelist())
    assert lead.get("/export", params={"upload": upload}).status_code == 409  # it has been removed
    assert lead.get("/export", params={"upload": "../etc"}).status_code == 422


def test_items_are_forgotten_while_it_is_served(lead, texts):
    label_all(lead)
    item = next(iter(texts.store.labels()))
    name = texts.item(item).name
    assert lead.post("/api/forget", json={"items": " \n"}).status_code == 409
    assert lead.post("/api/forget", json={"items": "nothing of the kind"}).status_code == 409
    answer = lead.post("/api/forget", json={"items": f"{name}\n"})
    assert (answer.status_code, answer.json()["items"]) == (200, 1)
    assert item not in texts.store.labels()
    assert np.isfinite(texts.estimates().tasks[0].now.value if texts.estimates().tasks else 0.0)
    assert TEXTS[item] not in lead.get(f"/item/{item}").text


def test_many_classes_are_pasted_one_a_line(lead, texts):
    names = "\n".join(["fruit", " sea  lion ", "", *(f"kind {i}" for i in range(60))])
    assert lead.post("/api/classes/many", json={"names": names}).json() == {"near": [], "added": 61}
    assert lead.post("/api/classes/many", json={"names": names}).json() == {"near": [], "added": 0}
    there = [c.name for c in texts.store.classes()]
    assert there[:4] == ["fruit", "tool", "sea lion", "kind 0"]
    answer = lead.post("/api/classes/many", json={"names": "Sea-Lion\nTiger\ntiger"}).json()
    assert answer == {"near": [{"name": name} for name in ("sea lion", "Sea-Lion", "Tiger", "tiger")]}
    assert [c.name for c in texts.store.classes()] == there
    assert lead.post("/api/classes/many", json={"names": "Tiger\ntiger", "sure": True}).json()["added"] == 2
    many = lead.post("/api/classes/many", json={"names": "\n".join(f"x{i}" for i in range(501))})
    assert "add at most 500 at once" in many.json()["detail"]
    assert len(texts.store.classes()) == 65


def test_advice_has_a_button_for_leads_that_does_it(lead, texts):
    label_all(lead)
    page = lead.get("/dashboard").text
    assert '<input type="hidden" name="holdout" value="50"><button class="small">Hold out 50 %</button>' in page
    assert "--" not in page.partition('<ul class="advice">')[2].partition("</ul>")[0]
    lead.post("/api/plan", json={"holdout": "50"}).raise_for_status()
    assert "Hold out 50 %" not in lead.get("/dashboard").text
    with browse(str(lead.base_url)) as bob:
        log_in(bob, texts, "Bob")
        assert "/api/plan" not in bob.get("/dashboard").text
