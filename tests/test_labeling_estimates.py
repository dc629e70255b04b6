"""Estimates from held-out labels: their intervals hold, and they follow what people correct."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from accuacl.base.progress import ignore
from accuacl.labeling.project import by_class
from accuacl.labeling.project.estimates import change, exact, mean, share
from scripted import answer, blobs, class_of, finish, new_project, records, truth


@pytest.mark.parametrize("n", [6, 15, 30])
@pytest.mark.parametrize("p", [0.3, 0.7, 0.9])
def test_an_accuracy_lies_in_its_interval_as_often_as_it_says(n, p):
    right = np.random.default_rng(0).binomial(n, p, 4000)
    found = [share(int(k), n) for k in right]
    assert np.mean([e.low <= 100 * p <= e.high for e in found]) > 0.91
    assert np.mean([e.value for e in found]) == pytest.approx(100 * p, abs=1)  # unbiased


@pytest.mark.parametrize("n", [6, 15, 40])
@pytest.mark.parametrize(("lost", "gained"), [(0.0, 0.0), (0.1, 0.0), (0.3, 0.05), (0.1, 0.1)])
def test_forgetting_lies_in_its_interval_as_often_as_it_says(n, lost, gained):
    draws = np.random.default_rng(0).multinomial(n, [lost, gained, 1 - lost - gained], 4000)
    found = [change(int(a), int(b), n) for a, b, _ in draws]
    assert np.mean([e.low <= 100 * (lost - gained) <= e.high for e in found]) > 0.93
    assert np.mean([e.value for e in found]) == pytest.approx(100 * (lost - gained), abs=1)


@pytest.mark.parametrize(("n", "level"), [(6, 0.92), (15, 0.93), (30, 0.94)])  # six are very few
@pytest.mark.parametrize("ps", [(0.9, 0.6, 0.8), (0.97, 0.98, 0.99), (0.5,) * 8])
def test_the_mean_accuracy_lies_in_its_interval(n, level, ps):
    rng = np.random.default_rng(0)
    by_count = [exact(k, n) for k in range(n + 1)]
    found = [mean([by_count[rng.binomial(n, p)] for p in ps]) for _ in range(3000)]
    assert np.mean([e.low <= 100 * np.mean(ps) <= e.high for e in found]) > level
    assert found[0].count == n * len(ps)


@pytest.mark.parametrize("falls", [((0.2, 0.0), (0.3, 0.1)), ((0.0, 0.0), (0.05, 0.0)), ((0.4, 0.0),) * 6])
def test_the_mean_forgetting_lies_in_its_interval(falls):
    rng, found = np.random.default_rng(0), []
    for _ in range(3000):
        drawn = [rng.multinomial(15, [a, b, 1 - a - b]) for a, b in falls]
        found.append(mean([change(int(d[0]), int(d[1]), 15) for d in drawn]))
    true = 100 * np.mean([a - b for a, b in falls])
    assert np.mean([e.low <= true <= e.high for e in found]) > 0.92


def test_nothing_held_out_gives_no_estimate(tmp_path):
    with new_project(tmp_path / "p", 2, holdout=0) as project:
        finish(project)
        found = project.estimates()
        assert (found.tasks, found.accuracy, found.forgetting, found.confusion) == ((), None, None, {})
        assert [moment.accuracy for moment in found.history] == [(None,), (None,), (None, None), (None, None)]
        assert sum(found.labels_by_class.values()) == sum(found.labels_by_person.values()) == 32


def test_estimates_grow_with_the_project(tmp_path):
    with new_project(tmp_path / "p", 1, per_round=20, holdout=0.5) as project:
        project.advance()
        assert project.estimates().accuracy is None
        finish(project)
        found = project.estimates()
        assert [one.task for one in found.tasks] == [0]
        assert found.tasks[0].learned == found.tasks[0].now
        assert found.tasks[0].forgetting is None
        assert found.forgetting is None
        project.add(blobs(1)[0])
        finish(project)
        found = project.estimates()
        assert [one.now.count for one in found.tasks] == [10, 10]
        one = found.tasks[0]
        assert one.forgetting.value == pytest.approx(one.learned.value - one.now.value)
        assert found.forgetting.value == one.forgetting.value
        assert found.accuracy.value == pytest.approx(np.mean([t.now.value for t in found.tasks]))
        assert [(m.task, m.round, len(m.accuracy)) for m in found.history] == [
            (0, 0, 1),
            (0, 1, 1),
            (1, 0, 2),
            (1, 1, 2),
        ]
        assert [len(m.forgetting) for m in found.history] == [0, 0, 1, 1]
        learned = found.history[1].accuracy[0]
        for moment in found.history[2:]:  # by round; the last one is what has been forgotten by now
            assert moment.forgetting[0].value == pytest.approx(learned.value - moment.accuracy[0].value)
        assert found.history[-1].forgetting == (one.forgetting,)
        assert sum(found.confusion.values()) == 20
        assert sum(n for (a, b), n in found.confusion.items() if a == b) == sum(
            round(t.now.value / 10) for t in found.tasks
        )


def test_forgetting_by_class_is_by_hand_that_of_the_held_out_items_of_earlier_tasks(tmp_path):
    """Class b is in all three tasks, a0 to a2 in one each."""

    def name(project, item):
        task, number = project.tasks.find(item).index, int(truth(project, item).split()[1])
        return "b" if number % 2 else f"a{task}"

    with new_project(tmp_path / "p", 3, per_round=20, holdout=0.5, memory=2) as project:
        while not project.advance().finished:
            answer(project, name=name)
        found, labels = project.estimates(), project.store.labels()
        held = {t: records(project, f"00{t}/*/label") for t in range(3)}
        said = [
            {item: guess for item, guess, _ in step["predictions"]}
            for t in range(3)
            for step in records(project, f"00{t}/evaluate").values()
        ]
        falls: dict[int, list[int]] = {}
        for t in (0, 1):
            for item in [item for step in held[t].values() for item in step["held"]]:
                right = [guesses[item] == labels[item] for guesses in (said[t], said[2])]
                falls.setdefault(labels[item], []).append(int(right[0]) - int(right[1]))
        assert {id: found.class_forgetting[id].value for id in falls} == pytest.approx(
            {id: 100 * np.mean(values) for id, values in falls.items()}
        )
        assert any(one.value for one in found.class_forgetting.values())
        assert set(found.class_forgetting) == {class_of(project, c) for c in ("a0", "a1", "b")}
        assert found.class_forgetting[class_of(project, "b")].count == len(falls[class_of(project, "b")])
        rows = by_class(found, [c.id for c in project.store.classes()])
        assert {row.id for row in rows if row.forgetting} == set(falls)
        right = sum(said[2][item] == labels[item] for item in said[2])
        assert found.over_examples == share(right, len(said[2]))


def test_estimates_are_near_the_truth(tmp_path):
    """Many held-out labels: the estimate and the accuracy on everything else must agree."""
    with new_project(tmp_path / "p", 0, per_round=150, holdout=0.6, rounds=2, epochs=3) as project:
        source, names = blobs(0, 600, d=2)
        project.add(source)
        while not project.advance().finished:
            person = project.store.people()[0]
            while (pick := project.store.lease(person)) is not None:
                project.store.label(person, pick.item, class_of(project, names[pick.item]), uuid.uuid4().hex)
        from accuacl.labeling.project.exporting import export
        from accuacl.labeling.project.loader import load

        export(project, tmp_path / "e", None, "text", ignore)
        asked = set(project.store.labels())
        rest = [i for i in range(600) if i not in asked]
        said, _ = load(tmp_path / "e").predict(list(source.vectors[rest]))
        true = 100 * np.mean([a == names[i] for a, i in zip(said, rest, strict=True)])
        found = project.estimates().accuracy
        assert found.count == 90
        assert found.low - 2 <= true <= found.high + 2


def test_corrected_held_out_labels_change_the_estimate_at_once(tmp_path):
    with new_project(tmp_path / "p", 1, per_round=20, holdout=0.5) as project:
        finish(project)
        before = project.estimates().accuracy
        item = records(project, "000/000/label")["000/000/label"]["held"][0]
        right = truth(project, item)
        wrong = class_of(project, "something else")
        project.store.correct(project.store.people()[0], item, wrong, uuid.uuid4().hex)
        after = project.estimates()
        assert after.accuracy.value in (before.value - 10, before.value)
        assert any(pair[0] == wrong for pair in after.confusion)
        project.store.merge_class(wrong, class_of(project, right))
        assert project.estimates().accuracy == before


@pytest.mark.parametrize("count", [1, 2, 15, 200])
def test_intervals_of_shares_are_those_of_scipy(count):
    from scipy.stats import binomtest

    for right in {0, 1, count // 2, count - 1, count}:
        for ours, method in ((share, "wilson"), (exact, "exact")):
            found, theirs = ours(right, count), binomtest(right, count).proportion_ci(0.95, method)
            assert (found.low, found.high) == pytest.approx((100 * theirs.low, 100 * theirs.high), abs=1e-8)
