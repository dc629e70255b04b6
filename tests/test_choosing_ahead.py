"""The next batch is chosen while people label: the picks and the journal are those of a project that does not."""

from __future__ import annotations

import itertools
import uuid

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from accuacl.experiments import checkpoints, read_steps
from accuacl.experiments.heads import kernel, pool, prepare_gram
from accuacl.experiments.heads.kernel import fit
from accuacl.experiments.heads.kernels import Term
from accuacl.labeling.project import Project, make, people_steps
from accuacl.labeling.web.trainer import Trainer
from effort import examples
from scripted import SMALL, answer, blobs, class_of, new_project, truth

ACTS = ["label", "skip", "skip last", "undo", "forget", "merge", "new class", "correct", "leave"]
COVERING = {"strategy": "coverage", "first_round": "coverage", "head": "linear", "rounds": 3, "sample": 30}


def journal_of(project):
    return [(step.kind, step.task, step.round, step.result) for step in read_steps(project.journal)]


def labelled(folder, ahead, act, **more):
    """A project of two tasks, in which somebody does something in each round; its journal.

    act: the same in all rounds, or a list of acts for each round, from the first again after the last.
    """
    settings = SMALL | COVERING | more
    if "budget_total" in more:
        settings.pop("rounds")
    rounds = itertools.cycle([[act]] if isinstance(act, str) else act)
    with Project.create(folder, make(settings)) as project:
        project.store.add_person("Ada")
        for task in range(2):
            project.add(blobs(task)[0])
        while not project.advance(ahead=ahead).finished:
            acts = next(rounds)
            for each in acts:
                do(project, each)
            if "leave" not in acts:
                answer(project)
            if "correct" in acts:
                item, person = min(project.store.labels()), project.store.people()[0]
                project.store.correct(person, item, class_of(project, truth(project, item)), uuid.uuid4().hex)
        return journal_of(project)


def do(project, act):
    """What somebody does while a round is labelled."""
    if act == "skip":
        answer(project, 2, skip=lambda pick: True)
        project.choose_ahead()  # as the server does every two seconds
    elif act == "skip last":
        answer(project, max(0, project.store.status().left - 1))
        answer(project, skip=lambda pick: True)
    elif act == "undo":
        [item] = answer(project, 1, skip=lambda pick: True) or [None]
        project.choose_ahead()
        if item is not None:
            project.store.undo(project.store.people()[0], uuid.uuid4().hex)
            assert item not in project.store.skipped(0, 0)
            project.choose_ahead()
    elif act == "forget":
        answer(project, 3)
        project.forget([str(min(project.store.labels()))])
        project.choose_ahead()
    elif act == "merge":
        answer(project, 3)
        living = [one.id for one in project.store.classes() if one.merged_into is None]
        if len(living) > 2:
            project.store.merge_class(living[0], living[1])
    elif act == "new class":
        answer(project, 1, name=lambda project, item: f"new {item}")
    elif act == "leave":  # the last ones, without which the round may be closed
        answer(project, max(0, project.store.status().left - 2))


@pytest.mark.parametrize("learner", ["kernel", "ridge", "er"])
def test_the_journal_is_the_same(tmp_path, learner):
    journals = [labelled(tmp_path / str(ahead), ahead, "label", learner=learner) for ahead in (False, True)]
    assert journals[0] == journals[1]


@pytest.mark.parametrize("act", ["skip", "skip last", "undo", "new class", "correct", "forget", "merge"])
def test_it_is_the_same_whatever_people_do(tmp_path, act):
    journals = [labelled(tmp_path / str(ahead), ahead, act, learner="kernel") for ahead in (False, True)]
    assert journals[0] == journals[1]


@given(st.lists(st.lists(st.sampled_from(ACTS), max_size=3), min_size=1, max_size=5))
@example([["skip", "forget"], ["leave"], ["new class", "undo", "leave"], ["merge", "skip last"]])
@examples(3, 60)
def test_it_is_the_same_whatever_people_do_in_any_order(tmp_path_factory, acts):
    folder = tmp_path_factory.mktemp("p")
    journals = [
        labelled(folder / str(ahead), ahead, acts, learner="kernel", pool_learning="self", close_at=0.7)
        for ahead in (False, True)
    ]
    assert journals[0] == journals[1]


@pytest.mark.parametrize("learner", ["kernel", "ridge"])
@pytest.mark.parametrize("act", ["label", "skip"])
def test_a_budget_is_shared_as_without_it(tmp_path, act, learner):
    more = {"learner": learner, "budget_total": 50, "budget_tasks": 2}
    journals = [labelled(tmp_path / str(ahead), ahead, act, **more) for ahead in (False, True)]
    assert journals[0] == journals[1]


