"""People get the first items of a task before its embeddings are there; picks are the same whenever they begin."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project import (
    Project,
    images,
    make,
    people_steps as learning,
    read_images,
    rounds,
    take_label_file,
    task_inputs as inputs,
    unreadable_images,
    why_unreadable,
)
from accuacl.labeling.store import GivenLabel, Pick
from commands import accuacl as command
from scripted import answer, blobs, new_project, outcome, records
from test_labeling_data import IMAGES, colour, folder_of, quiet

pytestmark = pytest.mark.filterwarnings("ignore:the model learns from scratch")
COVERAGE = {"first_round": "coverage", "strategy": "coverage", "learner": "ridge", "head": "linear"}


class Killed(Exception):
    """Instead of kill -9."""


def killed_while_preparing(project, monkeypatch):
    with monkeypatch.context() as then:
        then.setattr(learning, "prepare", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            project.advance()


UNIFORM = {"first_round": "uniform", "epochs": 1}


@pytest.mark.parametrize(
    ("given", "early"), [(COVERAGE, 0), (COVERAGE, 100), (UNIFORM, 1), (UNIFORM | {"holdout": 0}, 100)]
)
def test_picks_do_not_depend_on_when_people_begin(given, early, tmp_path, monkeypatch):
    """A project that was killed while it prepared a task, and people had labelled some by then, ends the same."""
    begun: set[int] = set()

    def killed_at_first(tasks, task, *more):
        if task.index not in begun:
            begun.add(task.index)
            raise Killed
        return inputs.prepare(tasks, task, *more)

    outcomes = []
    for name, prepare in (("a", inputs.prepare), ("b", killed_at_first)):
        monkeypatch.setattr(learning, "prepare", prepare)
        with new_project(tmp_path / name, 2, **given) as project:
            for number in range(4):
                project.store.add_class(f"class {number}")
            while not project.state().finished:
                try:
                    project.advance()
                    answer(project)
                except Killed:
                    assert project.state().ready  # the rest has still to be chosen
                    answer(project, early)
            outcomes.append(outcome(project))
    assert begun == {0, 1}
    assert outcomes[0] == outcomes[1]


def test_what_is_held_out_is_given_out_first(tmp_path, monkeypatch):
    with new_project(tmp_path / "p", **COVERAGE) as project:
        killed_while_preparing(project, monkeypatch)
        first = [pick.item for pick in project.store.picks(0, 0)]
        assert len(first) == round(0.3 * 8)
        assert answer(project) == first
        project.advance()
        picked = records(project, "000/000/query")["000/000/query"]
        assert picked["held"] == sorted(first)
        assert picked["ids"][: len(first)] == first
        assert project.store.status().left == 8 - len(first)
        assert [pick.item for pick in project.store.picks(0, 0)] == picked["ids"]


def test_what_cannot_be_read_is_passed_over(tmp_path):
    photos = folder_of(tmp_path / "photos", 30)
    with Project.create(tmp_path / "p", make(IMAGES | {"per_round": 8})) as project:
        project.add(read_images(photos, quiet))
        config, task = project.settings.as_config(), project.tasks.all()[0]
        order = rounds._draw(config, 0, task.ids, 30, lambda item: True)[0]
        (photos / project.item(order[1]).name).unlink()
        (photos / project.item(order[2]).name).write_bytes(b"not an image")
        rounds.give_out_first(project.settings, project.tasks, project.store, task, 0)
        assert [pick.item for pick in project.store.picks(0, 0)] == [order[0], *order[3:10]]
        project.advance()  # which finds out which images are bad
        assert records(project, "000/000/query")["000/000/query"]["ids"] == [order[0], *order[3:10]]


def test_nothing_is_given_out_while_the_folder_is_missing(tmp_path):
    photos = folder_of(tmp_path / "photos")
    with Project.create(tmp_path / "p", make(IMAGES)) as project:
        project.add(read_images(photos, quiet))
        photos.rename(tmp_path / "elsewhere")
        rounds.give_out_first(project.settings, project.tasks, project.store, project.tasks.all()[0], 0)
        assert project.store.status() is None


def test_a_round_takes_more_picks_until_it_is_closed(tmp_path):
    with new_project(tmp_path / "p") as project:
        store = project.store
        store.begin_round(0, [], (), ())
        assert store.status() is None
        store.begin_round(0, [Pick(3, 1)], (), ())
        store.begin_round(0, [Pick(9, 1)], (), ())  # it is open already
        store.open_round(0, 0, [Pick(5, 0), Pick(3, 1)])
        assert [pick.item for pick in store.picks(0, 0)] == [5, 3]
        assert store.status().total == 2
        with pytest.raises(InputError, match="was opened with other picks"):
            store.open_round(0, 0, [Pick(5, 0), Pick(6, 1)])


def test_what_is_labelled_before_the_rest_is_chosen_is_not_asked_for(tmp_path, monkeypatch):
    """Labels of a file come between the first items and the query."""
    with new_project(tmp_path / "p", **COVERAGE) as project:
        killed_while_preparing(project, monkeypatch)
        first = [pick.item for pick in project.store.picks(0, 0)]
        given = sorted(set(range(60)) - set(first))[:50] + first[:1]
        rows = "".join(f"t0-{item},class 0\n" for item in given)
        (tmp_path / "l.csv").write_text(f"name,class\n{rows}")
        assert take_label_file(project, tmp_path / "l.csv", "Bob", new_classes=True).labels == 51
        assert first[0] not in answer(project)
        project.advance()
        picked = records(project, "000/000/query")["000/000/query"]
        assert picked["ids"][:2] == picked["held"] == sorted(first)
        assert not set(picked["ids"][2:]) & set(given)
        assert project.store.status().left == len(picked["ids"]) - 2 == 6
        assert not set(answer(project)) & set(given)
        project.advance()
        label = records(project, "000/000/label")["000/000/label"]
        assert sorted(label["given"]) == sorted(given[:50])
        assert len(label["labels"]) == 58


def test_what_is_labelled_between_query_and_opening_is_not_offered(tmp_path):
    """A file of labels is taken by another process just then; without this the project would never go on."""
    with new_project(tmp_path / "p") as project:
        project.advance()
        answer(project)
        open_round = project.store.open_round

        def given_meanwhile(task, round, picks, twice):
            if round == 1:
                project.store.give(0, [GivenLabel(picks[0].item, 0, project.store.person_named("Bob"))])
            open_round(task, round, picks, twice)

        project.store.open_round = given_meanwhile
        state = project.advance()
        assert (state.round, state.status.total) == (1, 7)
        project.store.open_round = open_round
        (item,) = set(records(project, "000/001/query")["000/001/query"]["ids"]) - set(answer(project))
        project.advance()
        label = records(project, "000/001/label")["000/001/label"]
        assert [late for late, _ in label["late"]] == label["given"] == [item]


def test_labels_that_come_with_the_data_are_there_before_anybody_is_asked(tmp_path, monkeypatch):
    items, names = blobs(0)
    with new_project(tmp_path / "p", 0, **COVERAGE) as project:
        project.add(replace(items, labels=[name if i % 2 else None for i, name in enumerate(names)]))
        killed_while_preparing(project, monkeypatch)
        first = [pick.item for pick in project.store.picks(0, 0)]
        assert project.store.labels().keys() == set(range(1, 60, 2))
        assert answer(project) == [item for item in first if item % 2 == 0]
        project.advance()
        asked = records(project, "000/000/query")["000/000/query"]["ids"]
        assert len(asked) == 8
        assert all(item % 2 == 0 for item in asked[len(first) :])
        while not project.advance().finished:
            answer(project)
    with new_project(tmp_path / "q", 0, **COVERAGE) as again:
        again.add(replace(items, labels=[name if i % 2 else None for i, name in enumerate(names)]))
        while not again.advance().finished:
            answer(again)
        assert records(again, "*/query") == records(Project.open(tmp_path / "p"), "*/query")


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_share_that_two_people_label_is_the_same_in_both_parts_of_a_round(share, tmp_path, monkeypatch):
    with new_project(tmp_path / "p", overlap=share, per_round=20, **COVERAGE) as project:
        killed_while_preparing(project, monkeypatch)
        first = {pick.item for pick in project.store.picks(0, 0)}
        early = asked_of_two(project)
        assert len(first) == 6
        assert early <= first
        assert len(early) == round(share * 6)
        project.advance()
        assert asked_of_two(project) & first == early
        assert len(asked_of_two(project)) == round(share * 20)


def asked_of_two(project):
    with project.store._db.read() as tx:
        return {item for (item,) in tx.rows("SELECT item FROM picks WHERE people = 2")}


def test_a_round_is_not_closed_before_it_is_chosen(tmp_path, monkeypatch):
    with new_project(tmp_path / "p", close_at=0.5, **COVERAGE) as project:
        killed_while_preparing(project, monkeypatch)
        answer(project)
        assert (project.state().waiting, project.state().status.left) == ("training", 0)
        with pytest.raises(InputError, match="is still being chosen"):
            project.enough(project.store.people()[0])
        state = project.advance()
        assert (state.waiting, state.status.left) == ("labels", 6)
        project.enough(project.store.people()[0])


@pytest.mark.parametrize("given", [COVERAGE, UNIFORM])
def test_a_lead_can_end_a_task_while_its_first_round_is_being_chosen(given, tmp_path, monkeypatch):
    with new_project(tmp_path / "p", 2, **given) as project:
        killed_while_preparing(project, monkeypatch)
        first = [pick.item for pick in project.store.picks(0, 0)]
        labelled = answer(project, len(first) - 1)
        project.end_task(project.store.people()[0], 0)
        assert project.advance().task == 1
        assert records(project, "000/000/query")["000/000/query"]["ids"] == first
        assert records(project, "000/000/label")["000/000/label"]["skipped"] == [first[-1]]
        assert project.store.labels().keys() == set(labelled)


def test_nothing_is_learned_from_an_image_that_breaks_after_it_was_labelled(tmp_path, monkeypatch):
    photos = folder_of(tmp_path / "photos", 30)
    with Project.create(tmp_path / "p", make(IMAGES | {"per_round": 8, "holdout": 0})) as project:
        project.store.add_person("Ada")
        project.add(read_images(photos, quiet))
        killed_while_preparing(project, monkeypatch)
        first = answer(project, name=colour)
        assert len(first) == 8
        for item in first[:3]:
            (photos / project.item(item).name).write_bytes(b"broken")
        project.advance()
        label = records(project, "000/000/label")["000/000/label"]
        assert label["skipped"] == first[:3]
        assert {item for item, _ in label["labels"]} == set(first[3:])
        names = [project.item(item).name for item in sorted(first[:3])]
        assert unreadable_images(project.tasks, project.tasks.all()[0]) == names
        assert "unknown format" in why_unreadable(project.tasks.all()[0], names[0])


def test_an_item_that_is_forgotten_before_its_task_begins_is_never_asked_for(tmp_path):
    with new_project(tmp_path / "p", 2, **COVERAGE, rounds=1, per_round=60) as project:
        project.advance()
        project.forget(["t1-7"])
        while not project.advance().finished:
            answer(project)
        assert 67 not in project.store.labels()
        assert records(project, "001/data")["001/data"]["bad"] == [7]
        assert len(project.store.labels()) == 119


def test_of_many_images_the_headers_are_read_and_the_rest_when_they_are_embedded(tmp_path, monkeypatch):
    photos = folder_of(tmp_path / "photos", 12)
    whole = (photos / "003.png").read_bytes()
    (photos / "003.png").write_bytes(whole[:-30])
    (photos / "004.png").write_bytes(b"nothing")
    assert set(read_images(photos, quiet).bad) == {"003.png", "004.png"}
    monkeypatch.setattr(images, "DECODED_AT_ONCE", 11)
    items = read_images(photos, quiet)
    assert items.bad == {"004.png": "not a readable image (unknown format)"}
    assert set(read_images(photos, quiet, whole=True).bad) == {"003.png", "004.png"}
    with Project.create(tmp_path / "p", make(IMAGES | {"per_round": 11})) as project:
        project.store.add_person("Ada")
        project.add(items)
        rounds.give_out_first(project.settings, project.tasks, project.store, project.tasks.all()[0], 0)
        assert 3 not in {pick.item for pick in project.store.picks(0, 0)}
        assert project.advance().status.total == 10
        ended = command("project", "status", "p", cwd=tmp_path, width=200)
        assert "left out: 003.png: not a readable image (" in ended.stdout


def test_people_have_the_first_items_before_torch_is_loaded(tmp_path):
    new_project(tmp_path / "p", **COVERAGE).close()
    code = (
        "import os, sys, pathlib, pyarrow.parquet\n"
        "import accuacl.labeling.web.server\n"
        "from accuacl.labeling.project import Project, project\n"
        "def threads():\n"
        "    return len(os.listdir('/proc/self/task')) if sys.platform == 'linux' else 0\n"
        "def advance(*_):\n"
        "    print('torch' in sys.modules, opened.store.status().left, threads() - before)\n"
        "    raise SystemExit\n"
        "before = threads()\n"
        "opened = Project.open(pathlib.Path('p'))\n"
        "import builtins\n"
        "real = builtins.__import__\n"
        "builtins.__import__ = lambda name, *more: advance() if name == 'torch' else real(name, *more)\n"
        "opened.advance()\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    # A thread of pyarrow's that is still at work when the process ends would abort it.
    assert (ended.returncode, ended.stdout) == (0, "False 2 0\n"), ended.stderr
