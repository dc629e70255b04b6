"""What the dashboard says follows from what is known, and nothing is said that the held-out items cannot tell."""

from __future__ import annotations

import numpy as np
import pytest

from accuacl.labeling.project import make
from accuacl.labeling.project.advice import Doubts, advise
from accuacl.labeling.project.estimates import (
    ClassEstimate,
    Estimates,
    RoundAccuracy,
    TaskEstimate,
    TrainingGain,
    by_class,
    change,
    exact,
    mean,
    mean_over_classes,
    share,
    training_gain,
)
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, predicted_accuracy

NAMES = {0: "cat", 1: "dog", 2: "tiger"}
NOTHING = Estimates((), None, None, (), {}, {}, {})


def said(estimates=NOTHING, gain=None, classes=(), doubts=Doubts(), left=0, **settings):  # noqa: B008
    settings = make({"kind": "vectors", "learner": "er", "per_round": 20, "memory": 50} | settings)
    return advise(settings, estimates, gain, classes, NAMES, doubts, left)


def texts(*arguments, **more):
    return [one.text for one in said(*arguments, **more)]


def with_tasks(*tasks, **more):
    return Estimates(tuple(tasks), None, None, (), more.pop("confusion", {}), more.pop("labels", {}), {}, **more)


def fallen(before, now, lost, count, task=2):
    return TaskEstimate(task, share(before, count), share(now, count), change(lost, now - before + lost, count))


def test_before_there_is_anything_nothing_is_said():
    assert said() == []


def test_a_task_that_fell_is_said_with_both_numbers_and_what_to_do():
    estimates = with_tasks(fallen(81, 12, 70, 100), labels={0: 90, 1: 30})
    first = said(estimates)[0]
    assert first.text == "Task 3 fell from 81 to 12 %, on 100 held-out examples."
    assert first.do.startswith("Add data like it as the next task and label 20 of them, or raise the memory, ")
    assert first.do.endswith("so that the tasks to come replay all 120 labels, not 50.")
    assert (first.action, first.value) == ("memory", 120)
    assert (first.tone, dict(first.about)) == ("bad", {"task": "2", "held": "1"})
    assert "memory" not in said(estimates, memory=500)[0].do  # everything is replayed already
    assert "memory" not in said(estimates, learner="ridge")[0].do


def test_a_fall_that_may_be_chance_is_said_to_be_that():
    found = said(with_tasks(fallen(9, 7, 2, 12)))
    assert found[0].text == "Task 3 may have fallen, from 75 to 58 %, on 12 held-out examples."
    assert {one.tone for one in found} == {"plain"}


@pytest.mark.parametrize(("before", "now", "lost", "count"), [(100, 95, 5, 100), (50, 60, 0, 100)])
def test_a_small_fall_and_none_are_not_said(before, now, lost, count):
    found = texts(with_tasks(fallen(before, now, lost, count)))
    assert not [text for text in found if "fell" in text or "may have" in text]
    assert f"No earlier task has measurably fallen, on {count} held-out examples." in found


def test_only_the_worst_three_tasks_are_named():
    tasks = [fallen(90, 50 - 5 * t, 40 + 5 * t, 100, t) for t in range(5)]
    assert [text.split()[1] for text in texts(with_tasks(*tasks)) if "fell" in text] == ["5", "4", "3"]


@pytest.mark.parametrize(
    ("gain", "text", "tone"),
    [
        (
            TrainingGain(56.2, 88.7, 12),
            "The last training raised the accuracy from 56 to 89 %, on 12 held-out examples.",
            "good",
        ),
        (
            TrainingGain(88.7, 56.2, 12),
            "The last training lowered the accuracy from 89 to 56 %, on 12 held-out examples.",
            "bad",
        ),
        (TrainingGain(None, 56.2, 1), "After the last training the accuracy is 56 %, on 1 held-out example.", "plain"),
        (
            TrainingGain(50, 50, 2),
            "The last training left the accuracy at 50 %, on 2 held-out examples.",
            "plain",
        ),
    ],
)
def test_what_the_last_training_changed(gain, text, tone):
    assert [(one.text, one.tone) for one in said(gain=gain)] == [(text, tone)]


