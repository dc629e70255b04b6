"""Labels to go: from a task's own learning curve, with an interval that holds the truth."""

from __future__ import annotations

import json
import math
import re
import uuid

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from accuacl import Features, select
from accuacl.experiments import read_steps
from accuacl.experiments.heads import candidates_of_kind, fit_with_pool
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, next_target, predicted_accuracy
from commands import accuacl
from effort import times
from scripted import answer, class_of, new_project

LABELS = (35, 85, 135, 185)
KERNELS = candidates_of_kind("vectors", [(0, 12)])


def measured(e, b, held, rng):
    """The same held-out items after each round; each is right from its own number of labels on."""
    items = rng.random(held)
    return [Measured(n, int((items > e * (n / 35) ** -b).sum()), held) for n in LABELS]


@pytest.mark.parametrize("held", [15, 100])
def test_the_interval_holds_the_truth(held):
    rng, inside, tries = np.random.default_rng(held), 0, times(60, 600)
    for _ in range(tries):
        e, b = rng.uniform(0.2, 0.8), rng.uniform(0.1, 1.0)
        found, true = forecast(measured(e, b, held, rng), 90), max(0.0, 35 * (e / 0.1) ** (1 / b) - 185)
        low = 20 * 185 * 0.97 if found.low is None else found.low * 0.97 - 1  # they are rounded
        inside += low <= true and (found.high is None or true <= found.high * 1.03 + 1)
    assert inside >= 0.95 * tries


def test_with_many_held_out_items_it_is_close():
    rng = np.random.default_rng(0)
    e, b = 0.5, 0.7  # 90 % are reached with 35 * 5^(1/0.7) = 349 labels
    found = forecast(measured(e, b, 20000, rng), 90)
    assert abs(found.labels - (349 - 185)) <= 30
    assert found.low < found.labels < found.high
    assert found.text == f"about {found.labels} more labels for 90 % ({found.low} to {found.high})"


def labels_no_vector_tells(project, item):
    """Classes that vectors say nothing of, so that there is something left to learn."""
    return f"class {item % 2}"


def test_the_forecast_of_a_project_knows_what_is_left_and_what_was_given(tmp_path):
    """Skipped, forgotten and unreadable items are not left; labels of the open round count at once."""
    options = {"learner": "ridge", "strategy": "uniform", "holdout": 0.5, "per_round": 12, "rounds": 4}
    with new_project(tmp_path / "p", 1, **options) as project:
        person = project.store.people()[0]

        def expected(left, since=0):
            curve = project.estimates().curve
            return forecast(curve, next_target(curve), left, since)

        def skip():
            project.store.skip(person, project.store.lease(person).item, uuid.uuid4().hex)

        project.advance()
        skip()
        for _ in range(2):
            answer(project, name=labels_no_vector_tells)
            project.advance()
        held = {item for step in read_steps(project.journal, "label") for item in step.result["held"]}
        learned = project.store.labels().keys() - held
        assert project.estimates().curve[-1].labels == len(learned)
        assert project.estimates().forecast == expected(60 - 24 - 1)
        item = project.store.lease(person).item
        project.store.label(person, item, class_of(project, "class 0"), uuid.uuid4().hex)
        skip()
        assert project.estimates().forecast == expected(33, since=1)
        asked = {pick.item for r in range(3) for pick in project.store.picks(0, r)}
        first, second, *_ = sorted(set(range(60)) - asked)
        made = project.tasks.folder_of(0) / "inputs.json"
        facts = json.loads(made.read_text())
        made.write_text(json.dumps(facts | {"bad": [first]}))
        assert project.estimates().forecast == expected(32, since=1)
        made.write_text(json.dumps(facts))
        project.forget([f"#{item}" for item in (*sorted(learned)[:5], second)])
        assert project.estimates().forecast == expected(32, since=1)


def test_what_cannot_be_foreseen_is_not_said():
    assert forecast([], 90) is None
    assert forecast([Measured(35, 10, 15)], 90) is None
    assert forecast([Measured(35, 0, 0), Measured(70, 0, 0)], 90) is None
    assert forecast([Measured(35, 5, 15), Measured(35, 6, 15)], 90) is None  # a round in which all was skipped
    flat = forecast([Measured(n, 50, 100) for n in LABELS], 80)
    assert (flat.labels, flat.high) == (None, None)
    assert flat.text.startswith("how many labels 80 % takes cannot be foreseen yet (at least ")
    assert Forecast(99, None, None, None).text == "how many labels 99 % takes cannot be foreseen yet"
    done = forecast([Measured(n, 100, 100) for n in LABELS], 90)
    assert (done.labels, done.low) == (0, 0)


