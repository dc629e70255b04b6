"""What programs can call: the list behind the log-in, and the examples of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from accuacl.labeling import client
from accuacl.labeling.project import Project
from web_project import TestTrainer, browse, log_in, routes, running

PAGE = Path(__file__).parent.parent / "docs" / "projects.md"


def blocks() -> list[str]:
    text = PAGE.read_text().partition("## In Python, and over HTTP")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_list_of_calls_is_behind_the_log_in_and_loads_nothing_from_elsewhere(project):
    with running(project, trainer=TestTrainer(project)) as address, browse(address) as client:
        for path in ("/docs", "/openapi.json"):
            assert client.get(path).status_code == 401
        log_in(client, project, "Ada")
        schema = client.get("/openapi.json").json()
        page = client.get("/docs").text
    assert {"/api/login", "/api/next", "/api/label", "/api/skip", "/api/undo"} <= set(schema["paths"])
    assert not [path for path in schema["paths"] if not path.startswith("/api/")]
    assert set(schema["components"]["schemas"]["LabelRequest"]["required"]) == {"item", "class_id", "request"}
    for path in schema["paths"]:
        assert path in page
    assert not re.findall(r"(?:src|href)=\"(?!/)", page.replace('href="#main"', ""))


def test_the_documented_python_labels_a_round(project):
    first = blocks()[0].replace('Path("flowers")', "place")
    state = project.advance()
    assert state.waiting == "labels"
    project.close()
    exec(first, {"place": project.directory, "my_guess": lambda item: "cat" if item.path else "dog"})
    with Project.open(project.directory) as again:
        assert len(again.store.labels()) >= 4
        assert again.store.people()[-1].name == "robot"


def test_the_documented_client_labels_until_all_is_learned(project, monkeypatch):
    monkeypatch.setattr(client, "PAUSE", 0.05)
    with running(project, trainer=TestTrainer(project)) as address:  # the first round is still to be chosen
        given = {"url": address, "token": project.store.add_person("robot"), "my_guess": lambda example: "cat"}
        exec(blocks()[1], given)
    settings = project.settings
    assert len(project.store.labels()) == settings.per_round * settings.rounds
    assert project.state().finished
    assert not project.store.logged_in()


def test_the_page_of_the_site_lists_every_call(project):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PAGE.parent / "hooks")
        import rest_page
    listed = set(re.findall(r"(?m)^## (\w+) (\S+)$", rest_page.page()))
    there = {(method, route.path) for route in routes(project) for method in route.methods}
    assert listed == {(method, path) for method, path in there if path.startswith("/api/")}
    for path in re.findall(r"`(?:POST |GET )?(/api/[a-z]+)`", rest_page.TOP):
        assert path in {path for _, path in there}
