"""A lead ends a task early: its labels are learned, nothing more of it is asked for, and the next task begins."""

from __future__ import annotations

import pytest

from accuacl.base.errors import InputError
from accuacl.labeling.project import Project
from scripted import answer, blobs, finish, new_project, outcome, records


@pytest.fixture
def project(tmp_path):
    with new_project(tmp_path / "p", rounds=3, epochs=1) as project:
        project.advance()
        yield project


def lead_of(project):
    project.store.add_person("Lee", lead=True)
    return next(person for person in project.store.people() if person.name == "Lee")


def test_its_open_round_is_learned_and_the_next_task_begins(project):
    project.add(blobs(1)[0])
    answer(project, 7)
    lead = lead_of(project)
    project.end_task(lead, 0)
    project.end_task(lead, 0)  # sent again
    assert project.state().ready
    state = project.advance()
    assert (state.waiting, state.task, state.round, state.used) == ("labels", 1, 0, 0)
    assert project.store.used(0) == 7
    assert sorted(records(project, "000/*/train")) == ["000/002/train"]  # of what is left only the last round trains
    assert [len(records(project, f"000/00{r}/query")[f"000/00{r}/query"]["ids"]) for r in range(3)] == [8, 0, 0]
    assert all(result["ended"] for result in records(project, "000/*/label").values())
    assert len(records(project, "000/evaluate")) == 1
    finish(project)
    assert sorted(records(project, "001/*/train")) == ["001/000/train", "001/001/train", "001/002/train"]
    assert [task.learned is not None for task in project.estimates().tasks] == [True, True]  # 1 of 2 was held out


def test_without_a_next_task_it_waits_for_data(project):
    answer(project)
    project.advance()
    project.end_task(lead_of(project), 0)
    state = project.advance()
    assert state.finished
    assert state.used == 8
    assert sorted(records(project, "000/*/train")) == ["000/000/train", "000/002/train"]
    assert len(project.estimates().history) == 2
    project.add(blobs(1)[0])
    assert project.advance().task == 1


def test_it_can_end_between_two_rounds_and_with_no_label_at_all(project):
    project.add(blobs(1)[0])
    project.end_task(lead_of(project), 0)
    assert project.advance().task == 1
    assert records(project, "000/*/train") == {}
    answer(project)
    project.advance()
    assert sorted(records(project, "001/*/train")) == ["001/000/train"]


def test_what_was_corrected_meanwhile_is_learned(project):
    answer(project)
    project.advance()
    held = set(records(project, "000/000/label")["000/000/label"]["held"])
    item, label = next((item, label) for item, label in project.store.labels().items() if item not in held)
    lead = lead_of(project)
    project.store.correct(lead, item, 1 - label, "correct-it")
    project.end_task(lead, 0)
    assert project.advance().finished
    assert records(project, "000/001/label")["000/001/label"]["corrected"] == [[item, 1 - label]]
    assert records(project, "000/memory")["000/memory"]["labels"].count(1 - label) > 0


def test_only_the_present_task_can_be_ended(project):
    lead = lead_of(project)
    with pytest.raises(InputError, match="task 2 is not the one that is being labelled"):
        project.end_task(lead, 1)
    finish(project)
    with pytest.raises(InputError, match="task 1 is not the one that is being labelled"):
        project.end_task(lead, 0)
    assert not project.store.has_ended(0)
    with pytest.raises(InputError, match="task 7 is not the one"):
        project.store.end_task(lead, 6)


def test_a_learner_that_remembers_while_it_trains_has_the_ended_task(tmp_path):
    with new_project(tmp_path / "p", 2, learner="gss", epochs=1) as project:
        project.advance()
        answer(project, 6)
        project.end_task(lead_of(project), 0)
        finish(project)
        kept = records(project, "000/memory")["000/memory"]
        assert kept["ids"]
        assert set(kept["ids"]) <= set(project.store.labels())
        assert sorted(records(project, "000/*/train")) == ["000/001/train"]


def test_opened_again_it_goes_on_to_the_same_bytes(tmp_path):
    ends = []
    for again in (False, True):
        with new_project(tmp_path / f"{again}", 2, rounds=3, epochs=1) as project:
            project.advance()
            answer(project, 5)
            project.end_task(lead_of(project), 0)
            project.advance()
            directory = project.directory
            if not again:
                finish(project)
                ends.append(outcome(project))
        if again:
            with Project.open(directory) as project:
                finish(project)
                ends.append(outcome(project))
    assert ends[0] == ends[1]