def test_the_next_target():
    assert next_target([]) is None
    assert next_target([Measured(10, 0, 0)]) is None
    assert next_target([Measured(10, 9, 15)]) == 70  # 60 % are reached
    assert next_target([Measured(10, 15, 15)]) is None


def test_a_project_says_it(tmp_path):
    with new_project(tmp_path / "p", 1, learner="ridge", strategy="uniform", holdout=0.5, per_round=20) as project:
        while not project.advance().finished:
            answer(project, name=labels_no_vector_tells)
        accuracies = [moment.accuracy[0] for moment in project.estimates().history]
        assert [accuracy.count for accuracy in accuracies] == [10, 10]
        curve = [Measured(n, round(a.value / 10), 10) for n, a in zip((10, 30), accuracies, strict=True)]
        left = 60 - 40
        assert project.estimates().forecast == forecast(curve, next_target(curve), left)
        facts = read_steps(project.journal, "train")[-1].result["facts"]
    shown = " ".join(accuacl("project", "status", tmp_path / "p").stdout.split())
    assert f"task 1: {forecast(curve, next_target(curve), left).text}" in shown
    assert f"each left out in turn, {facts['left_out_accuracy']:.0f} % are right" in shown
    assert "mean │" not in shown  # of one task it is the same number


@st.composite
def states(draw):
    """The rounds of a task with the same held-out items each, what is left of its pool, and labels given since."""
    held = draw(st.sampled_from([1, 3, 6, 15, 15, 30, 200]))
    new = draw(st.lists(st.sampled_from([1, 10, 35, 50]), min_size=2, max_size=8))
    curve = [Measured(sum(new[: i + 1]), draw(st.integers(0, held)), held) for i in range(len(new))]
    left = draw(st.sampled_from([None, 0, 1, 5, 20, 60, 150, 400, 3000]))
    return curve, left, draw(st.sampled_from([0, 0, 1, 10, 49]))


@settings(max_examples=times(300, 3000), deadline=None)
@given(states())
@example(([Measured(35, 8, 15), Measured(85, 9, 15)], 1900, 0))
def test_no_forecast_contradicts_the_estimate_or_the_pool(state):
    curve, left, since = state
    target, accuracy = next_target(curve), 100 * curve[-1].right / curve[-1].held
    if target is None:
        return
    assert accuracy < target
    found = forecast(curve, target, left, since)
    text, labels = found.text, found.labels
    most = None if left is None else predicted_accuracy(curve, [curve[-1].labels + since + left])[0][1]
    assert (most is not None and most < target) == found.too_few
    if found.too_few:
        assert found.high is None
        assert not re.search(r"about \d+ more|near|foreseen", text)
        if leads := re.search(r"leads to about (\d+) %", text):
            assert round(accuracy) < int(leads[1]) < target
        else:
            assert text.endswith("% takes more data" if left == 0 else f"too few items for {target} %")
        return
    low, high = found.low or 0, math.inf if found.high is None else found.high
    assert low <= (math.inf if labels is None else labels) <= high
    if left is not None:
        assert found.low is not None or left > 20 * curve[-1].labels
        assert max(low, labels or 0, found.high or 0) <= left
    if said := re.match(r"about (\d+) more labels? for (\d+) %", text):
        assert (int(said[1]), int(said[2])) == (labels, target)
        assert labels > 0
        assert labels > max(10, curve[-1].labels / 10) or target - accuracy < 5
        assert found.high is None or text.endswith(f"({low} to {high})")
    else:
        assert re.match(
            "how many labels .* cannot be foreseen yet" if labels is None else "by its learning curve", text
        )


