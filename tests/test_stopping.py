"""Labels to go: from a task's own learning curve, with an interval that holds the truth."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl import Features, select
from accuacl.experiments import read_steps
from accuacl.experiments.heads import candidates_of_kind, fit_with_pool
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, next_target, predicted_accuracy
from commands import accuacl
from effort import times
from scripted import answer, new_project

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
    def name(project, item):  # classes that vectors say nothing of, so that there is something left to learn
        return f"class {item % 2}"

    with new_project(tmp_path / "p", 1, learner="ridge", strategy="uniform", holdout=0.5, per_round=20) as project:
        while not project.advance().finished:
            answer(project, name=name)
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


def test_what_is_not_reached_takes_a_label():
    """An estimate of 60 % beside "about 0 more labels for 70 %" cannot be, however the rounds before were."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        held = int(rng.integers(3, 40))
        curve = [Measured(int(n), int(rng.integers(held + 1)), held) for n in np.cumsum(rng.integers(1, 60, size=4))]
        target = next_target(curve)
        found = forecast(curve, target, int(rng.integers(200))) if target else None
        if found:
            assert 100 * curve[-1].right / held < target
            assert found.labels is None or found.labels > 0
            assert found.high is None or found.high >= (found.labels or 0) >= (found.low or 0)


def test_the_pool_is_not_promised_more_labels_than_it_has():
    curve = [Measured(n, right, 100) for n, right in zip(LABELS, (40, 62, 71, 77), strict=True)]
    wanted = forecast(curve, 90)
    assert wanted.labels > 100
    enough, few = (forecast(curve, 90, left) for left in (5000, 100))
    assert enough.text == wanted.text
    assert few.most == pytest.approx(predicted_accuracy(curve, [LABELS[-1] + 100])[0][1])
    assert few.text == (
        f"the pool has too few items for 90 %: labelling the 100 that are left leads to about {few.most:.0f} %"
    )
    assert forecast(curve, 90, 0).text == "all items are labelled; 90 % takes more data"


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
