"""A budget of labels for a whole project: never exceeded, shared evenly by the tasks, and said in sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments import Journal
from accuacl.labeling.project import Project, describe_budget, make
from accuacl.labeling.project.state import round_limit
from commands import accuacl
from effort import examples
from scripted import SMALL, answer, blobs, finish, new_project, outcome, records
from web_project import browse, log_in, running

QUICK = {"learner": "ridge", "head": "linear", "strategy": "coverage", "first_round": "coverage"}


def whole(folder, total, tasks=1, **more):
    settings = {name: value for name, value in SMALL.items() if name != "rounds"} | QUICK
    project = Project.create(folder, make(settings | {"budget_total": total} | more))
    project.store.add_person("Ada", lead=True)
    for task in range(tasks):
        project.add(blobs(task)[0])
    return project


class Used:
    """A store in which so many labels of each task are used."""

    def __init__(self, *counts):
        self.counts = counts

    def used(self, task):
        return self.counts[task] if task < len(self.counts) else 0

    def used_elsewhere(self, task, round):
        return sum(self.counts) - (0 if round else self.used(task))


@pytest.mark.parametrize(
    ("used", "tasks", "task", "settings", "limit"),
    [
        ((), 1, 0, {}, 50),  # one more task may come, so the share is 450; a round has 50
        ((420,), 1, 0, {}, 30),
        ((450,), 1, 0, {}, 0),
        ((450,), 2, 1, {}, 50),  # of the 450 that are left, half are for one more
        ((450, 200), 2, 1, {}, 25),
        ((), 4, 0, {"budget_total": 7}, 2),
        ((2,), 4, 1, {"budget_total": 7}, 2),
        ((2, 2, 2), 4, 3, {"budget_total": 7, "budget_tasks": 4}, 1),
        ((300, 300), 3, 2, {"budget_tasks": 3}, 50),
        ((300, 300, 270), 3, 2, {"budget_tasks": 3}, 30),
        ((300, 300, 300), 4, 3, {"budget_tasks": 3}, 0),  # more tasks than was said: nothing is left
        ((900,), 2, 1, {}, 0),
    ],
)
def test_a_task_has_an_even_share_of_what_is_left(used, tasks, task, settings, limit):
    settings = make({"kind": "vectors", "budget_total": 900, "per_round": 50} | settings)
    round = 1 if task < len(used) else 0
    assert round_limit(settings, Used(*used), tasks, task, round) == limit


def label_some(project, draw):
    """People label, skip, and leave items: a lead closes rounds and ends tasks."""
    lead = project.store.people()[0]
    skips = draw(st.sets(st.integers(0, 5)))
    answer(project, draw(st.integers(3, 9)), skip=lambda pick: pick.rank in skips)
    end = draw(st.sampled_from(["", "", "", "enough", "task"]))
    status = project.store.status()
    if status is None:  # it died before anything was given out
        return
    if end == "enough" and status.open and project.chosen(status.task, status.round):
        project.store.enough(lead)
    if end == "task" and not project.state().finished:
        project.end_task(lead, status.task)


@given(data=st.data())
@examples(4, 400)
def test_the_total_is_never_exceeded(data, tmp_path_factory):
    """Whatever is skipped, left out when a round closes at a share, or ended, and wherever the process dies."""
    total, tasks = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 2))
    more = {"close_at": data.draw(st.sampled_from([1.0, 0.6])), "budget_tasks": data.draw(st.integers(0, 3))}
    more |= {"holdout": data.draw(st.sampled_from([0.0, 0.3])), "per_round": data.draw(st.integers(3, 9))}
    folder = tmp_path_factory.mktemp("budget") / "p"
    whole(folder, total, tasks, **more).close()
    for _ in range(200):
        with Project.open(folder) as project:  # opened anew each time, as after a kill
            state = advance_or_die(project, data.draw(st.sampled_from([0, 0, 0, 1, 3])))
            status = project.store.status()
            asked = status.left if status and status.open else 0
            assert project.store.used_in_all() + asked <= total
            if state.finished:
                break
            label_some(project, data.draw)
    assert state.finished
    with Project.open(folder) as project:
        assert len(project.store.labels()) == project.store.used_in_all() <= total


class Died(Exception):
    pass


def advance_or_die(project, at):
    """Advance; the process dies before it records its `at`-th step."""
    with pytest.MonkeyPatch.context() as patch:
        once, left = Journal.once, [at]

        def dies(self, kind, step, *arguments, **where):
            def then(*given):
                result = step(*given)
                left[0] -= 1
                if left[0] == 0:
                    raise Died
                return result

            return once(self, kind, then, *arguments, **where)

        patch.setattr(Journal, "once", dies)
        try:
            return project.advance()
        except Died:
            return project.state()


def test_an_interrupted_project_ends_with_the_same_bytes(tmp_path):
    with whole(tmp_path / "a", 24, 2, close_at=0.6) as undisturbed:
        finish(undisturbed)
        expected = outcome(undisturbed)
    whole(tmp_path / "b", 24, 2, close_at=0.6).close()
    for turn in range(300):
        with Project.open(tmp_path / "b") as project:
            if advance_or_die(project, 3 + turn % 3).finished:
                break
            answer(project)
    with Project.open(tmp_path / "b") as project:
        assert outcome(project) == expected


def test_tasks_have_equal_shares(tmp_path):
    with whole(tmp_path / "p", 24, 2, per_round=4) as project:
        finish(project)
        assert [project.store.used(task) for task in (0, 1)] == [12, 6]  # one more task may come
        assert project.state().used == 18
        why = [list(records(project, f"00{task}/*/query").values())[-1]["over"] for task in (0, 1)]
        assert why == [{"why": "budget"}] * 2
        project.add(blobs(2)[0])
        finish(project)
        assert project.store.used(2) == 3
    with whole(tmp_path / "q", 24, 2, per_round=4, budget_tasks=2) as project:
        finish(project)
        assert [project.store.used(task) for task in (0, 1)] == [12, 12]
        assert project.state().text == "everything is learned, and the budget of 24 labels is used."
        assert described(project) == ["The whole budget of 24 labels is used."]


def test_when_it_is_used_up_later_tasks_are_not_asked_for(tmp_path):
    with whole(tmp_path / "p", 5, budget_tasks=1) as project:
        finish(project)
        project.add(blobs(1)[0])
        state = project.advance()
        assert (state.finished, state.used, state.left) == (True, 5, 0)
        assert records(project, "001/*/train") == {}
        assert records(project, "001/000/query")["001/000/query"]["ids"] == []


def test_a_task_that_is_ended_has_learned_its_labels(tmp_path):
    with whole(tmp_path / "p", 900, 2) as project:
        project.advance()
        answer(project, 7)
        project.end_task(project.store.people()[0], 0)
        assert project.advance().task == 1
        assert list(records(project, "000/*/train")) == ["000/000/train"]
        assert records(project, "000/001/query")["000/001/query"]["over"]["why"] == "ended"
        assert project.store.rounds(0) == project.rounds(0) == 1


@pytest.mark.parametrize("learner", ["er", "gss", "der++"])
def test_the_memory_has_examples_of_every_task(tmp_path, learner):
    """Also of learners that fill it in what may be the last round."""
    with whole(tmp_path / "p", 24, 2, learner=learner, epochs=2, memory=40, per_round=6, budget_tasks=2) as project:
        finish(project)
        kept = [set(records(project, f"00{t}/memory")[f"00{t}/memory"]["ids"]) for t in (0, 1)]
    assert kept[0]
    assert any(item >= 60 for item in kept[1])


def described(project):
    return describe_budget(project.settings, project.store, len(project.tasks.all()))


def test_how_the_budget_is_described(tmp_path):
    with whole(tmp_path / "p", 60, per_round=10) as project:
        assert described(project) == ["0 of 60 labels are used, 60 are left."]
        state = project.advance()
        assert (state.used, state.budget, state.left, state.rounds) == (0, 60, 60, 0)
        assert state.text == "task 1, round 1: 10 of 10 to be labelled."
        answer(project)
        project.advance()
        share = "The share of task 1 is 30 labels, of which 10 are used."
        assert described(project) == ["10 of 60 labels are used, 50 are left.", share]
        shown = accuacl("project", "status", project.directory).stdout
        assert "labels of task 1: 10; 1 task\n" in shown
        assert share in shown
        finish(project)
        assert described(project)[1] == "The share of task 1 is 30 labels, of which 30 are used."
        project.add(blobs(1)[0])
        finish(project)
        assert described(project) == [
            "45 of 60 labels are used, 15 are left.",
            "The share of task 2 is 15 labels, of which 15 are used.",
        ]


def test_the_page_says_the_same(tmp_path):
    with whole(tmp_path / "p", 60, per_round=10) as project:
        project.advance()
        answer(project)
        project.advance()
        said = " ".join(described(project))
        with running(project) as server, browse(server) as client:
            log_in(client, project, "Grace", lead=True)
            assert said in client.get("/project").text
            assert said in client.get("/dashboard").text
            assert "Task 1, round 2" in client.get("/dashboard").text
            assert "round 2 of" not in client.get("/project").text
            assert client.get("/review").status_code == 200
            state = client.post("/api/next", json={}).json()["state"]
        assert (state["budget"], state["rounds"]) == ({"used": 10, "total": 60}, 0)


def test_a_project_without_one_is_as_ever(tmp_path):
    with new_project(tmp_path / "p") as project:
        assert project.settings.budget_total == 0
        project.advance()
        assert described(project) == []
        finish(project)
        assert not any("over" in query for query in records(project, "*/query").values())
        assert len(records(project, "*/query")) == 2


def test_wrong_settings():
    with pytest.raises(InputError, match="--rounds and --budget-total cannot be combined"):
        make({"kind": "vectors", "budget_total": 100, "rounds": 3})
    with pytest.raises(InputError, match="--budget-tasks says how many tasks share --budget-total"):
        make({"kind": "vectors", "budget_tasks": 3})
