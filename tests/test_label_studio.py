"""Label Studio: what is pushed there and pulled back, with a server that is made up."""

from __future__ import annotations

import base64
import json
import sys
from types import SimpleNamespace as Thing
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from accuacl.base.errors import InputError
from accuacl.base.progress import ignore
from accuacl.cli import app
from accuacl.cli.screen import console
from accuacl.labeling.label_studio import pull, push, sync as label_studio, sync as label_studio_tasks
from accuacl.labeling.label_studio.sync import connect
from accuacl.labeling.project import NewItems, Project, make, read_images
from accuacl.labeling.store import StoreUnavailable
from scripted import answer, new_project, truth

URL = "http://127.0.0.1:8091"
CLASSES = [f"class {i}" for i in range(4)]
TOKEN = "0123456789abcdef" * 2


class Refusal(Exception):
    def __init__(self, status):
        super().__init__(f"{status} {TOKEN}")
        self.status_code, self.body = status, {"detail": "no"}


class Server:
    """Speaks as the SDK's client does, and keeps what it is given."""

    def __init__(self):
        self.made, self.held, self.calls, self.broken = {}, {}, [], None
        self.projects = Thing(
            create=self._create, get=self._get, list=lambda: list(self.made.values()), update=self._update,
            import_tasks=self._import,
        )  # fmt: skip
        self.tasks = Thing(list=self._list)
        self.users = Thing(list=lambda: [Thing(id=1, email="ada@example.org"), Thing(id=2, email="bob@example.org")])

    def _create(self, **given):
        self._call("create")
        id = len(self.made) + 5
        self.made[id] = Thing(id=id, **given)
        self.held[id] = []
        return self.made[id]

    def _get(self, id):
        self._call("get")
        if id not in self.made:
            raise Refusal(404)
        return self.made[id]

    def _update(self, id, label_config):
        self._call("update")
        self.made[id].label_config = label_config

    def _import(self, id, request, return_task_ids):
        self._call("import")
        for task in json.loads(json.dumps(request)):
            number = 100 + len(self.held[id])
            self.held[id].append(Thing(id=number, **{"annotations": [], "predictions": []} | task))

    def _list(self, project, fields, include):
        assert (fields, include) == ("all", label_studio.FIELDS)
        return iter(self.held[project])

    def _call(self, name):
        self.calls.append(name)
        if self.broken:
            raise self.broken

    # What people do there

    @property
    def all(self):
        return self.held[max(self.held)]

    def say(self, task, choice, by=1):
        said = {"type": "choices", "from_name": "class", "to_name": "item", "value": {"choices": [choice]}}
        id = sum(len(one.annotations) for tasks in self.held.values() for one in tasks) + 1
        task.annotations.append({"id": id, "completed_by": by, "was_cancelled": False, "result": [said]})
        return task.annotations[-1]

    def skip(self, task, by=1):
        one = self.say(task, "x", by)
        one.update(was_cancelled=True, result=[])


def change(one, choice):
    one["result"][0]["value"]["choices"] = [choice]


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def project(tmp_path):
    with new_project(tmp_path / "p") as project:
        for name in CLASSES:
            project.store.add_class(name)
        project.advance()
        yield project


def both(server):
    return {"url": URL, "token": TOKEN, "client": server}


def label_all(project, server, tasks=None):
    for task in tasks or server.all:
        if not task.annotations:
            server.say(task, truth(project, task.meta["item"]))


def test_pushing_again_adds_only_what_is_missing(project, server):
    assert push(project, **both(server)) == label_studio.Pushed(5, 8, 0)
    assert push(project, **both(server)) == label_studio.Pushed(5, 0, 8)
    assert server.calls.count("create") == server.calls.count("import") == 1
    assert [task.meta["item"] for task in server.all] == [pick.item for pick in project.store.picks(0, 0)]
    lost = server.all.pop(3)
    assert push(project, **both(server)) == label_studio.Pushed(5, 1, 7)
    assert server.all[-1].meta == lost.meta
    key = json.loads((project.directory / "label_studio.json").read_text())["key"]
    assert lost.meta == {"accuacl": key, "item": lost.meta["item"], "task": 1, "round": 1}
    made = server.made[5]
    assert made.title == "accuacl p"
    assert made.show_collab_predictions is False
    assert [one.get("value") for one in ElementTree.fromstring(made.label_config).find("Choices")] == CLASSES
    assert lost.predictions == [{"result": [], "score": 1 - 3 / 8, "model_version": "task 1 round 1"}]
    assert lost.data == {"vectors": {"id": project.item(lost.meta["item"]).name}}