@pytest.mark.parametrize(
    ("future", "text"),
    [
        (
            Forecast(70, 1, 0, None, 900, 90.0, Measured(85, 9, 15)),
            "by its learning curve it should be near 70 %; its 15 held-out examples say 60 %",
        ),
        (
            Forecast(70, 0, 0, None, 0, 70.5, Measured(85, 0, 1)),
            "by its learning curve it should be near 70 %; its 1 held-out example says 0 %",
        ),
        (Forecast(70, 1, 0, None, 900, 90.0, Measured(85, 10, 15)), "about 1 more label for 70 %, perhaps many more"),
        (
            Forecast(90, 1800, 0, None, 1600, 89.7, Measured(385, 11, 15)),
            "the pool has too few items for 90 %: labelling the 1600 items left leads to about 89 %",
        ),
        (
            Forecast(80, None, 0, None, 1, 64.0, Measured(85, 7, 10)),
            "the pool has too few items for 80 %",
        ),
        (
            Forecast(70, 40, 0, None, 60, 71.0, Measured(85, 60, 100)),
            "about 40 more labels for 70 %, perhaps many more",
        ),
    ],
)
def test_a_forecast_as_a_sentence(future, text):
    assert future.text == text


def test_the_pool_is_not_promised_more_labels_than_it_has():
    curve = [Measured(n, right, 100) for n, right in zip(LABELS, (40, 62, 71, 77), strict=True)]
    wanted = forecast(curve, 90)
    assert wanted.labels > 100
    enough, few = (forecast(curve, 90, left) for left in (5000, 100))
    assert enough.text == wanted.text
    assert few.most == pytest.approx(predicted_accuracy(curve, [LABELS[-1] + 100])[0][1])
    assert few.text == (
        f"the pool has too few items for 90 %: labelling the 100 items left leads to about {few.most:.0f} %"
    )
    assert forecast(curve, 90, 0).text == "nothing is left to label; 90 % takes more data"


def test_a_forecast_counts_down_while_people_label():
    curve = [Measured(n, right, 20000) for n, right in zip(LABELS, (8000, 12400, 14200, 15400), strict=True)]
    before, after = (forecast(curve, 90, 5000 - since, since) for since in (0, 100))
    assert before.labels - 110 <= after.labels <= before.labels - 90
    assert after.most == before.most
    done = forecast(curve, 90, 0, 5000)
    assert (done.labels, done.too_few, done.in_doubt) == (0, False, True)


def test_intervals_hold_the_truth_with_the_kernel_head():
    """Streams of classes in clusters, chosen by coverage, learned with the pool: the accuracy two rounds later."""
    inside, tries = 0, times(20, 150)
    for seed in range(tries):
        rng = np.random.default_rng(seed)
        centres, spread = rng.normal(size=(8, 12)), rng.uniform(0.8, 1.6)

        def drawn(count, rng=rng, centres=centres, spread=spread):
            labels = rng.integers(8, size=count)
            return (centres[labels] + spread * rng.normal(size=(count, 12))).astype(np.float32), labels

        (pool, truth), (held, answers), (test, known) = drawn(300), drawn(25), drawn(1500)
        taught, curve, right = np.empty(0, np.int64), [], 0.0
        for _ in range(6):
            left = np.setdiff1d(np.arange(300), taught)
            seen = [Features(pool[rows], np.ones((len(rows), 1), np.float32)) for rows in (left, taught)]
            picked = select("coverage", pool=seen[0], budget=12, labelled=seen[1] if len(taught) else None)
            taught = np.append(taught, left[picked.indices])
            rest = np.setdiff1d(np.arange(300), taught)
            head = fit_with_pool(pool[taught], truth[taught], [pool[rest]], 8, candidates=KERNELS)
            curve.append(Measured(len(taught), int((head.logits(held).argmax(1) == answers).sum()), 25))
            right = 100 * float((head.logits(test).argmax(1) == known).mean())
        low, _, high = predicted_accuracy(curve[:4], [curve[5].labels])[0]
        inside += low - 0.5 <= right <= high + 0.5
    assert inside >= 0.95 * tries


def test_the_next_target_is_above_the_curve_too():
    """Where the last round was worse than the ones before by chance, what they have reached is no target."""
    curve = [Measured(30, 9, 12), Measured(70, 8, 12)]
    assert 100 * 8 / 12 < 70 < predicted_accuracy(curve, [70])[0][1]
    assert next_target(curve) > predicted_accuracy(curve, [70])[0][1]
    assert forecast(curve, next_target(curve)).labels != 0