def test_the_pair_that_is_confused_most():
    found = said(with_tasks(confusion={(0, 0): 5, (0, 1): 2, (1, 0): 3, (1, 1): 1}))
    assert [one.text for one in found] == ["3 of 4 held-out examples of “dog” are taken for “cat”."]
    assert dict(found[0].about) == {"held": "1", "label": "1", "guess": "0"}
    assert said(with_tasks(confusion={(0, 0): 5, (0, 1): 1})) == []  # once is nothing


def test_classes_without_labels_and_with_few():
    classes = [ClassEstimate(0, 40, None), ClassEstimate(1, 0, None), ClassEstimate(2, 3, None)]
    assert texts(classes=classes) == ["No label yet: “dog”.", "Few labels: “tiger” 3."]
    assert texts(classes=[ClassEstimate(0, 0, None)]) == []  # nothing has been labelled at all


def test_at_most_three_classes_are_named():
    names = {id: f"animal {id}" for id in range(9)}
    settings = make({"kind": "vectors"})

    def about(*labels):
        classes = [ClassEstimate(id, count, None) for id, count in enumerate(labels)]
        (advice,) = advise(settings, NOTHING, None, classes, names, Doubts(), 0)
        return advice.text

    assert about(40, 0) == "No label yet: “animal 1”."
    assert about(40, 0, 0, 0) == "No label yet: “animal 1”, “animal 2”, “animal 3”."
    assert about(40, *5 * [0]) == "No label yet: “animal 1”, “animal 2”, “animal 3” and 2 more."
    assert about(40, 3, 3, 3, 3) == "Few labels: “animal 1” 3, “animal 2” 3, “animal 3” 3 and 1 more."


def test_disagreement_and_many_skips():
    found = said(doubts=Doubts(1, 9, 40))
    assert [one.text for one in found] == ["People disagree about 1 example.", "9 of 40 examples were skipped."]
    assert [dict(one.about) for one in found] == [{"show": "settle"}, {"show": "skipped"}]
    assert said(doubts=Doubts(0, 9, 60)) == said(doubts=Doubts(0, 9, 19)) == []


@pytest.mark.parametrize(
    ("labels", "left", "do"),
    [
        (60, 100, "Its budget has 100 left, which is enough."),
        (60, 10, "Its budget has 10 left: ask for one more round, or add more of its data as the next task."),
        (None, 10, "Its budget has 10 labels left."),
        (0, 0, ""),
    ],
)
def test_the_forecast_is_compared_with_the_budget(labels, left, do):
    task = TaskEstimate(1, None, share(80, 100), None)
    (found,) = said(with_tasks(task, forecast=Forecast(90, labels, 5, None)), left=left)
    assert found.text == f"Task 2: {Forecast(90, labels, 5, None).text}."
    assert found.do == do


def about_forecast(future, left, now=1, **settings):
    """The advice about task 2, measured with 80 of 100; now: the index of the task whose budget has so many left."""
    estimates = with_tasks(TaskEstimate(1, None, share(80, 100), None), forecast=future)
    settings = make({"kind": "vectors", "learner": "er", "per_round": 20} | settings)
    (found,) = advise(settings, estimates, None, [], NAMES, Doubts(), left, now)
    assert found.text == f"Task 2: {future.text}."
    return found.do, found.action, found.value


def test_a_pool_that_falls_short_needs_more_data_and_no_round():
    """People who skip use up the pool, not the budget."""
    more = ("Add more of its data as the next task.", "", 0)
    last = Measured(100, 80, 100)
    assert about_forecast(Forecast(90, 60, 5, None, 30, 84.0, last), 45) == more
    assert about_forecast(Forecast(90, 60, 5, None, 0, 80.0, last), 45) == more
    assert about_forecast(Forecast(90, 60, 5, None, 0, 80.0, last), 0, now=2) == more
    assert about_forecast(Forecast(90, 60, 5, None, 0, 80.0, last), 0, budget_total=100) == ("", "", 0)


