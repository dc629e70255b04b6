"""A budget of labels for a whole project: never exceeded, spent where it does most good, and said in sentences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.experiments import Journal
from accuacl.labeling.project import Project, make
from accuacl.labeling.project.budget import Gains, LabelBudget, measured_curves
from accuacl.labeling.project.stopping import Measured, expected_errors
from commands import accuacl
from effort import examples
from scripted import SMALL, answer, blobs, finish, new_project, outcome, records
from web_project import browse, log_in, running

HARD = [Measured(35, 8, 20), Measured(85, 11, 20)]
EASY = [Measured(35, 20, 20), Measured(85, 20, 20)]
QUICK = {"learner": "ridge", "head": "linear", "strategy": "coverage", "first_round": "coverage"}


def whole(folder, total, tasks=1, **more):
    settings = {name: value for name, value in SMALL.items() if name != "rounds"} | QUICK
    project = Project.create(folder, make(settings | {"budget_total": total} | more))
    project.store.add_person("Ada", lead=True)
    for task in range(tasks):
        project.add(blobs(task)[0])
    return project


def purse(left, task=0, waiting=(), **settings):
    given = {"kind": "vectors", "budget_total": 900, "per_round": 50} | settings
    return LabelBudget(make(given), left, task, waiting)


def test_expected_errors_are_the_mean_over_all_curves_by_their_likelihood():
    def error(e, b, n):
        return min(1.0, e * (n / 35) ** -b)

    grid = [(0.005 + 0.99 * i / 198, 0.02 + 1.48 * j / 99) for i in range(199) for j in range(100)]
    likelihood = []
    for e, b in grid:
        errors = [min(max(error(e, b, point.labels), 1e-9), 1 - 1e-9) for point in HARD]
        logs = [p.right * math.log(1 - x) + (p.held - p.right) * math.log(x) for p, x in zip(HARD, errors, strict=True)]
        likelihood.append(math.exp(sum(logs) / 2))
    found = expected_errors(HARD, [10, 85, 400])
    for n, value in zip((10, 85, 400), found, strict=True):
        mean = sum(w * error(e, b, n) for w, (e, b) in zip(likelihood, grid, strict=True)) / sum(likelihood)
        assert value == pytest.approx(mean, rel=1e-6)
    assert 1 > found[0] > found[1] > found[2] > 0
    assert expected_errors(HARD, [0, -3]) == [1.0, 1.0]
    assert expected_errors(HARD[:1], [100]) == []


def test_who_comes_later():
    assert purse(900).later == 1  # nobody knows, so one more
    assert purse(900, task=3).later == 1
    assert purse(900, waiting=(50, 60, 70)).later == 3
    assert purse(900, budget_tasks=3).later == 2
    assert purse(900, task=2, budget_tasks=3).later == 0
    assert purse(900, task=2, budget_tasks=3, waiting=(50,)).later == 1  # more than was said


def test_alike_tasks_have_equal_shares_with_curves_and_without():
    """Of 900 labels for three tasks alike each is to have 300: so many rounds, then no more."""
    for left, used in ((900 - n, n) for n in range(50, 700, 50)):
        here = purse(left, budget_tasks=3)
        assert here.needed_here(None, used) == (used + 25 <= 300)
        gains = here.gains([HARD], used - 15)
        if abs(used + 25 - 300) > 25:
            assert here.needed_here(gains, used) == (used < 300), used


def test_a_task_that_gains_less_has_fewer_rounds_and_one_that_gains_more_has_more():
    here, used = purse(400, task=1, budget_tasks=3), 200
    assert not here.needed_here(here.gains([HARD, EASY], used - 15), used)
    assert here.needed_here(here.gains([EASY, HARD], used - 15), used)


def test_the_last_task_and_one_before_small_pools_have_all_that_they_can_use():
    assert purse(50, task=2, budget_tasks=3).needed_here(None, 10_000)
    assert purse(200, waiting=(60, 90)).needed_here(Gains(0, 9), 10_000)  # these cannot use more than 150
    assert not purse(190, waiting=(60, 90)).needed_here(Gains(0, 9), 10_000)
    assert not purse(200, waiting=(60, 90), budget_tasks=4).needed_here(Gains(0, 9), 10_000)


@pytest.mark.parametrize("left", [0, 1, 2, 7, 49, 50, 51, 149, 150, 900])
def test_the_first_round_leaves_something_for_the_others(left):
    here = purse(left, budget_tasks=3)
    assert here.first_round == min(50, math.ceil(left / 3))
    assert here.next_round == min(50, left)


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


def test_without_held_out_items_tasks_have_equal_shares(tmp_path):
    with whole(tmp_path / "p", 24, 2, holdout=0, per_round=4) as project:
        finish(project)
        assert [project.store.used(task) for task in (0, 1)] == [12, 8]  # one more task may come
        assert project.state().used == 20
        why = [list(records(project, f"00{task}/*/query").values())[-1]["over"] for task in (0, 1)]
        assert why == [{"why": "later", "here": None, "later": None}] * 2
        project.add(blobs(2)[0])
        finish(project)
        assert project.store.used(2) == 2
    with whole(tmp_path / "q", 24, 2, holdout=0, per_round=4, budget_tasks=2) as project:
        finish(project)
        assert [project.store.used(task) for task in (0, 1)] == [12, 12]
        assert project.state().text == "everything is learned, and the budget of 24 labels is used."
        assert project.budget_text(project.state()) == ["The whole budget of 24 labels is used."]


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


def test_what_is_said_of_it(tmp_path):
    with whole(tmp_path / "p", 60, per_round=10, holdout=0.5) as project:
        assert project.budget_text(project.state()) == ["0 of 60 labels are used, 60 are left."]
        state = project.advance()
        assert (state.used, state.budget, state.left, state.rounds) == (0, 60, 60, 0)
        assert state.text == "task 1, round 1: 10 of 10 to be labelled."
        answer(project)
        project.advance()
        share = "Task 1 goes on: its learning curve is not known yet, so each task has the same share."
        assert project.budget_text(project.state()) == ["10 of 60 labels are used, 50 are left.", share]
        shown = accuacl("project", "status", project.directory).stdout
        assert "labels of task 1: 10; 1 task\n" in shown
        assert share in shown
        answer(project)
        project.advance()
        assert measured_curves(project.store, project.journal, 0)[0]
        used, worth = project.budget_text(project.state())[:2]
        assert used == "20 of 60 labels are used, 40 are left."
        assert worth.startswith("Another 10 labels would bring task 1 ")
        assert worth.endswith((", so task 1 goes on.", ", so task 1 ends with this round."))
        finish(project)
        last = project.budget_text(project.state())
        assert last[1].endswith(", so it has ended.")
        assert len(last) == 2
        project.add(blobs(1)[0])
        finish(project)
        assert project.budget_text(project.state())[-1].startswith("Of the tasks so far task ")


def test_the_page_says_the_same(tmp_path):
    with whole(tmp_path / "p", 60, per_round=10) as project:
        project.advance()
        answer(project)
        project.advance()
        said = " ".join(project.budget_text(project.state()))
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
        assert project.budget_text(project.advance()) == []
        finish(project)
        assert not any("over" in query for query in records(project, "*/query").values())
        assert len(records(project, "*/query")) == 2


def test_wrong_settings():
    with pytest.raises(InputError, match="--rounds and --budget-total exclude each other"):
        make({"kind": "vectors", "budget_total": 100, "rounds": 3})
    with pytest.raises(InputError, match="--budget-tasks says for how many tasks --budget-total is"):
        make({"kind": "vectors", "budget_tasks": 3})