@pytest.mark.parametrize(
    ("act", "then", "before", "more"),
    [
        ("label", 0, 4, {}),
        ("new class", 0, 4, {}),
        ("correct", 0, 4, {}),
        ("merge", 0, 4, {}),
        ("skip", 0, 8, {}),
        ("forget", 0, 8, {}),
        ("skip last", 4, 4, {}),
        ("label", 0, 6, {"budget_total": 50, "budget_tasks": 2}),  # rounds of 8, 8, 8 and 1
        (
            "skip",
            0,
            40,
            {"budget_total": 50, "budget_tasks": 2},
        ),  # a skip costs nothing, so there are many rounds
    ],
)
def test_nothing_is_chosen_when_labels_are_there_unless_the_last_was_skipped(
    tmp_path, monkeypatch, act, then, before, more
):
    """Two rounds after the first in each of two tasks: they are chosen when the round before is given out."""
    during: list[bool] = []
    waiting = [False]

    def choose(config, state, strategy, *more):
        if strategy == "coverage" and state.round:
            during.append(waiting[0])
        return people_choose(config, state, strategy, *more)

    def choose_ahead(steps):
        waiting[0] = True
        try:
            ahead(steps)
        finally:
            waiting[0] = False

    people_choose, ahead = people_steps.choose, people_steps.PeopleSteps.choose_ahead
    monkeypatch.setattr(people_steps, "choose", choose)
    monkeypatch.setattr(people_steps.PeopleSteps, "choose_ahead", choose_ahead)
    labelled(tmp_path / "p", True, act, learner="kernel", **more)
    assert (during.count(False), during.count(True)) == (then, before)


def test_a_server_chooses_again_after_a_skip(tmp_path):
    with new_project(tmp_path / "p", 1, **COVERING, learner="kernel") as project:
        trainer = Trainer(project, grace=0)
        trainer._check()
        chosen = project._ahead._picked
        trainer._check()
        assert project._ahead._picked is chosen
        answer(project, 1, skip=lambda pick: True)
        trainer._check()
        assert project._ahead._picked is not chosen
        chosen = project._ahead._picked
        answer(project)
        trainer._check()
        assert read_steps(project.journal, "query")[-1].result["ids"] == chosen["ids"]


def test_weights_that_were_just_written_are_not_read_again(tmp_path, monkeypatch):
    read = []
    load = checkpoints.load_tensors
    monkeypatch.setattr(checkpoints, "load_tensors", lambda *given: read.append(given) or load(*given))
    with new_project(tmp_path / "p", 1, **COVERING, learner="kernel") as project:
        while not project.advance(ahead=True).finished:
            answer(project)
        assert len(read_steps(project.journal, "train")) == 3
    assert not read


def test_the_pool_is_not_read_for_labels_that_learn_nothing_from_it(tmp_path, monkeypatch):
    counts = []
    train = people_steps.Learning.train

    def noticed(learning, state, model, memory, on_epoch, pools=()):
        counts.append((len(state.ids) + len(memory), len(pools)))
        return train(learning, state, model, memory, on_epoch, pools)

    monkeypatch.setattr(people_steps.Learning, "train", noticed)
    monkeypatch.setattr(pool, "UP_TO", 12)
    labelled(tmp_path / "p", True, "label", learner="kernel", pool_learning="self")
    assert {labels <= 12 for labels, _ in counts} == {True, False}
    assert all(bool(pools) == (labels <= 12) for labels, pools in counts)


def test_a_kernel_that_was_prepared_changes_no_bit(monkeypatch):
    monkeypatch.setattr(kernel, "CHOSEN_ON", 20)
    rng = np.random.default_rng(0)
    x, labels, ids = rng.normal(size=(60, 5)).astype(np.float32), np.arange(60) % 3, rng.permutation(60)
    terms = (Term("linear", (0, 5)), Term("gaussian", (0, 5)))
    plain = fit(x, labels, candidates=[terms], ids=ids)
    prepare_gram(x[np.argsort(ids)], terms)
    computed = []
    monkeypatch.setattr(kernel, "_Cosines", lambda rows: computed.append(cosines(rows)) or computed[-1])
    prepared = fit(x, labels, candidates=[terms], ids=ids)
    assert not any(each.by_block for each in computed)  # the rows by which the ridge is chosen are among them
    np.testing.assert_array_equal(plain.coefficients, prepared.coefficients)
    np.testing.assert_array_equal(fit(x[::-1], labels[::-1], candidates=[terms], ids=ids[::-1]).bias, plain.bias)
    other = fit(x + 1, labels, candidates=[terms], ids=ids)
    assert not np.array_equal(other.coefficients, plain.coefficients)


cosines = kernel._Cosines