def test_the_budget_is_that_of_the_task_that_is_forecast():
    future = Forecast(90, 60, 5, None, 400, 95.0, Measured(100, 80, 100))
    assert about_forecast(future, 48)[1:] == ("round", 1)
    assert about_forecast(future, 48, now=2) == about_forecast(future, 100, now=2) == ("", "", 0)
    few = Forecast(90, 20, 5, None, 25, 91.0, Measured(100, 80, 100))
    assert about_forecast(few, 48) == ("Its budget has 25 left, which is enough.", "", 0)


def test_no_budget_is_called_enough_where_the_held_out_items_contradict_the_curve():
    future = Forecast(90, 4, 0, None, 400, 95.0, Measured(100, 80, 100))
    assert future.in_doubt
    assert about_forecast(future, 1) == ("Its budget has 1 label left.", "", 0)
    assert about_forecast(future, 0) == ("", "", 0)


def test_how_little_is_known_of_few_held_out_items():
    few, many = (TaskEstimate(0, None, share(n // 2, n), None) for n in (12, 30))
    (text,) = texts(with_tasks(few))
    assert text == "Accuracies are known to about ±25 points: only 12 examples of task 1 are held out."
    assert texts(with_tasks(many)) == []


def test_by_class_is_what_counting_gives():
    rng = np.random.default_rng(0)
    pairs = rng.integers(3, size=(60, 2))
    confusion = {(a, b): int(((pairs == (a, b)).all(axis=1)).sum()) for a in range(3) for b in range(3)}
    estimates = with_tasks(confusion=confusion, labels={0: 5})
    found = by_class(estimates, [0, 1, 2, 3])
    for one in found[:3]:
        mine = pairs[pairs[:, 0] == one.id]
        assert one.accuracy == share(int((mine[:, 1] == one.id).sum()), len(mine))
    assert (found[3].accuracy, [one.labels for one in found]) == (None, [5, 0, 0, 0])
    average = mean_over_classes(found)
    assert average.value == pytest.approx(np.mean([one.accuracy.value for one in found[:3]]))
    assert average.count == 60
    assert mean_over_classes(found[3:]) is None
    assert mean_over_classes(found[2:]) == found[2].accuracy


def test_one_number_has_one_interval():
    one = TaskEstimate(0, None, share(8, 10), None)
    two = TaskEstimate(1, None, share(9, 10), None)
    average = mean([exact(8, 10), exact(9, 10)])
    assert Estimates((one,), mean([exact(8, 10)]), None, (), {}, {}, {}).overall == one.now
    assert Estimates((one, two), average, None, (), {}, {}, {}).overall == average
    assert NOTHING.overall is None


def test_the_gain_weighs_tasks_by_their_held_out_items():
    def moment(*counts):
        return RoundAccuracy(0, 0, tuple(share(*pair) if pair else None for pair in counts))

    assert training_gain([]) is None
    assert training_gain([moment(None)]) is None
    assert training_gain([moment((3, 4), (0, 12)), moment((4, 4), (4, 12))]) == TrainingGain(100 * 3 / 16, 50.0, 16)
    others_held_out_now = [moment((3, 4)), moment((3, 4), (6, 12))]
    assert training_gain(others_held_out_now) == TrainingGain(None, 100 * 9 / 16, 16)


def test_the_curve_goes_where_the_forecast_says():
    curve = [Measured(n, right, 4000) for n, right in ((35, 2000), (85, 2850), (135, 3120), (185, 3260))]
    found = forecast(curve, 90)
    at = [185 + n for n in (found.low, found.labels, found.high)]
    (_, _, high), (_, middle, _), (low, _, _) = predicted_accuracy(curve, at)
    assert (low, middle, high) == pytest.approx((90, 90, 90), abs=0.6)
    bounds = np.array(predicted_accuracy(curve, [35, 85, 185, 1000]))
    assert (np.diff(bounds, axis=1) >= 0).all()
    assert (np.diff(bounds, axis=0) > 0).all()  # more labels, more accuracy
    assert bounds[0, 1] == pytest.approx(50, abs=3)
    assert predicted_accuracy([], [10]) == predicted_accuracy(curve[:1], [10]) == []
