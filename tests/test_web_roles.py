"""Leads change the project in the browser; annotators label, flag and propose, and are refused everything else."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from PIL import Image
from playwright.sync_api import expect
from starlette.requests import Request
from starlette.testclient import TestClient

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project, Uploads, make, read_texts
from accuacl.labeling.web import people
from accuacl.labeling.web.app import make_app
from accuacl.labeling.web.guard import Hosts
from effort import wait_until
from web_browser import wait_on
from web_project import PATIENCE, browse, log_in, picture, routes, running

expect.set_options(timeout=1000 * PATIENCE)
UPLOAD = "0" * 32


@pytest.fixture
def lead(client):
    return client


@pytest.fixture
def annotator(server, project, lead):
    with browse(server) as client:
        log_in(client, project, "Bob")
        yield client


PAGES = ["/people", "/project", "/export", "/backup", "/api/places"]
POSTS = {
    "/api/classes": {"name": "lion"},
    "/api/classes/many": {"names": "lion"},
    "/api/classes/0/rename": {"name": "tom"},
    "/api/classes/0/merge": {"into": 1},
    "/api/classes/0/guide": {"text": "barks"},
    "/api/classes/0/example": {"item": 0},
    "/api/classes/undo": {"change": 1},
    "/api/proposals/1": {"name": "lion"},
    "/api/people": {"name": "Mallory", "lead": True},
    "/api/people/1/role": {"lead": True},
    "/api/people/0/invite": {},
    "/api/people/0/revoke": {},
    "/api/classes/0/examples": {"items": [0]},
    "/api/round/enough": {},
    "/api/tasks/0/end": {},
    "/api/uploads": {},
    f"/api/uploads/{UPLOAD}/finish": {},
    f"/api/uploads/{UPLOAD}/preview": {},
    f"/api/uploads/{UPLOAD}/discard": {},
    "/api/places/preview": {"place": "data/a.csv"},
    "/api/places/add": {"place": "data"},
    "/api/tasks/0/round": {},
    "/api/plan": {"overlap": 50},
    "/api/forget": {"items": "0"},
    "/api/settle": {"item": 0, "class_id": 0, "request": "12345678"},
    "/api/unflag": {"items": [0]},
    "/api/gold": {"items": [0], "gold": True},
}


def upload_file(client, upload, name, data, **more):
    headers = {"Content-Type": "application/octet-stream"} | more
    return client.post(f"/api/uploads/{upload}/files", params={"name": name}, content=data, headers=headers)


def send_table(client, what, data=b"name,class\n", name="a.csv"):
    headers = {"Content-Type": "application/octet-stream"}
    return client.post(f"/api/{what}/file", params={"name": name}, content=data, headers=headers)


def everything(project):
    people = [(one.name, one.lead, one.revoked) for one in project.store.people()]
    return people, project.store.classes(), project.store.guidelines(), project.store.latest_change()


def test_an_annotator_is_refused_what_leads_may_do(annotator, server, project):
    before = everything(project)
    for path in PAGES:
        answer = annotator.get(path, headers={"Accept": "text/html"})
        assert (answer.status_code, "Only leads may see this page" in answer.text) == (403, True), path
    for path, body in POSTS.items():
        answer = annotator.post(path, json=body)
        assert (answer.status_code, answer.json()["detail"]) == (403, "Only a lead of the project may do this."), path
    assert upload_file(annotator, UPLOAD, "a.png", b"x").status_code == 403
    assert {send_table(annotator, what).status_code for what in ("labels", "gold")} == {403}
    assert everything(project) == before
    assert "/people" not in annotator.get("/").text
    with browse(server) as stranger:
        assert {stranger.post(path, json=body).status_code for path, body in POSTS.items()} == {401}
        assert {stranger.get(path).status_code for path in PAGES} == {401}
        assert upload_file(stranger, UPLOAD, "a.png", b"x").status_code == 401


def test_every_route_that_changes_something_is_known_here(project):
    """A new route must be either on the list of what annotators may do, or refused to them above.

    Of `correct` and `relabel` they may change their own answers alone: see test_web_others.
    """
    may = {"login", "logout", "next", "label", "skip", "undo", "correct", "renew", "release", "relabel", "comment"}
    may |= {"flag", "proposals", "gallery"}
    posts = {route.path for route in routes(project) if "POST" in route.methods}
    refused = {re.sub(r"/(\d+|0{32})(?=/|$)", "/#", path) for path in POSTS} | {
        "/api/uploads/#/files",
        "/api/labels/file",
        "/api/gold/file",
    }
    for path in posts:
        plain = re.sub(r"\{\w+\}", "#", path)
        assert plain in refused or (plain.split("/")[2] in may and plain.count("#") == 0), path


def test_a_lead_invites_and_the_link_works_once(lead, server, project):
    answer = lead.post("/api/people", json={"name": "Cleo"}).json()
    assert answer["link"].startswith(f"{server}/login#token=")
    token = answer["link"].partition("token=")[2]
    with browse(server) as cleo, browse(server) as thief:
        assert cleo.post("/api/login", json={"token": token}).status_code == 200
        assert thief.post("/api/login", json={"token": token}).status_code == 401
        assert cleo.get("/people").status_code == 403
        id = project.store.people()[-1].id
        assert lead.post(f"/api/people/{id}/role", json={"lead": True}).status_code == 200
        assert cleo.get("/people").status_code == 200
        assert lead.post(f"/api/people/{id}/revoke", json={}).status_code == 200
        assert cleo.get("/").status_code == 401
    assert lead.post(f"/api/people/{id}/invite", json={}).status_code == 404  # has no access any more
    assert lead.post("/api/people", json={"name": "Bob"}).status_code == 200
    assert lead.post("/api/people", json={"name": "Bob"}).status_code == 409
    assert lead.post("/api/people/0/revoke", json={}).json()["detail"].startswith("You cannot end your own access")
    assert lead.post("/api/people/0/role", json={"lead": False}).status_code == 409  # the only one


PUBLIC = "http://label.example.org"


def test_a_link_that_works_only_here_says_so_and_has_no_code(lead, project):
    answer = lead.post("/api/people", json={"name": "Hedy"}).json()
    assert answer["code"] == []
    assert answer["here"].startswith("This link works only on this computer. ")
    assert "--host" in answer["here"]
    assert "--public-url" in answer["here"]
    with running(project, public_url=PUBLIC) as server, browse(server) as other:
        log_in(other, project, lead=True)
        answer = other.post("/api/people", json={"name": "Emmy"}).json()
    assert answer["link"].startswith(f"{PUBLIC}/login#token=")
    assert "here" not in answer
    size = len(answer["code"])
    assert (size - 17) % 4 == 0
    assert {len(row) for row in answer["code"]} == {size}
    assert [answer["code"][0][:8], answer["code"][0][-7:]] == ["11111110", "1111111"]  # the finder patterns


@pytest.mark.parametrize(
    ("bound", "host", "public_url", "here"),
    [
        ("127.0.0.1", "localhost:8765", "", people.LISTENS_HERE),
        ("127.0.0.1", "[::1]:8765", "", people.LISTENS_HERE),
        ("0.0.0.0", "127.0.0.1:8765", "", people.OPENED_HERE),
        ("0.0.0.0", "192.0.2.7:8765", "", None),
        ("127.0.0.1", "127.0.0.1:8765", "https://label.example.org", None),
        ("127.0.0.1", "127.0.0.1:8765", "http://localhost:80", people.LISTENS_HERE),
    ],
)
def test_where_a_link_works(project, bound, host, public_url, here):
    app = make_app(project, Hosts(bound, public_url=public_url))
    scope = {"type": "http", "scheme": "http", "path": "/", "headers": [(b"host", host.encode())], "app": app}
    answer = people._invitation(Request(scope), "x")
    assert (answer.get("here"), bool(answer["code"])) == (here, here is None)


def test_nearly_the_same_names_are_offered_first(lead, annotator, project):
    for name in ("Cat", "CAT", "c\u0430t", " cat-"):
        answer = lead.post("/api/classes", json={"name": name}).json()
        assert answer["near"] == [{"id": 0, "name": "cat"}]
        said = {"name": name, "request": f"propose-{name.encode().hex()}"}
        assert annotator.post("/api/proposals", json=said).json()["near"] == answer["near"]
    assert len(project.store.classes()) == 2
    assert project.store.proposals() == []
    assert lead.post("/api/classes", json={"name": "Cat", "sure": True}).json()["added"] == 2
    change = project.store.class_changes()[0].event
    assert lead.post("/api/classes/undo", json={"change": change}).status_code == 200
    assert len(project.store.classes()) == 2
    assert lead.post("/api/classes", json={"name": "cat"}).json()["added"] == 0  # there already
    assert lead.post("/api/classes/1/rename", json={"name": "Cat"}).json() == {"near": [{"id": 0, "name": "cat"}]}
    assert lead.post("/api/classes/1/rename", json={"name": "cat"}).status_code == 409
    annotator.post("/api/proposals", json={"name": "CAT", "request": "propose-cat", "sure": True})
    proposal = f"/api/proposals/{project.store.proposals()[0].id}"
    assert lead.post(proposal, json={"name": "C\u0430t"}).json() == {"near": [{"id": 0, "name": "cat"}]}
    assert [c.name for c in project.store.classes()] == ["cat", "dog"]
    assert lead.post(proposal, json={"name": "CAT", "sure": True}).json() == {"near": []}
    assert lead.post("/api/classes/1/rename", json={"name": "Dog"}).json() == {"near": []}  # it is the same one
    assert lead.post("/api/classes/1/rename", json={"name": "dog"}).json() == {"near": []}
    for _ in range(3):
        lead.post("/api/classes/undo", json={"change": project.store.class_changes()[0].event}).raise_for_status()
    assert [c.name for c in project.store.classes()] == ["cat", "dog"]


def test_proposals_guidelines_and_flags(lead, annotator, project):
    said = {"name": "lion", "request": "propose-lion-1"}
    assert annotator.post("/api/proposals", json=said).json()["near"] == []
    proposal = project.store.proposals()[0].id
    assert "“lion”, by Bob" in lead.get("/classes").text
    assert lead.post(f"/api/proposals/{proposal}", json={"name": "lion"}).status_code == 200
    assert [one.name for one in project.store.classes()][-1] == "lion"
    item = annotator.post("/api/next", json={}).json()["pick"]["item"]
    assert lead.post("/api/classes/0/guide", json={"text": "<b>whiskers</b>", "examples": f"{item}"}).status_code == 200
    assert lead.post("/api/classes/0/guide", json={"text": "", "examples": "../etc"}).status_code == 422
    assert "&lt;b&gt;whiskers" in annotator.get("/classes").text
    for client, shown in ((lead, [item]), (annotator, [])):  # he is still to label it himself
        (guideline,) = client.get("/api/guidelines").json()["classes"]
        assert (guideline["name"], [one["item"] for one in guideline["examples"]]) == ("cat", shown)
    other = lead.post("/api/next", json={}).json()["pick"]["item"]
    lead.post("/api/classes/0/example", json={"item": other}).raise_for_status()
    (guideline,) = lead.get("/api/guidelines").json()["classes"]
    assert [one["item"] for one in guideline["examples"]] == [item, other]
    assert annotator.post("/api/flag", json={"item": item, "reason": "?", "request": "flag-it-1"}).status_code == 200
    assert f'value="{item}"' in lead.get("/review?show=flagged").text
    assert lead.post("/api/unflag", json={"items": [item]}).json() == {"changed": 1}
    assert "Nothing was found" in lead.get("/review?show=flagged").text


def png(seed=0):
    picture(seed).save(out := io.BytesIO(), "PNG")
    return out.getvalue()


def test_files_become_a_task_whatever_they_are_called(lead, project):
    upload = lead.post("/api/uploads", json={}).json()["upload"]
    for name in (
        "../../evil.png",
        "/etc/passwd.png",
        "a.png",
        "a.png",
        "C:\\x\\b.JPG",
        ".png",
        "ünï cödé.png",
        "x" * 250 + ".png",
    ):
        assert upload_file(lead, upload, name, png(len(name))).status_code == 200, name
    assert "is not one of .jpg" in upload_file(lead, upload, "a.exe", png()).json()["detail"]
    assert upload_file(lead, upload, "page.png", b"<script>alert(1)</script>").status_code == 409
    Image.new("RGB", (4, 4)).save(ppm := io.BytesIO(), "PPM")
    assert "not an image of a known type" in upload_file(lead, upload, "x.png", ppm.getvalue()).json()["detail"]
    tasks = len(project.tasks.all())
    answer = lead.post(f"/api/uploads/{upload}/finish", json={}).json()
    assert (answer["count"], answer["bad"], answer["task"]) == (8, 0, tasks + 1)
    stored = sorted(path for path in (project.directory / "uploads").rglob("*") if path.is_file())
    assert len(stored) == 8
    assert all(path.parent == project.directory / "uploads" / upload for path in stored)
    assert all(re.fullmatch(r"[\w -]{1,90}\.png", path.name, re.ASCII) for path in stored)  # by what they are
    assert lead.post(f"/api/uploads/{upload}/finish", json={}).status_code == 409
    assert upload_file(lead, upload, "late.png", png()).status_code == 409


def test_uploads_are_bounded(lead, server, project, monkeypatch):
    upload = lead.post("/api/uploads", json={}).json()["upload"]
    monkeypatch.setattr("accuacl.labeling.web.incoming.LARGEST_UPLOAD", 1000)
    monkeypatch.setattr("accuacl.labeling.web.guard.LARGEST_UPLOAD", 1000)
    assert upload_file(lead, upload, "a.png", bytes(2000)).status_code == 413

    def chunks():  # without saying how long it is
        for _ in range(20):
            yield bytes(100)

    assert upload_file(lead, upload, "a.png", chunks()).status_code == 413
    monkeypatch.setattr("accuacl.labeling.project.uploads.MOST_FILES", 1)
    Image.new("L", (2, 2)).save(out := io.BytesIO(), "PNG")
    small = out.getvalue()
    assert upload_file(lead, upload, "a.png", small).status_code == 200
    assert "A task may have 1 files" in upload_file(lead, upload, "b.png", small).json()["detail"]
    wrong = {"Content-Type": "application/json"}
    assert upload_file(lead, upload, "a.png", small, **wrong).status_code == 415
    assert upload_file(lead, upload, "a.png", small, Origin="http://evil.example").status_code == 403
    assert lead.post("/api/comment", content=b"x" * 70_000, headers=wrong).status_code == 413  # elsewhere as before
    folder = project.directory / "uploads" / f".new-{upload}"
    assert folder.exists()
    Uploads(project).begin()  # as after a restart: what was left is removed
    assert not folder.exists()


def test_a_parquet_file_that_would_fill_the_memory_is_refused(tmp_path):
    """93 KB once became 7.9 GB: one long text, which every row has by its number in a dictionary."""
    bombs = {
        "text": pa.table({"text": pa.array(["x" * 20_000] * 100_000)}),
        "rows": pa.table({"text": pa.array([""]).take(pa.array([0] * 3_000_000))}),
        "numbers": pa.table({"text": ["a"] * 1000, "v": [[0.5] * 70_000] * 1000}),
    }
    settings = make({"kind": "texts", "model": "none", "per_round": 2, "rounds": 1})
    with Project.create(tmp_path / "p", settings, ["good", "bad"]) as project:
        uploads = Uploads(project)
        for name, table in bombs.items():
            pq.write_table(table, path := tmp_path / f"{name}.parquet")
            assert path.stat().st_size < 2**20
            uploads.take(upload := uploads.begin(), path.name, path.read_bytes())
            with pytest.raises(InputError, match=r"rows; a file that is sent|takes more than 512 MB once it is read"):
                uploads.finish(upload)
        uploads.take(upload := uploads.begin(), "x.parquet", b"PAR1 is no more than its beginning")
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            uploads.finish(upload)
        assert project.tasks.all() == []


def test_what_another_process_forgets_is_not_served_any_more(tmp_path):
    (tmp_path / "t.csv").write_text("text\n" + "".join(f"secret number {i}\n" for i in range(9)))
    texts = {"kind": "texts", "per_round": 4, "rounds": 1, "model": "none", "text_features": 64, "learner": "ridge"}
    with Project.create(tmp_path / "p", make(texts), ["good", "bad"]) as project:
        project.add(read_texts(tmp_path / "t.csv", "text"))
        project.advance()
        with running(project) as address, browse(address) as client:
            log_in(client, project, "Ada")
            assert "secret number 4" in client.get("/item/4").text
            forget = "import sys; from accuacl.cli import main; main()"
            command = [sys.executable, "-c", forget, "project", "forget", str(tmp_path / "p"), "4"]
            subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
            for path in ("/item/4", "/api/item/4", "/dashboard", "/review"):
                assert "secret number 4" not in client.get(path).text, path
            assert "secret number 5" in client.get("/item/5").text


def test_a_round_is_closed_early_and_everything_is_downloaded(lead, annotator, project):
    assert lead.post("/api/round/enough", json={}).status_code == 409  # nothing is labelled yet
    pick = annotator.post("/api/next", json={}).json()["pick"]
    said = {"item": pick["item"], "class_id": 1, "request": "before-it-closes"}
    annotator.post("/api/label", json=said)
    before = project.store.status()
    assert lead.post("/api/round/enough", json={}).status_code == 200
    wait_until(lambda: project.store.status().round > before.round)
    answer = lead.get("/export")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert {"labels.csv", "labels.parquet", "skipped.csv", "model.safetensors", "MODEL_CARD.md"} <= set(
            archive.namelist()
        )
        assert f"{pick['item']},1,1,images," in archive.read("labels.csv").decode()
        for name in archive.namelist():  # paths of the server stay there
            assert str(project.directory.parent).encode() not in archive.read(name), name


def test_a_lead_does_it_in_the_browser(chromium, watch, server, project):
    page = watch.page(chromium)
    project.store.add_person("Grace", lead=True)
    page.goto(f"{server}/login#token={project.store.invite('Grace')}")
    page.wait_for_selector("#desk[data-seen]")
    page.get_by_role("link", name="People").click()
    page.wait_for_load_state()
    page.locator("#invite-name").fill("Mary")
    page.keyboard.press("Enter")
    expect(page.locator("#invitation-here")).to_contain_text("This link works only on this computer.")
    expect(page.locator("#invitation-send")).to_be_hidden()
    assert page.locator("#invitation-code svg").count() == 0
    invited = page.locator("#invitation-link").input_value()
    page.get_by_role("link", name="Project").click()
    page.wait_for_load_state()
    files = [{"name": f"{i}.png", "mimeType": "image/png", "buffer": png(50 + i)} for i in range(3)]
    page.locator("#files").set_input_files([*files, {"name": "x.png", "mimeType": "image/png", "buffer": b"no"}])
    page.locator("#add-later").click()
    expect(page.locator("#sent-said")).to_have_text(re.compile(r"has been added: 3 examples\. One file was refused\."))
    expect(page.locator("#sent-trouble")).to_contain_text("x.png")
    page.get_by_role("link", name="Classes").click()
    page.wait_for_load_state()
    page.locator("#add-name").fill("DOG")
    page.keyboard.press("Enter")
    expect(page.locator("#add-trouble")).to_contain_text("There is already “dog”.")
    page.locator("#add-name").fill("tiger")
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="tiger")).to_be_visible()
    page.wait_for_load_state()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("rowheader", name="tiger")).to_be_hidden()
    page.wait_for_load_state()
    page.get_by_role("button", name="Change dog").click()
    page.locator("#guide-text").fill("barks")
    page.get_by_role("button", name="Save the guideline").click()
    expect(page.get_by_text("barks").first).to_be_visible()
    # Mary is an annotator: she proposes what a lead adds.
    mary = watch.page(chromium)
    mary.goto(invited)
    mary.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    assert mary.get_by_role("link", name="People").count() == 0
    mary.keyboard.press("c")
    expect(mary.locator("#guidelines-list")).to_contain_text("barks")
    mary.locator("#guidelines-close").click()
    mary.keyboard.press("a")
    mary.locator("#new-name").fill("Dog")
    mary.keyboard.press("Enter")
    expect(mary.get_by_role("button", name="Use “dog”")).to_be_visible()
    mary.locator("#new-name").fill("zebra")
    mary.keyboard.press("Enter")
    expect(mary.locator("#said")).to_have_text("zebra has been proposed; a lead decides.")
    mary.keyboard.press("f")
    mary.locator("#flag-reason").fill("blurred")
    mary.keyboard.press("Enter")
    expect(mary.locator("#said")).to_have_text("Flagged.")
    assert "zebra" in [one.name for one in project.store.proposals()]
    assert [row.comments for row in project.store.everything() if row.flagged] == [("blurred",)]
    watch.complaints = [text for text in watch.complaints if "409" not in text]  # the file that is not an image


def test_a_code_is_shown_to_be_scanned(chromium, watch, project):
    page = watch.page(chromium)
    with running(project, public_url=PUBLIC) as server:
        page.goto(f"{server}/login?next=/people#token={project.store.add_person('Lise', lead=True)}")
        page.locator("#invite-name").fill("Maria")
        page.keyboard.press("Enter")
        expect(page.locator("#invitation-code svg path")).to_have_count(1)
        expect(page.locator("#invitation-send")).to_be_visible()
        expect(page.locator("#invitation-here")).to_be_hidden()
        page.close()


def test_a_form_that_is_sent_before_its_script_is_there_is_neither_lost_nor_put_into_the_address(
    chromium, watch, server, project
):
    """On a slow machine: the scripts of the page come late."""
    page, held = watch.page(chromium), []
    page.goto(f"{server}/login#token={project.store.add_person('Lise', lead=True)}")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    page.route("**/static/people.js", lambda route: held.append(route))
    page.goto(f"{server}/people", wait_until="commit")
    page.locator("#invite-name").fill("Maria")
    page.locator("#invite-name").evaluate("(field) => field.form.requestSubmit()")
    wait_on(page, lambda: held)
    assert page.url == f"{server}/people"
    assert [person.name for person in project.store.people()] == ["Lise"]
    held[0].continue_()
    expect(page.locator("#invitation")).to_be_visible()
    assert [person.name for person in project.store.people()] == ["Lise", "Maria"]
    assert page.url == f"{server}/people"


DROP = """([files]) => {
  const transfer = new DataTransfer();
  for (const [name, bytes] of files) transfer.items.add(new File([new Uint8Array(bytes)], name, { type: "image/png" }));
  for (const kind of ["dragenter", "drop"]) {
    const event = new DragEvent(kind, { dataTransfer: transfer, bubbles: true, cancelable: true });
    document.querySelector("h1").dispatchEvent(event);
  }
}"""


def test_a_lead_starts_the_next_task_with_files_that_were_dropped(chromium, watch, server, project):
    page = watch.page(chromium)
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{server}/login#token={project.store.add_person('Ada')}")
    page.wait_for_selector("#desk[data-seen]:not([data-seen=''])")
    page.keyboard.press("1")
    expect(page.locator("#said")).to_have_text("Saved: cat.")
    page.goto(f"{server}/project")
    page.evaluate(DROP, [[[f"{i}.png", list(png(70 + i))] for i in range(3)]])
    expect(page.locator("#staged-said")).to_have_text("3 files, less than 0.1 MB")
    page.locator("#add-not").click()
    expect(page.locator("#staged")).to_be_hidden()
    page.evaluate(DROP, [[[f"{i}.png", list(png(70 + i))] for i in range(3)]])
    page.evaluate(DROP, [[["more.png", list(png(80))]]])  # dropped later, and added to the others
    expect(page.locator("#staged-said")).to_have_text("4 files, less than 0.1 MB")
    expect(page.locator("#add-later")).to_have_text("Add as task 2")
    expect(page.locator("#staged-when")).to_have_text("Task 2 begins when task 1 is done.")
    assert len(project.tasks.all()) == 1  # nothing is sent before a button says what for
    page.get_by_role("button", name="End task 1 and start task 2").click()
    expect(page.locator("#sent-said")).to_have_text("Task 2 has been added: 4 examples.")
    expect(page.locator("#present-title")).to_have_text("Task 2")  # without a reload
    expect(page.locator("#tasks tbody tr").first).to_contain_text("done")
    assert (project.store.used(0), project.store.status().task) == (1, 1)
    # Of the last task nothing is left to start: it ends, and the button says that the next one starts at once.
    page.locator("#files").set_input_files([{"name": "9.png", "mimeType": "image/png", "buffer": png(90)}])
    expect(page.locator("#add-now")).to_have_text("End task 2 and start task 3")
    page.get_by_role("button", name="End task 2 now").click()
    expect(page.locator("#present")).to_contain_text("add data for the next task")
    expect(page.locator("#add-now")).to_be_hidden()  # what the buttons say has followed
    page.get_by_role("button", name="Start task 3").click()
    expect(page.locator("#present-title")).to_have_text("Task 3")
    page.goto("about:blank")


def test_files_that_were_chosen_before_the_script_was_there_wait_too(chromium, watch, server, project):
    page = watch.page(chromium)
    project.store.add_person("Grace", lead=True)
    page.goto(f"{server}/login#token={project.store.invite('Grace')}")
    page.wait_for_selector("#desk[data-seen]")
    held = []
    page.route("**/static/project.js", lambda route: held.append(route))
    with page.expect_request("**/static/project.js"):
        page.goto(f"{server}/project", wait_until="commit")
    page.locator("#files").set_input_files([{"name": "9.png", "mimeType": "image/png", "buffer": png(90)}])
    held[0].continue_()
    expect(page.locator("#staged-said")).to_have_text("9.png, less than 0.1 MB")


def test_a_folder_that_was_dropped_is_read_with_the_folders_in_it(chromium, watch, server, project, tmp_path):
    """As the system drops it: DataTransfer made by a script cannot hold a folder."""
    (tmp_path / "photos" / "more").mkdir(parents=True)
    for i, name in enumerate(("a.png", "b.png", "more/c.png", "more/.hidden.png")):
        picture(60 + i).save(tmp_path / "photos" / name)
    page = watch.page(chromium)
    project.store.add_person("Katherine", lead=True)
    page.goto(f"{server}/login#token={project.store.invite('Katherine')}")
    page.wait_for_url(f"{server}/")
    watch.open(page, f"{server}/project")
    box = page.locator("#drop").bounding_box()
    system = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(tmp_path / "photos")], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        where = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        system.send("Input.dispatchDragEvent", {"type": kind, "data": data} | where)
    expect(page.locator("#staged-said")).to_have_text(re.compile("^3 files, "))
    page.locator("#add-later").click()
    expect(page.locator("#sent-said")).to_have_text(re.compile(r"^Task \d+ has been added: 3 examples\.$"))
    assert project.tasks.all()[-1].count == 3
    page.goto("about:blank")


def test_a_task_that_waits_is_started_by_ending_the_present_one(lead):
    upload = lead.post("/api/uploads", json={}).json()["upload"]
    upload_file(lead, upload, "a.png", png()).raise_for_status()
    lead.post(f"/api/uploads/{upload}/finish", json={}).raise_for_status()
    tasks = lead.get("/api/tasks").json()
    assert (tasks["present"], [task["stage"] for task in tasks["tasks"]]) == (0, ["round 1 of 2", "waiting"])
    assert lead.post("/api/tasks/1/end", json={}).status_code == 409
    assert lead.post("/api/tasks/0/end", json={}).status_code == 200
    wait_until(lambda: lead.get("/api/tasks").json()["present"] == 1)


@pytest.mark.parametrize("kind", ["tables", "texts", "vectors"])
def test_a_file_of_every_kind_becomes_tasks(tmp_path, kind):
    settings = make({"kind": kind, "model": "none", "per_round": 2, "rounds": 1})
    with Project.create(tmp_path / "p", settings, ["good", "bad"]) as project:
        uploads = Uploads(project)
        for number in range(2):
            rows = {"text": [f"line {i} of {number}" for i in range(4)], "size": [0.5, 1.5, 2.0, 9.0]}
            rows |= {"task": ["a", "b", "b", "a"]} if number else {}
            path = tmp_path / f"{number}.{'csv' if kind == 'texts' else 'parquet'}"
            write_table(path, rows)
            upload = uploads.begin()
            uploads.take(upload, path.name, path.read_bytes())
            with pytest.raises(InputError, match=f"a task of {kind} is one file"):
                uploads.take(upload, path.name, path.read_bytes())
            assert [task.count for task in uploads.finish(upload)] == ([2, 2] if number else [4])
        with TestClient(make_app(project), base_url="http://127.0.0.1") as client:
            client.post("/api/login", json={"token": project.store.add_person("Ada")}).raise_for_status()
            assert ".parquet" in client.get("/project").text


def write_table(path, columns):
    table = pa.table(columns)
    pa_csv.write_csv(table, path) if path.suffix == ".csv" else pq.write_table(table, path)
