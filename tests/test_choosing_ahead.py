"""The next batch is chosen while people label: the picks and the journal are those of a project that does not."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from accuacl.experiments import checkpoints, read_steps
from accuacl.experiments.heads import kernel, pool, prepare_gram
from accuacl.experiments.heads.kernel import fit
from accuacl.experiments.heads.kernels import Term
from accuacl.labeling.project import people_steps
from scripted import answer, class_of, new_project, truth

COVERING = {"strategy": "coverage", "first_round": "coverage", "head": "linear", "rounds": 3, "sample": 30}


def journal_of(project):
    return [(step.kind, step.task, step.round, step.result) for step in read_steps(project.journal)]


def labelled(folder, ahead, act, **more):
    """A project of two tasks, in which somebody does something in each round; its journal."""
    with new_project(folder, 2, **COVERING | more) as project:
        person = project.store.people()[0]
        while not project.advance(ahead=ahead).finished:
            if act == "skip":
                answer(project, 2, skip=lambda pick: True)
            elif act == "new class":
                answer(project, 1, name=lambda project, item: f"new {item}")
            answer(project)
            if act == "correct":
                item = min(project.store.labels())
                project.store.correct(person, item, class_of(project, truth(project, item)), uuid.uuid4().hex)
        return journal_of(project)


@pytest.mark.parametrize("learner", ["kernel", "ridge", "er"])
def test_the_journal_is_the_same(tmp_path, learner):
    journals = [labelled(tmp_path / str(ahead), ahead, "label", learner=learner) for ahead in (False, True)]
    assert journals[0] == journals[1]


@pytest.mark.parametrize("act", ["skip", "new class", "correct"])
def test_it_is_the_same_whatever_people_do(tmp_path, act):
    journals = [labelled(tmp_path / str(ahead), ahead, act, learner="kernel") for ahead in (False, True)]
    assert journals[0] == journals[1]


@pytest.mark.parametrize(("act", "expected"), [("label", 0), ("new class", 0), ("correct", 0), ("skip", 4)])
def test_nothing_is_chosen_when_labels_are_there_unless_something_was_skipped(tmp_path, monkeypatch, act, expected):
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
    labelled(tmp_path / "p", True, act, learner="kernel")
    assert during.count(False) == expected
    assert during.count(True) == 4


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