def test_a_push_that_was_stopped_finds_its_project_again(project, server, monkeypatch):
    save = label_studio.save

    def stopped(project, link):
        if link.project is not None:
            raise KeyboardInterrupt
        save(project, link)

    monkeypatch.setattr(label_studio, "save", stopped)
    with pytest.raises(KeyboardInterrupt):
        push(project, **both(server))
    monkeypatch.setattr(label_studio, "save", save)
    assert push(project, **both(server)).added == 8
    assert server.calls.count("create") == 1


def test_what_was_answered_on_the_page_is_not_pushed(project, server):
    done = answer(project, 3)
    assert push(project, **both(server)).added == 5
    assert not set(done) & {task.meta["item"] for task in server.all}


def test_a_round_goes_there_and_back(project, server):
    push(project, **both(server))
    label_all(project, server, server.all[:5])
    pulled = pull(project, **both(server))  # not all yet
    assert (pulled.labelled, pulled.skipped, pulled.corrected, pulled.refused) == (5, 0, 0, ())
    assert project.state().text == "task 1, round 1 of 2: 3 of 8 to be labelled."
    server.skip(server.all[5], by=2)
    label_all(project, server)
    pulled = pull(project, **both(server))
    assert (pulled.labelled, pulled.skipped) == (2, 1)
    assert project.state().ready
    assert project.state().used == 7  # the skipped one cost nothing
    before = project.store.answers()
    assert pull(project, **both(server)) == label_studio.Pulled()
    assert project.store.answers() == before
    names = {c.id: c.name for c in project.store.classes()}
    people = {one.id: one.name for one in project.store.people()}
    for one in before:
        assert one.class_id is None or names[one.class_id] == truth(project, one.item)
        assert people[one.person] == ("bob@example.org" if one.class_id is None else "ada@example.org")
    assert project.advance().waiting == "labels"
    assert push(project, **both(server)).added == 9  # one more, for the one that was skipped
    task = server.all[8]
    assert task.meta["round"] == 2
    guess = project.store.picks(0, 1)[0].guess
    (prediction,) = task.predictions
    assert prediction["score"] == 1
    assert prediction["model_version"] == "task 1 round 2"
    assert prediction["result"][0]["value"] == {"choices": [names[guess]]}
    assert server.all[-1].predictions[0]["score"] == pytest.approx(1 / 9)
    label_all(project, server)
    assert pull(project, **both(server)).labelled == 9
    assert project.advance().finished


def test_an_annotation_that_is_changed_corrects_the_label(project, server):
    push(project, **both(server))
    label_all(project, server)
    pull(project, **both(server))
    project.advance()
    task, item = server.all[0], server.all[0].meta["item"]
    for choice in ("class 3", "class 2", "class 3", "class 0"):
        change(task.annotations[0], choice)
        assert pull(project, **both(server)).corrected == 1
        assert pull(project, **both(server)).corrected == 0
        assert project.store.labels([item]) == {item: CLASSES.index(choice)}
    assert [event.kind for event in project.store.history(item)] == ["label", *["correct"] * 4]


def test_what_was_corrected_on_the_page_stays(project, server):
    push(project, **both(server))
    label_all(project, server)
    pull(project, **both(server))
    item = server.all[0].meta["item"]
    project.store.correct(project.store.people()[0], item, 3, "page")
    assert pull(project, **both(server)) == label_studio.Pulled()
    assert project.store.labels([item]) == {item: 3}


def test_the_first_label_counts_and_others_are_left_alone(project, server):
    push(project, **both(server))
    first, second, third, *_ = server.all
    server.skip(first, by=2)
    server.say(first, "class 1")  # a label before a skip, whichever came first
    server.say(second, "class 0")
    server.say(second, "class 1", by=2)
    answer(project, 1)  # on the page: the first, by rank
    server.held[5].append(Thing(id=999, meta=None, annotations=[{"id": 900}]))  # not ours
    server.held[5].append(Thing(id=998, meta={"accuacl": "other", "item": 3}, annotations=[{"id": 901}]))
    assert pull(project, **both(server)).labelled == 1
    assert project.store.labels([second.meta["item"]]) == {second.meta["item"]: 0}
    assert not project.store.answers([third.meta["item"]])


def test_late_second_thoughts_about_skips_are_told(project, server):
    push(project, **both(server))
    server.skip(server.all[0])
    one = server.say(server.all[1], "class 0")
    pull(project, **both(server))
    server.all[0].annotations.clear()
    server.say(server.all[0], "class 1")["id"] = 1
    one["was_cancelled"] = True
    pulled = pull(project, **both(server))
    assert pulled.refused == ()
    assert pulled.left == (
        "task 100 in Label Studio was skipped before it was labelled; it stays skipped.",
        "task 101 in Label Studio was labelled before it was skipped; it keeps its label.",
    )


