"""Projects: the loop with people in it."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import signal
import sys
import uuid

import numpy as np
import pytest
from pydantic import Field

from accuacl import strategy_names
from accuacl.base import files
from accuacl.base.errors import InputError
from accuacl.experiments import Journal, learners
from accuacl.labeling.project import Project, ProjectSettings, make
from accuacl.labeling.project.rounds import held_out
from accuacl.labeling.store import Store
from commands import accuacl
from dying import project_until
from effort import times
from processes import Running
from scripted import SMALL, answer, blobs, class_of, finish, new_project, outcome, records, truth


@pytest.fixture
def project(tmp_path):
    with new_project(tmp_path / "p") as project:
        yield project


def test_a_project_goes_from_data_to_labels_to_training_and_back(project):
    assert project.state().ready
    state = project.advance()
    assert (state.waiting, state.task, state.round, state.used, state.budget, state.left) == ("labels", 0, 0, 0, 16, 16)
    assert state.text == "task 1, round 1 of 2: 8 of 8 to be labelled."
    assert project.advance() == state  # nothing to do yet
    answer(project, 3)
    assert project.advance().text == "task 1, round 1 of 2: 5 of 8 to be labelled."
    assert project.state().used == 3
    answer(project)
    assert project.state().ready
    state = project.advance()
    assert (state.waiting, state.round) == ("labels", 1)
    picks = project.store.picks(0, 1)
    assert set(picks[0].scores) == {"distribution", "magnitude"}
    assert all(pick.guess is not None and 0.4 < pick.confidence <= 1 for pick in picks)
    answer(project)
    state = project.advance()
    assert state.finished
    assert state.text == "everything is labelled and learned; add data for the next task."
    assert state.used == state.budget == 16
    project.add(blobs(1)[0])
    assert project.state().ready
    state = project.advance()
    assert (state.waiting, state.task, state.round, state.tasks) == ("labels", 1, 0, 2)
    assert project.store.picks(1, 0)[0].guess is not None  # by the model of the first task
    finish(project)
    assert project.store.counts_by_class() == {c: n for c, n in project.store.counts_by_class().items() if n}
    assert len(project.store.labels()) == 32


def test_an_empty_project_waits_for_data(tmp_path):
    with Project.create(tmp_path / "p", make(SMALL), ["a", " b "]) as project:
        assert project.state().waiting == "data"
        assert project.advance().finished
        assert project.state().text == "there is nothing to label yet."
        assert [one.name for one in project.store.classes()] == ["a", "b"]
        assert project.estimates().tasks == ()
    with pytest.raises(InputError, match=r"p is already a project; add data with `accuacl project add .*p`, label"):
        Project.create(tmp_path / "p", make(SMALL))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "config.json").touch()
    with pytest.raises(InputError, match="is not empty"):
        Project.create(tmp_path / "r", make(SMALL))
    for classes, says in ((["a", "a "], "not all different"), (["x" * 101], "cannot be called")):
        with pytest.raises(InputError, match=says):
            Project.create(tmp_path / "q", make(SMALL), classes)
    assert not (tmp_path / "q").exists()


@pytest.mark.parametrize("learner", learners.NAMES)
def test_every_learner_learns_with_people(tmp_path, learner):
    with new_project(tmp_path / "p", 2, learner=learner) as project:
        finish(project)
        assert len(records(project, "*/train")) == 4
        assert project.estimates().accuracy.value > 30


@pytest.mark.parametrize("strategy", strategy_names())
def test_every_strategy_chooses_for_people(tmp_path, strategy):
    with new_project(tmp_path / "p", 2, strategy=strategy) as project:
        finish(project)
        picked = [item for result in records(project, "*/query").values() for item in result["ids"]]
        assert len(picked) == len(set(picked)) == 32


def test_held_out_items_are_never_trained_on_nor_remembered(project):
    project.add(blobs(1)[0])
    finish(project)
    for task in range(2):
        first = records(project, f"{task:03}/000/label")[f"{task:03}/000/label"]
        assert len(first["held"]) == round(0.3 * 8)
        assert set(first["held"]) <= {item for item, _ in first["labels"]}
        assert first["held"] == held_out(project.store.close_round(task, 0), 0.3, 0)
        assert records(project, f"{task:03}/001/label")[f"{task:03}/001/label"]["held"] == []
        memory = records(project, f"{task:03}/memory")[f"{task:03}/memory"]
        assert not set(memory["ids"]) & set(first["held"])
    said = records(project, "001/evaluate")["001/evaluate"]
    assert len(said["predictions"]) == 4
    assert len(said["accuracy"]) == 2


def test_a_first_round_that_covers_the_pool_holds_out_a_uniform_draw(tmp_path):
    with new_project(tmp_path / "p", first_round="coverage") as project, new_project(tmp_path / "u") as uniform:
        finish(project)
        finish(uniform)
        query = records(project, "000/000/query")["000/000/query"]
        assert len(query["ids"]) == len(set(query["ids"])) == 8
        assert sorted(query["ids"][:2]) == query["held"] == records(project, "000/000/label")["000/000/label"]["held"]
        assert query["ids"][:2] == records(uniform, "000/000/query")["000/000/query"]["ids"][:2]
        assert query["scores"]["gain"][:2] == [None, None]
        assert min(query["scores"]["gain"][2:]) > 0
        assert not project.store.picks(0, 0)[0].scores
        assert project.store.picks(0, 0)[2].scores.keys() == {"gain"}


def test_what_training_sees_has_nothing_of_the_held_out(project, monkeypatch):
    seen = []
    train = learners.Learner.train

    def watched(learner, *rest):
        new, ids = learner.round.new, learner.round.ids.tolist()
        seen.append((ids[:new], ids[new:]))
        train(learner, *rest)

    monkeypatch.setattr(learners.Learner, "train", watched)
    project.add(blobs(1)[0])
    finish(project)
    held = {item for result in records(project, "*/label").values() for item in result["held"]}
    assert len(held) == 4
    assert [len(ids) for ids, _ in seen] == [6, 14, 6, 14]
    assert not held & {item for pair in seen for ids in pair for item in ids}


def test_the_share_held_out_leaves_something_to_train_on():
    assert held_out([], 0.3, 0) == held_out([5], 0.9, 0) == []
    assert len(held_out([1, 2], 0.99, 0)) == 1
    assert held_out(list(range(100)), 0.3, 0) != held_out(list(range(100)), 0.3, 1)
    chosen = [len({*held_out(list(range(50)), 0.3, seed)} & {7}) for seed in range(2000)]
    assert np.mean(chosen) == pytest.approx(0.3, abs=0.03)


def test_skipped_items_leave_the_pool_and_refund_the_budget(project):
    project.advance()
    skipped = answer(project, skip=lambda pick: pick.rank % 2 == 0)[::2]
    state = project.advance()
    assert state.status.total == 12  # 8 of this round and the 4 that were skipped
    assert (state.used, state.left) == (4, 12)
    assert not set(skipped) & {pick.item for pick in project.store.picks(0, 1)}
    answer(project)
    state = project.advance()
    assert state.finished
    assert state.used == state.budget == 16


def test_a_task_of_which_everything_is_skipped_is_passed_over(tmp_path):
    with new_project(tmp_path / "p", 3) as project:
        project.advance()
        while project.store.status().task == 0:
            answer(project, skip=lambda pick: True)
            assert project.advance().used == 0
        assert project.state().task == 1
        assert records(project, "000/memory")["000/memory"]["ids"] == []
        while project.store.status().task == 1:
            answer(project)
            project.advance()
        while not project.advance().finished:  # and one after something has been learned
            answer(project, skip=lambda pick: True)
        remembered = records(project, "00*/memory")
        assert remembered["002/memory"] == remembered["001/memory"]
        assert [one.task for one in project.estimates().tasks] == [1]


def test_a_pool_smaller_than_the_budget_is_labelled_out(tmp_path):
    with new_project(tmp_path / "p", 0, rounds=3) as project:
        source, _ = blobs(0)
        project.add(source.only(list(range(10))))
        finish(project)
        assert len(project.store.labels()) == 10
        assert [len(result["ids"]) for result in records(project, "*/query").values()] == [8, 2, 0]
        assert project.state().budget == 10


def test_corrections_count_from_the_next_training_on_and_in_the_memory(tmp_path, monkeypatch):
    used = []
    train = learners.Learner.train

    def watched(learner, *rest):
        round = learner.round
        used.append(
            dict(zip(round.ids.tolist(), round.labels.tolist(), strict=True))
            | {"head": round.model.head.out_features, "seen": round.seen.tolist()}
        )
        train(learner, *rest)

    monkeypatch.setattr(learners.Learner, "train", watched)
    with new_project(tmp_path / "p", 2, memory=50) as project:
        ada = project.store.people()[0]
        project.advance()
        answer(project)
        project.advance()
        first = next(item for item in used[0] if isinstance(item, int))
        other = project.store.add_class("something else")
        project.store.correct(ada, first, other.id, uuid.uuid4().hex)
        assert project.advance().waiting == "labels"  # a correction alone starts nothing
        answer(project)
        project.advance()
        assert used[0][first] != other.id == used[1][first]
        assert used[1]["head"] == other.id + 1
        assert other.id in used[1]["seen"]
        project.store.correct(ada, first, class_of(project, "class 0"), uuid.uuid4().hex)
        answer(project)
        project.advance()
        assert used[2][first] == class_of(project, "class 0")  # now it is in the memory
        assert other.id not in used[2]["seen"]
        expected = [[first, class_of(project, "class 0")]]
        assert records(project, "001/000/label")["001/000/label"]["corrected"] == expected
        finish(project)
        memory = records(project, "001/memory")["001/memory"]
        assert dict(zip(memory["ids"], memory["labels"], strict=True))[first] == expected[0][1]


def test_classes_merged_and_renamed_meanwhile(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        project.advance()
        answer(project)
        project.advance()
        project.store.merge_class(1, 0)
        project.store.rename_class(0, "both")
        answer(project, name=lambda project, item: "both")
        project.advance()
        assert records(project, "000/001/train")["000/001/train"]["seen"] == [0]
        finish(project)
        assert project.store.counts_by_class().keys() == {0, 2, 3}
        assert 1 not in records(project, "001/001/train")["001/001/train"]["seen"]
        tasks = project.estimates().tasks
        assert len(tasks) == 2
        assert all(0 <= one.now.value <= 100 for one in tasks)


def test_a_class_that_only_a_correction_names_does_not_stop_the_loop(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        finish_task(project)
        answers = records(project, "000/000/label")["000/000/label"]
        item = next(item for item, _ in answers["labels"] if item not in answers["held"])
        new = project.store.add_class("new")
        project.store.correct(project.store.people()[0], item, new.id, uuid.uuid4().hex)
        answer(project, skip=lambda pick: True)  # so that nothing is trained before the next query
        finish(project)
        assert records(project, "001/000/train") == {}
        assert records(project, "001/001/query")["001/001/query"]["guess"]
        assert new.id in records(project, "001/001/train")["001/001/train"]["seen"]


def finish_task(project):
    task = project.advance().task
    while not project.state().finished and project.state().task == task:
        answer(project)
        project.advance()


def test_two_tasks_added_while_a_round_is_open(project):
    project.advance()
    answer(project, 3)
    before = project.store.status()
    for task in (1, 2):
        project.add(blobs(task)[0])
    assert project.store.status() == before
    assert project.state().tasks == 3
    finish(project)
    assert [len(result["ids"]) for result in records(project, "*/query").values()] == [8] * 6
    firsts = [task.first for task in project.tasks.all()]
    for task, ids in enumerate(result["ids"] for result in records(project, "*/000/query").values()):
        assert all(firsts[task] <= item < firsts[task] + 60 for item in ids)


def test_other_kinds_and_other_widths_are_refused(project, tmp_path):
    source, _ = blobs(1)
    with pytest.raises(InputError, match="this project labels vectors, not texts"):
        project.add(type(source)("texts", "x", ["a"], texts=["a"]))
    with pytest.raises(InputError, match="x has vectors of 9 entries, the first task of 6"):
        project.add(type(source)("vectors", "x", ["a"], vectors=np.ones((1, 9), np.float32)))
    finish(project)


def test_one_process_trains_at_a_time(project):
    project.advance()
    with Journal(project.directory, project.settings, {}), pytest.raises(InputError, match="another process"):
        project.advance()
    answer(project, 1)  # while people go on
    assert project.state().used == 1


def test_a_full_disk_stops_training_and_loses_nothing(project, monkeypatch):
    project.advance()
    answer(project)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as then:
        then.setattr(files.os, "fsync", full)
        with pytest.raises(InputError, match="cannot be written: no space left on device"):
            project.advance()
    assert project.state().ready
    assert len(project.store.labels()) == 8
    finish(project)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"strategy": "full"}, "there is no strategy 'full'"),
        ({"learner": "magic"}, "there is no learner 'magic'"),
        ({"model": "conv4"}, "there is no model 'conv4' for vectors"),
        ({"weights": "x"}, "--weights goes with your own"),
        ({"finetune": True}, "--finetune has no network to train"),
        ({"per_round": 0}, "per_round is 0"),
        ({"holdout": 1.0}, "holdout is 1.0"),
        ({"mean": (0.5,)}, "--mean and --std go together"),
        ({"kind": "texts", "model": f"{__file__}:build", "weights": __file__}, "loads its weights itself"),
        ({"model": "nowhere.py:build"}, "nowhere.py cannot be read"),
    ],
)
def test_wrong_settings_are_one_sentence(given, says):
    with pytest.raises(InputError, match=says) as raised:
        make(SMALL | given)
    assert "\n" not in str(raised.value)


def test_what_is_no_project_is_said(tmp_path):
    with pytest.raises(InputError, match="is not a project"):
        Project.open(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"learner": "er", "benchmark": "split-digits"}))
    with pytest.raises(InputError, match="does not belong to a project"):
        Project.open(tmp_path)


def test_a_backup_is_a_project_that_goes_on_alike(tmp_path):
    with new_project(tmp_path / "p", 2) as project:
        project.advance()
        answer(project)
        project.advance()
        answer(project, 3)
        project.backup(tmp_path / "copy")
        assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
            "config.json",
            "journal.sqlite",
            "labels.sqlite",
            "tasks",
            "weights",
        ]
        with pytest.raises(InputError, match="copy is already a project"):
            project.backup(tmp_path / "copy")
        finish(project)
        expected = outcome(project)
    with Project.open(tmp_path / "copy") as copy:
        assert len(copy.store.labels()) == 11
        finish(copy)
        assert outcome(copy) == expected


def test_the_command_backup(tmp_path):
    new_project(tmp_path / "p").close()
    ended = accuacl("project", "backup", "p", "copy", cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "copied to copy\n"), ended.stderr
    with Project.open(tmp_path / "copy") as copy:
        assert copy.state().tasks == 1
    ended = accuacl("project", "backup", "p", "copy", cwd=tmp_path, width=300)
    assert (ended.returncode, "copy is already a project" in ended.stderr) == (2, True)


def test_a_backup_waits_for_a_training_and_does_not_stop_people(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["accuacl.labeling.project.project"], "PATIENCE", 0.0)
    with new_project(tmp_path / "p") as project:
        project.advance()
        with (
            Journal(project.directory, project.settings, {}),
            pytest.raises(InputError, match=f"another process .id {os.getpid()}. is training .*p; try again"),
        ):
            project.backup(tmp_path / "copy")
        assert not (tmp_path / "copy").exists()
        copy = Store.backup

        def labelled_meanwhile(store, path):
            answer(project, 1)
            copy(store, path)

        monkeypatch.setattr(Store, "backup", labelled_meanwhile)
        project.backup(tmp_path / "copy")
    with Project.open(tmp_path / "copy") as project:
        assert len(project.store.labels()) == 1


class Newer(ProjectSettings):
    """The settings of a later version, with one more."""

    colour: str = Field("red")


def test_a_new_setting_leaves_projects_that_lack_it_as_they_were(tmp_path, monkeypatch):
    with new_project(tmp_path / "p") as project:
        project.advance()
        answer(project)
    config = json.loads((tmp_path / "p" / "config.json").read_text())
    (tmp_path / "p" / "config.json").write_text(json.dumps({k: config[k] for k in config if k != "text_features"}))
    monkeypatch.setattr(sys.modules["accuacl.labeling.project.project"], "ProjectSettings", Newer)
    with Project.open(tmp_path / "p") as project:
        assert (project.settings.colour, project.settings.text_features) == ("red", 4096)
        finish(project)
    monkeypatch.undo()
    with Project.open(tmp_path / "p") as project:
        assert project.state().finished
    made = Newer(**make(SMALL).model_dump())
    Project.create(tmp_path / "q", made).close()
    with pytest.raises(InputError, match=r"newer version of accuacl \(with the settings colour\); upgrade"):
        Project.open(tmp_path / "q")


def test_settings_of_a_newer_version_are_refused(project):
    path = project.directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": 2}))
    for act in (lambda: Project.open(project.directory), project.advance):
        with pytest.raises(InputError, match=r"config\.json was written by a newer version .*; upgrade accuacl"):
            act()


SUMS = {"learner": "ridge", "keep": "statistics"}


@pytest.fixture(scope="module", params=[{}, SUMS], ids=["er", "ridge"])
def undisturbed(request, tmp_path_factory):
    """What a project comes to that nobody kills, and its settings."""
    folder = tmp_path_factory.mktemp("undisturbed") / "p"
    new_project(folder, 0, **request.param).close()
    project_until(folder)
    with Project.open(folder) as project:
        return outcome(project), project.store.labels(), project.estimates(), request.param


@pytest.mark.posix
@pytest.mark.parametrize("seed", range(times(1, 6)))
def test_killed_at_any_instant_it_goes_on_as_if_nothing_had_happened(tmp_path, undisturbed, seed):
    found, labels, estimates, settings = undisturbed
    folder, draw = tmp_path / "p", random.Random(seed)
    new_project(folder, 0, **settings).close()
    for kill in range(7):  # after so many writes, at a random instant, and so on; the last one is left alone
        writes, seconds = (draw.randint(2, 60), 0.0) if kill % 2 == 0 else (0, draw.random() / 2)
        ended = Running(project_until, folder, *((writes, seconds) if kill < 6 else ())).wait()
        if ended.returncode == 0:
            break
        assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert ended.returncode == 0
    assert kill >= 1
    with Project.open(folder) as project:
        assert project.store.labels() == labels
        assert "correct" in {event.kind for item in labels for event in project.store.history(item)}
        assert project.estimates() == estimates
        assert outcome(project) == found


def test_the_reader_of_a_project_never_waits_for_its_trainer(project):
    project.advance()
    with contextlib.ExitStack() as stack:
        stack.enter_context(Journal(project.directory, project.settings, {}))
        assert project.state().waiting == "labels"
        assert project.estimates().tasks == ()
        assert truth(project, 3).startswith("class")


def test_a_round_that_closed_at_a_share_goes_on_and_takes_late_labels_later(tmp_path):
    """Of eight picks two are left out; one of them is labelled after the round was closed, and then trained on."""
    with new_project(tmp_path / "p", close_at=0.75, rounds=3, per_round=8) as project:
        project.advance()
        picks = [pick.item for pick in project.store.picks(0, 0)]
        answer(project, limit=6)
        assert project.state().ready
        project.advance()
        step = records(project, "*/label")
        (first,) = step.values()
        left = [item for item in picks if item not in dict(first["labels"])]
        assert sorted(first["skipped"]) == sorted(left)
        assert len(left) == 2
        free = next(item for item in left if item not in first["held"])
        person = project.store.people()[0]
        project.store.relabel(person, [free], class_of(project, truth(project, free)), "late")
        answer(project)
        project.advance()
        second = list(records(project, "*/label").values())[1]
        assert [item for item, _ in second["late"]] == [free]
        answer(project)
        project.advance()
        third = list(records(project, "*/label").values())[2]
        assert "late" not in third
