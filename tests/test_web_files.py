"""The page of a project of files: it plays what a browser can play, and nothing that is sent can run."""

from __future__ import annotations

import wave

import pytest

from accuacl.labeling.project import Project, make, read_files, read_texts
from effort import wait_until
from web_project import browse, log_in, running

LENGTH = "def length(path):\n    return [float(path.stat().st_size), float(len(path.name))]\n"
NAMES = ("a.wav", "b.pdf", "c.html", "d.svg", "e.bin")


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    with wave.open(str(folder / "a.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(4000))
    for name in NAMES[1:]:
        (folder / name).write_text(f"<script>alert('{name}')</script>")
    (tmp_path / "length.py").write_text(LENGTH)
    return folder


@pytest.fixture
def project(files, tmp_path):
    settings = make({"kind": "files", "model": f"{tmp_path / 'length.py'}:length", "per_round": 5, "rounds": 1})
    with Project.create(tmp_path / "p", settings, ["x", "y"]) as project:
        project.add(read_files(files))
        yield project


def test_files_are_sent_by_their_numbers(project, files):
    with running(project) as address, browse(address) as stranger, browse(address) as client:
        log_in(client, project)
        assert stranger.get("/item/0/file").status_code in (401, 303, 307)
        kinds = {}
        for item, name in enumerate(NAMES):
            answer = client.get(f"/item/{item}/file")
            assert answer.status_code == 200
            assert answer.content == (files / name).read_bytes()
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            disposition = answer.headers["Content-Disposition"]
            kinds[name] = (answer.headers["Content-Type"], disposition)
        assert kinds["a.wav"] == ("audio/wav", "inline")
        assert kinds["b.pdf"] == ("application/pdf", "inline")
        for name in ("c.html", "d.svg", "e.bin"):  # which may hold scripts
            assert kinds[name] == ("application/octet-stream", "attachment")
        assert client.get("/item/99/file").status_code == 404
        assert client.get("/item/0/image").status_code == 404
        (files / "a.wav").unlink()
        assert client.get("/item/0/file").status_code == 404
        assert "media-src 'self'" in client.get("/").headers["Content-Security-Policy"]


def test_the_example_says_how_it_can_be_shown(project):
    with running(project) as address, browse(address) as client:
        log_in(client, project)
        seen = {}
        while (pick := client.post("/api/next", json={}).json()["pick"]) is not None:
            seen[pick["fields"][0][1]] = (pick["kind"], pick["file"], pick["media"])
            body = {"item": pick["item"], "class_id": project.store.classes()[0].id, "request": f"{pick['item']:032x}"}
            assert client.post("/api/label", json=body).status_code == 200
        assert seen["a.wav"] == ("file", "/item/0/file", "audio")
        assert seen["c.html"][2] == "application"
        assert client.get("/item/1").text.count('href="/item/1/file"') == 1


@pytest.mark.parametrize("name", ["a.wav", "b.pdf"])
def test_the_page_plays_sounds_and_links_to_other_files(files, project, chromium, name):
    for other in files.iterdir():
        if other.name != name:
            other.unlink()  # what is gone is not asked for
    with running(project) as address:
        page = chromium.new_page()
        page.goto(f"{address}/login#token={project.store.add_person('Ada')}")
        element = page.locator("#view .file")
        element.wait_for()
        if name == "a.wav":
            wait_until(lambda: element.evaluate("audio => audio.readyState >= 2"))
            assert element.evaluate("audio => audio.duration") == pytest.approx(0.25)
            page.keyboard.press("Space")
            wait_until(lambda: element.evaluate("audio => audio.played.length > 0"))
        else:
            assert (element.inner_text(), element.get_attribute("href")) == ("Open the file", "/item/1/file")


def test_texts_run_in_the_direction_of_their_script(tmp_path, chromium):
    (tmp_path / "t.csv").write_text("id,text\n1,שלום עולם\n2,مرحبا\n", "utf-8")
    settings = make({"kind": "texts", "model": "none", "per_round": 2, "rounds": 1})
    Project.begin(tmp_path / "p", settings, ["x", "y"], read_texts(tmp_path / "t.csv", "text"))
    with Project.open(tmp_path / "p") as project, running(project) as address:
        page = chromium.new_page()
        page.goto(f"{address}/login#token={project.store.add_person('Ada')}")
        text = page.locator("#view .text")
        text.wait_for()
        assert text.evaluate("p => getComputedStyle(p).direction") == "rtl"