def test_an_unknown_choice_is_refused_or_becomes_a_class(project, server):
    push(project, **both(server))
    server.say(server.all[0], "class 1")
    server.say(server.all[1], "ferret")
    server.say(server.all[2], "ferret")
    server.say(server.all[3], "class 1")["result"][0]["value"]["choices"].append("class 2")
    pulled = pull(project, **both(server))
    assert pulled.labelled == 1
    assert pulled.refused == (
        "task 101 in Label Studio: the choice 'ferret' is not a class; pull with --new-classes to add it.",
        "task 102 in Label Studio: the choice 'ferret' is not a class; pull with --new-classes to add it.",
        "task 103 in Label Studio: 2 choices were made; make one, or skip the task.",
    )
    pulled = pull(project, **both(server), new_classes=True)
    assert (pulled.labelled, len(pulled.refused)) == (2, 1)
    assert [one.name for one in project.store.classes()] == [*CLASSES, "ferret"]
    assert json.loads((project.directory / "label_studio.json").read_text())["choices"]["ferret"] == 4


def test_classes_that_are_new_renamed_or_merged(project, server):
    push(project, **both(server))
    project.store.rename_class(0, "zero")
    project.store.merge_class(1, 2)
    project.store.add_class("class 0")  # the name is free again, but taken there
    project.store.add_class("<b>&")
    config = ElementTree.fromstring(server.made[5].label_config)
    ElementTree.SubElement(config.find("Choices"), "Choice", value="theirs")
    server.made[5].label_config = ElementTree.tostring(config, encoding="unicode")
    push(project, **both(server))
    choices = [one.get("value") for one in ElementTree.fromstring(server.made[5].label_config).find("Choices")]
    assert choices == [*CLASSES, "theirs", "class 0 (4)", "<b>&"]
    for task, choice in zip(server.all, ["class 0", "class 1", "class 0 (4)", "<b>&"], strict=False):
        server.say(task, choice)
    pull(project, **both(server))
    assert [project.store.labels().get(task.meta["item"]) for task in server.all[:4]] == [0, 2, 4, 5]


def test_who_may_not_label_any_more_is_refused(project, server):
    push(project, **both(server))
    server.say(server.all[0], "class 0")
    server.say(server.all[1], "class 0", by=77)
    pull(project, **both(server))
    assert [one.name for one in project.store.people()] == ["Ada", "ada@example.org", "label-studio"]
    project.store.revoke("ada@example.org")
    server.say(server.all[2], "class 0")
    (refused,) = pull(project, **both(server)).refused
    assert refused.startswith("task 102 in Label Studio: 'ada@example.org' has lost access to this project")


def test_waiting_asks_until_the_round_is_complete(project, server, monkeypatch):
    push(project, **both(server))
    told, gone = [], type("ConnectError", (Exception,), {"__module__": "httpx"})

    def meanwhile(seconds):
        assert seconds == 3
        server.broken = gone() if len(told) == 1 and not server.broken else None
        label_all(project, server, server.all[: 4 * len(told)])

    monkeypatch.setattr(label_studio.time, "sleep", meanwhile)
    with pytest.warns(UserWarning, match="Trying again"):
        total = pull(project, **both(server), wait=True, every=3, tell=told.append)
    assert [one.labelled for one in told] == [0, 4, 4]
    assert total.labelled == 8
    assert project.state().ready


def test_images_and_texts_are_shown(tmp_path, server):
    (tmp_path / "images").mkdir()
    for i in range(3):
        Image.fromarray(np.full((8, 8, 3), 60 * i, np.uint8)).save(tmp_path / "images" / f"{i}.png")
    settings = make({"kind": "images", "model": "conv4", "per_round": 3, "rounds": 1})
    with pytest.warns(UserWarning, match="scratch"):
        project = Project.create(tmp_path / "p", settings, ["a", "b"])
    with project:
        project.add(read_images(tmp_path / "images", ignore))
        project.advance()
        (tmp_path / "images" / "1.png").unlink()
        push(project, **both(server))
        for task in server.all:
            item = project.item(task.meta["item"])
            head, data = task.data["images"].split(",")
            assert head == "data:image/png;base64"
            assert (base64.b64decode(data) == item.path.read_bytes()) if item.name != "1.png" else len(data) > 100
    words = NewItems("texts", "words", ["a", "b"], texts=["<i>one</i>", "two"])
    with Project.create(tmp_path / "q", make({"kind": "texts", "per_round": 2, "rounds": 1}), ["a", "b"]) as project:
        project.add(words)
        project.advance()
        push(project, **both(server))
        assert sorted(task.data["texts"] for task in server.all) == ["<i>one</i>", "two"]


def test_large_rounds_are_sent_in_parts(project, server, monkeypatch):
    monkeypatch.setattr(label_studio_tasks, "MOST", 400)
    push(project, **both(server))
    assert 1 < server.calls.count("import") <= 8
    assert len(server.all) == 8


