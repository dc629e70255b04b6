"""Labels to go: from a task's own learning curve, with an interval that holds the truth."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.experiments import read_steps
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, next_target, predicted_accuracy
from commands import accuacl
from effort import times
from scripted import answer, new_project

LABELS = (35, 85, 135, 185)


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
        expected = forecast(curve, next_target(curve))
        assert project.estimates().forecast == expected
        facts = read_steps(project.journal, "train")[-1].result["facts"]
    shown = " ".join(accuacl("project", "status", tmp_path / "p").stdout.split())
    assert f"task 1: {expected.text}" in shown
    assert f"each left out in turn, {facts['left_out_accuracy']:.0f} % are right" in shown
    assert "mean │" not in shown  # of one task it is the same number


def test_the_next_target_is_above_the_curve_too():
    """Where the last round was worse than the ones before by chance, what they have reached is no target."""
    curve = [Measured(30, 9, 12), Measured(70, 8, 12)]
    assert 100 * 8 / 12 < 70 < predicted_accuracy(curve, [70])[0][1]
    assert next_target(curve) > predicted_accuracy(curve, [70])[0][1]
    assert forecast(curve, next_target(curve)).labels != 0
