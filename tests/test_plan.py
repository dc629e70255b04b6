"""What leads change while a project runs: overlap, hold-out, the budget, and one more round of a finished task."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from accuacl import InputError
from accuacl.experiments import read_steps
from accuacl.labeling.project import NewItems, Project, make


def items(first: int, count: int = 40) -> NewItems:
    rng = np.random.default_rng(first)
    vectors = rng.normal(size=(count, 4)).astype(np.float32)
    return NewItems("vectors", "a.parquet", [str(first + i) for i in range(count)], vectors=vectors, lists="embedding")


def a_project(folder, **more) -> Project:
    given = {"kind": "vectors", "per_round": 6, "rounds": 2, "learner": "ridge"} | more
    if "budget_total" in more:
        del given["rounds"]
    project = Project.create(folder, make(given, embeddings=True), ["a", "b"])
    project.add(items(0))
    return project


def label_all(project: Project) -> None:
    """Until the project waits for data."""
    person = project.store.person_named("Ada")
    project.advance()
    while not project.state().finished:
        while (pick := project.store.lease(person)) is not None:
            project.store.label(person, pick.item, pick.item % 2, uuid.uuid4().hex)
        project.advance()


def results(project: Project):
    steps = read_steps(project.journal, "query", "label", "memory", "evaluate", "test")
    return [(step.kind, step.task, step.round, step.result) for step in steps]


@pytest.mark.parametrize("more", [{"learner": "ridge"}, {"learner": "er", "epochs": 2, "memory": 5}])
def test_one_more_round_of_a_finished_task_ends_as_if_it_had_been_planned(tmp_path, more):
    with a_project(tmp_path / "later", **more) as project:
        project.add(items(100))
        label_all(project)
        assert project.state().text.startswith("everything is labelled")
        project.one_more_round(1)
        state = project.state()
        assert (state.waiting, state.rounds, state.budget) == ("training", 3, 18)
        label_all(project)
        assert project.store.used(1) == 18
        assert project.rounds(0) == 2
        later = results(project)
    with a_project(tmp_path / "before", **more) as project:
        project.add(items(100))
        project.advance()
        while project.state().task == 0:
            person = project.store.person_named("Ada")
            while (pick := project.store.lease(person)) is not None:
                project.store.label(person, pick.item, pick.item % 2, uuid.uuid4().hex)
            project.advance()
        project.one_more_round(1)  # while it is being labelled
        label_all(project)
        assert results(project) == later


def test_a_round_is_added_to_the_latest_task_alone_and_only_where_something_is_left(tmp_path):
    with a_project(tmp_path / "p", per_round=20) as project:
        label_all(project)
        with pytest.raises(InputError, match="every example of task 1 has been asked for"):
            project.one_more_round(0)
        project.add(items(100))
        project.advance()
        with pytest.raises(InputError, match="only the latest task"):
            project.one_more_round(0)
        project.end_task(project.store.person_named("Ada"), 1)
        with pytest.raises(InputError, match="a lead has ended task 2"):
            project.one_more_round(1)
    with a_project(tmp_path / "sums", keep="statistics") as project:
        label_all(project)
        with pytest.raises(InputError, match="are erased"):
            project.one_more_round(0)


def test_a_larger_budget_reopens_a_task_that_has_used_up_the_old_one(tmp_path):
    with a_project(tmp_path / "p", budget_total=10, budget_tasks=1) as project:
        label_all(project)
        assert project.store.used_in_all() == 10
        with pytest.raises(InputError, match="10 labels are already used"):
            project.change(budget_total=9)
        with pytest.raises(InputError, match="raise the budget"):
            project.one_more_round(0)
        project.change(budget_total=14)
        assert not project.state().finished
        label_all(project)
        assert project.store.used_in_all() == 14
    with a_project(tmp_path / "q") as project, pytest.raises(InputError, match="add rounds instead"):
        project.change(budget_total=100)


def test_a_larger_memory_holds_more_of_the_tasks_that_end_from_now_on(tmp_path):
    with a_project(tmp_path / "p", learner="er", epochs=1, memory=2, holdout=0.0) as project:
        label_all(project)
        project.change(memory=100)
        project.add(items(100))
        label_all(project)
        sizes = [len(step.result["ids"]) for step in read_steps(project.journal, "memory")]
    assert sizes == [2, 14]


def test_overlap_and_holdout_count_for_what_comes_and_for_other_processes(tmp_path):
    with a_project(tmp_path / "p", holdout=0.5) as project, Project.open(tmp_path / "p") as other:
        project.advance()
        project.change(overlap=0.5, holdout=0.0)
        assert (other.overlap, other.settings.holdout) == (0.5, 0.0)
        person, second = project.store.person_named("Ada"), project.store.person_named("Grace")
        for who in (person, second) * 20:
            while (pick := project.store.lease(who)) is not None:
                project.store.label(who, pick.item, pick.item % 2, uuid.uuid4().hex)
            other.advance()
        assert not project.store.look(second).free
        opinions = [e for item in range(40) for e in project.store.history(item) if e.kind == "opinion"]
        assert len(opinions) == 3  # half of the second round
        project.add(items(100))
        project.advance()
        labels = read_steps(project.journal, "query", task=1)
        assert labels[0].result.get("held") == []
        with pytest.raises(InputError, match="overlap is 2"):
            project.change(overlap=2)
    (tmp_path / "p" / "plan.json").write_text("{")
    with Project.open(tmp_path / "p") as project, pytest.raises(InputError, match=r"plan\.json is damaged"):
        _ = project.settings