def test_what_is_wrong_is_said_in_a_sentence(project, server, tmp_path, monkeypatch):
    def says(text, call=push, **more):
        with pytest.raises(InputError, match=text) as error:
            call(project, **both(server) | more)
        assert TOKEN not in str(error.value)

    says("not the address", url="label-studio")
    says("not the address", url=f"http://{TOKEN}@host")
    says("no access token is set; set LABEL_STUDIO_API_KEY", client=None, token="")
    says("no access token is set", client=None, token=f"{TOKEN}\n{TOKEN}")
    monkeypatch.setitem(sys.modules, "label_studio_sdk", None)
    with pytest.raises(InputError, match=r"the extra `labelstudio`; install it: pip install 'accuacl\[labelstudio\]'"):
        connect(URL, TOKEN)
    for said, known in (({"release": "1.23.2"}, True), ({"hello": "world"}, False), ({"release": None}, False)):
        there = Thing(versions=Thing(get=lambda said=said: Thing(**said)))
        sdk = Thing(LabelStudio=lambda base_url, api_key, there=there: there)
        monkeypatch.setitem(sys.modules, "label_studio_sdk", sdk)
        if known:
            assert connect(URL, TOKEN) is there
        else:
            says("answers, but not as Label Studio does", client=None)
    says("this project has not been pushed to http://127.0.0.1:8091 yet; push it first", pull)
    server.broken = Refusal(401)
    says("does not accept the token", url="http://elsewhere")  # and is not remembered
    server.broken = None
    push(project, **both(server))
    says("this project was pushed to http://127.0.0.1:8091, not http://elsewhere", url="http://elsewhere")
    for call in (push, pull):
        server.broken = Refusal(401)
        says("does not accept the token in LABEL_STUDIO_API_KEY", call)
        server.broken = Refusal(500)
        says("answered with status 500; check that it is a Label Studio server", call)
        server.broken = type("ConnectError", (Exception,), {"__module__": "httpx"})()
        says("no Label Studio server answers at http://127.0.0.1:8091", call)
        server.broken = json.JSONDecodeError("Expecting value", "<html>", 0)
        says("http://127.0.0.1:8091 answers, but not as Label Studio does; check the address", call)
        server.broken = KeyError("a mistake of ours")
        with pytest.raises(KeyError):
            call(project, **both(server))
        server.broken = None
    kept, server.made = server.made, {}
    says("http://127.0.0.1:8091 no longer has project 5; remove .*label_studio.json", pull)
    says("no longer has project 5")
    server.made = kept
    kept[5].label_config = "<View/>"
    says('no <Choices name="class"> any more')
    (project.directory / "label_studio.json").write_text("{")
    says("is damaged")
    with new_project(tmp_path / "no ne") as empty:
        with pytest.raises(
            InputError,
            match=r"nothing to push; task 1: ready to train and to choose\. Next: `accuacl project train '.*no ne'`",
        ):
            push(empty, **both(server))
        empty.advance()
        with pytest.raises(InputError, match="no classes"):
            push(empty, **both(server))


def test_the_command_line(project, server, monkeypatch):
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", TOKEN)
    monkeypatch.setattr(label_studio, "connect", lambda url, token: server if token == TOKEN else None)
    monkeypatch.setattr(console, "width", 200)
    where = [str(project.directory), "--label-studio", URL]

    def run(*words):
        ran = CliRunner().invoke(app, ["project", *words])
        assert TOKEN not in ran.output
        return ran

    assert "http://127.0.0.1:8091/projects/5: 8 tasks added, 0 were there" in run("push", *where).output
    server.say(server.all[0], "ferret")
    ran = run("pull", *where)
    assert ran.exit_code == 2
    assert "refused: task 100 in Label Studio: the choice 'ferret' is not a class" in ran.output
    assert "8 of 8 to be labelled" in ran.output
    change(server.all[0].annotations[0], "class 0")
    label_all(project, server)
    ran = run("pull", *where)
    assert ran.exit_code == 0, ran.output
    assert "8 labelled, 0 skipped, 0 corrected" in ran.output
    assert f"ready to train. Next: accuacl project train {project.directory}" in ran.output
    ran = run("pull", *where, "--train")
    assert "8 tasks added, 0 were there" in ran.output
    assert "task 1, round 2 of 2: 8 of 8 to be labelled." in ran.output
    label_all(project, server)
    ran = run("pull", *where, "--watch", "--train")
    assert ran.exit_code == 0
    assert "everything is labelled and learned" in ran.output


def test_a_full_disk_ends_the_pull_instead_of_refusing_annotations(project, server, monkeypatch):
    push(project, **both(server))
    label_all(project, server)

    def full(*_, **__):
        raise StoreUnavailable(project.directory / "labels.sqlite", "database or disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(project.store, "label", full)
        with pytest.raises(StoreUnavailable):
            pull(project, **both(server))
    assert pull(project, **both(server)).labelled == 8
