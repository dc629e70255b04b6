"""Several projects on one server: the index, each project below its own path, and who may do what."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

import accuacl as accuacl_package
from accuacl import InputError
from accuacl.labeling.client import Client
from accuacl.labeling.project import Project
from accuacl.labeling.web import holds_projects
from accuacl.labeling.web.pages import rooted
from commands import accuacl
from web_project import PATIENCE, browse, serving

PAGES = ("/", "/gallery", "/review", "/dashboard", "/classes", "/people", "/project", "/docs")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "projects").mkdir()
    return tmp_path / "projects"


def make_project(client, name, **more):
    body = {"name": name, "kind": "texts", "classes": "fruit\ntool\n\n", "per_round": 2, "rounds": 1} | more
    return client.post("/api/projects", json=body)


def add_texts(client, root, *texts):
    upload = client.post(f"{root}/api/uploads", json={}).json()["upload"]
    headers = {"Content-Type": "application/octet-stream"}
    content = "\n".join(["text", *texts])
    client.post(f"{root}/api/uploads/{upload}/files?name=a.csv", content=content, headers=headers).raise_for_status()
    client.post(f"{root}/api/uploads/{upload}/finish", json={}).raise_for_status()


def test_a_lead_makes_two_projects_and_people_label_each(folder):
    with serving(folder) as (address, index), browse(address) as ada:
        assert ada.get("/").status_code == 401
        ada.post("/api/login", json={"token": index.store.add_person("Ada", lead=True)}).raise_for_status()
        assert "There are no projects yet" in ada.get("/").text
        for name in ("Garden shed", "kitchen"):
            root = "/p/" + name.replace(" ", "%20")
            assert make_project(ada, name).json() == {"next": f"{root}/project"}
            add_texts(ada, root, *(f"{name} {i}" for i in range(4)))
        assert make_project(ada, "kitchen").status_code == 409
        page = ada.get("/").text
        assert re.findall(r'data-open="([^"]+)"', page) == ["Garden shed", "kitchen"]
        with Project.open(folder / "kitchen") as project:
            assert [(c.name, p.name, p.lead) for c in project.store.classes()[:1] for p in project.store.people()] == [
                ("fruit", "Ada", True)
            ]
        # An invitation to one project opens that one alone.
        link = ada.post("/p/kitchen/api/people", json={"name": "Bob"}).json()["link"]
        assert link.startswith(f"{address}/p/kitchen/login#token=")
        with Client(link) as bob:
            example = bob.wait(PATIENCE)
            assert example.text.startswith("kitchen")
            bob.label(example, "tool")
        with browse(address) as carol:
            token = ada.post("/p/kitchen/api/people", json={"name": "Carol"}).json()["link"].partition("token=")[2]
            carol.post("/p/kitchen/api/login", json={"token": token}).raise_for_status()
            assert carol.get("/p/kitchen/").status_code == 200
            for other in ("/", "/p/Garden%20shed/", "/p/Garden%20shed/api/state"):
                assert carol.get(other).status_code == 401, other
            for path in ("/api/projects", "/api/projects/kitchen/open"):
                assert carol.post(path, json={"name": "x", "kind": "texts"}).status_code == 401
        with Project.open(folder / "kitchen") as project:
            assert len(project.store.labels()) == 1


def test_every_address_of_a_page_is_below_the_path_of_its_project(folder):
    with serving(folder) as (address, index), browse(address) as ada:
        ada.post("/api/login", json={"token": index.store.add_person("Ada", lead=True)}).raise_for_status()
        make_project(ada, "kitchen").raise_for_status()
        add_texts(ada, "/p/kitchen", "a spoon", "a knife", "a fork")
        for path in PAGES:
            page = ada.get(f"/p/kitchen{path}", headers={"Accept": "text/html"})
            assert page.status_code == 200, path
            assert '<html lang="en" data-root="/p/kitchen">' in page.text
            addresses = re.findall(r'(?:href|src|data-next)="(/[^"]*)"', page.text)
            assert all(each.startswith(("/p/kitchen/", "/static/", "/?all")) for each in addresses), addresses
        assert ada.get("/p/kitchen/static/api.js").status_code == 200
        with browse(address) as stranger:
            answer = stranger.get("/p/kitchen/review?page=2", headers={"Accept": "text/html"})
            assert answer.headers["location"] == "/p/kitchen/login?next=/review%3Fpage%3D2"
            assert 'data-next="/p/kitchen/review?page=2"' in stranger.get(answer.headers["location"]).text


def test_scripts_name_no_page_without_the_path_of_its_project():
    pages = r"[`'\"]/(?:item|review|gallery|settle|dashboard|classes|people|project|export|backup|p)\b"
    for script in (Path(accuacl_package.__file__).parent / "labeling" / "web" / "static").glob("*.js"):
        assert not re.findall(pages, script.read_text()), script.name


def test_names_that_are_no_project(folder):
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{")
    (folder.parent / "outside").mkdir()
    (folder.parent / "outside" / "config.json").write_text("{}")
    with serving(folder) as (address, index), browse(address) as ada:
        ada.post("/api/login", json={"token": index.store.add_person("Ada", lead=True)}).raise_for_status()
        for name in ("../x", "a/b", "", ".hidden", "x" * 61, "a\nb", "-x"):
            assert make_project(ada, name).status_code in (409, 422), name
        for path in ("/p/nothing/", "/p/..%2Foutside/", "/p/broken/", "/p/%2e%2e/", "/p/server.sqlite/"):
            assert ada.get(path).status_code == 404, path
        assert ada.post("/api/projects/nothing/open", json={}).status_code == 404
        assert ada.post("/api/projects/broken/open", json={}).status_code == 409
        assert make_project(ada, "both", classes="a\na").status_code == 409
        page = ada.get("/").text
        assert "broken" in page
        assert str(folder) not in page
        assert not (folder / "both").exists()
        for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
            answer = ada.post("/p/nothing/api/next", json={}, headers=headers)
            assert answer.status_code in (403, 421)


def test_which_directories_are_folders_of_projects(folder, tmp_path):
    assert holds_projects(folder)
    assert not holds_projects(folder / "nowhere")
    (folder / "notes.txt").write_text("x")
    assert not holds_projects(folder)
    (folder / "p").mkdir()
    (folder / "p" / "config.json").write_text("{}")
    assert holds_projects(folder)
    assert not holds_projects(folder / "p")


def test_the_command_refuses_what_it_cannot_serve(folder, tmp_path):
    (folder / "notes.txt").write_text("x")
    (tmp_path / "empty").mkdir()
    for arguments, text in [
        ([str(folder)], "is not a project"),
        ([str(tmp_path), "--overlap", "0.5"], "is not a project"),
        ([str(tmp_path / "empty"), "--overlap", "0.5"], "--overlap is for one project"),
        ([str(folder), "--data", str(folder / "notes.txt")], "is not a folder"),
        ([str(folder), "--proxy-user-header", "Remote-User"], "needs --proxy-address"),
        ([str(folder), "--proxy-lead", "Ada"], "go with --proxy-user-header"),
        ([str(folder), "--proxy-user-header", "a b", "--proxy-address", "::1"], "not the name of a header"),
        ([str(folder), "--proxy-user-header", "A", "--proxy-address", "localhost"], "give an address such as"),
    ]:
        ended = accuacl("project", "serve", *arguments)
        assert ended.returncode == 2
        assert text in " ".join(ended.stderr.split()), arguments


def test_what_is_said_in_a_page_is_not_taken_for_an_address():
    page = '<html lang="en"><p>&#34;href=&#34;/x</p><a href="//evil.example"><a href="/static/a"><a href="#a">'
    assert rooted(page, "/p/a") == page.replace('"en"', '"en" data-root="/p/a"')


def test_the_index_stops_and_everything_is_in_its_file(folder):
    with serving(folder) as (address, index), browse(address) as ada:
        ada.post("/api/login", json={"token": index.store.add_person("Ada", lead=True)}).raise_for_status()
        make_project(ada, "kitchen").raise_for_status()
        trainer = index.apps["kitchen"].state.site.trainer
        assert trainer._thread.is_alive()
    assert not trainer._thread.is_alive()
    with pytest.raises(httpx.TransportError):
        httpx.get(address)
    with pytest.raises(InputError, match="is already a project"):
        Project.begin(folder / "kitchen", None, [])
