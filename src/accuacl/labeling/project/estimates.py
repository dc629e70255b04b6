"""How good a project's model is: accuracy and forgetting on held-out items, with 95 % confidence intervals.

The intervals of shares, and of the change of a share, hold for small counts too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from accuacl.experiments import read_steps
from accuacl.labeling.project.erasing import usable_items
from accuacl.labeling.project.stopping import Forecast, Measured, forecast, next_target
from accuacl.labeling.project.tasks import TaskInfo, Tasks
from accuacl.labeling.store import Store, counts_as

Z = 1.959963984540054  # the normal quantile of a two-sided 95 % interval


@dataclass(frozen=True)
class Estimate:
    """A value in percent, its confidence interval, and how many examples it comes from."""

    value: float
    low: float
    high: float
    count: int


def interval_text(estimate: Estimate | None) -> str:
    """Return an estimate as text, with its interval; "" if there is none."""
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"


def share(right: int, count: int) -> Estimate:
    """Return the share of `right` in `count`, in percent, with Wilson's interval.

    >>> estimate = share(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (49.0, 80.0, 94.3)
    """
    low, high = wilson(right / count, count)
    return Estimate(100 * right / count, 100 * low if right else 0.0, 100 * high if right < count else 100.0, count)


def wilson(p: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share p (0 to 1) of n examples; p n need not be a whole number."""
    middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return (middle - half) / (1 + Z * Z / n), (middle + half) / (1 + Z * Z / n)


@lru_cache(maxsize=4096)  # every task and round asks for the same few counts
def exact(right: int, count: int) -> Estimate:
    """Return the share of `right` in `count`, in percent, with the interval of Clopper and Pearson.

    That interval covers the true share in at least 95 % of cases, whatever the count.

    >>> estimate = exact(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (44.4, 80.0, 97.5)
    """
    from scipy.special import betaincinv  # not scipy.stats, which takes a second to import

    low = float(betaincinv(right, count - right + 1, 0.025)) if right else 0.0
    high = float(betaincinv(right + 1, count - right, 0.975)) if right < count else 1.0
    return Estimate(100 * right / count, 100 * low, 100 * high, count)


def change(lost: int, gained: int, count: int) -> Estimate:
    """Return how many points a share has fallen, with the paired interval of Bonett and Price (2012) for small samples.

    Of the `count` examples, `lost` were right before and are wrong now, and `gained` the other way round.

    >>> estimate = change(3, 1, 20)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (-12.4, 10.0, 30.6)
    """
    a, b, n = (lost + 1) / (count + 2), (gained + 1) / (count + 2), count + 2
    half = Z * math.sqrt((a + b - (a - b) ** 2) / n)
    low, high = max(-1.0, a - b - half), min(1.0, a - b + half)
    return Estimate(100 * (lost - gained) / count, 100 * low, 100 * high, count)


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean over tasks, each with the same weight; the interval combines theirs by Zou and Donner (2008).

    For shares, give `exact` estimates: intervals that are each a little too narrow combine to one far too narrow.

    >>> estimate = mean([exact(8, 10), exact(10, 10)])
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (66.4, 90.0, 98.7)
    """
    value = sum(e.value for e in estimates) / len(estimates)
    below = math.sqrt(sum((e.value - e.low) ** 2 for e in estimates)) / len(estimates)
    above = math.sqrt(sum((e.high - e.value) ** 2 for e in estimates)) / len(estimates)
    return Estimate(value, value - below, value + above, sum(e.count for e in estimates))


Predictions = dict[int, int]  # {held-out item: the class that the model gives it}


@dataclass(frozen=True)
class TaskEstimate:
    """A task's accuracy just after it was learned and now, and how much of it was forgotten in between; percent.

    None: the task has not been learned to its end yet, or is the last one.
    """

    task: int
    learned: Estimate | None
    now: Estimate
    forgetting: Estimate | None


@dataclass(frozen=True)
class RoundAccuracy:
    """The accuracy on each task after the training of a round, and what each earlier task had lost by then."""

    task: int
    round: int
    accuracy: tuple[Estimate | None, ...]
    forgetting: tuple[Estimate | None, ...] = ()  # one entry for each task before this one


@dataclass(frozen=True)
class Estimates:
    """All estimates of a project's model, and counts of its labels."""

    tasks: tuple[TaskEstimate, ...]
    accuracy: Estimate | None  # the mean over tasks
    forgetting: Estimate | None  # the mean over all tasks but the last
    history: tuple[RoundAccuracy, ...]
    confusion: dict[tuple[int, int], int]  # {(class, the model's guess): how many held-out items}
    labels_by_class: dict[int, int]
    labels_by_person: dict[int, int]
    curve: tuple[Measured, ...] = ()  # the learning curve of the latest task that was tested
    forecast: Forecast | None = None  # how many labels the latest task needs for its next target
    calibration: str = ""  # a sentence on whether the model's confidence is right; "" if the learner cannot tell
    class_forgetting: dict[int, Estimate] = field(default_factory=dict)  # for the classes of earlier tasks' tests

    @property
    def overall(self) -> Estimate | None:
        """The mean over tasks. A single task keeps its own estimate, so that one number never has two intervals."""
        return self.tasks[0].now if len(self.tasks) == 1 else self.accuracy

    @property
    def over_examples(self) -> Estimate | None:
        """The share of all held-out items that are right, so that tasks with more items weigh more; in percent."""
        right = sum(count for (label, guess), count in self.confusion.items() if label == guess)
        return share(right, sum(self.confusion.values())) if self.confusion else None


@dataclass(frozen=True)
class TrainingGain:
    """The accuracy on all held-out items after the last training, in percent.

    before: the accuracy after the training before it, if the held-out items were the same.
    """

    before: float | None
    now: float
    count: int


def estimate(store: Store, journal: Path, data: Tasks) -> Estimates:
    """Compare the journal's predictions for held-out items with the labels as they are now."""
    root = counts_as(store.classes())
    tests, ends = _read_predictions(journal, root)
    # The answers are read after the predictions: by now every predicted item has a label.
    answers = {answer.item: answer.class_id for answer in store.answers()}
    truth = {item: class_id for item, class_id in answers.items() if class_id is not None}
    task_of = {
        item: step.task
        for step in read_steps(journal, "label")
        for item in step.result["held"]
        if step.task is not None
    }
    last = max(tests, default=(0, 0))
    now = tests.get(last, {})
    then: Predictions = {}  # the predictions for each earlier task's items just after that task was learned
    tasks: list[TaskEstimate] = []
    for t, items in sorted(_grouped(now, task_of).items()):
        learned = _accuracy(ends[t], truth, items) if t in ends else None
        forgetting = None
        if t in ends and t < last[0]:  # a task that is still the last one has had no time to be forgotten
            forgetting = _fall(ends[t], now, truth, items)
            then |= {item: ends[t].get(item, -1) for item in items}
        tasks.append(TaskEstimate(t, learned, _accuracy(now, truth, items), forgetting))
    shares = [exact(round(task.now.value * task.now.count / 100), task.now.count) for task in tasks]
    falls = [task.forgetting for task in tasks if task.forgetting]
    history = []
    for (t, r), guesses in sorted(tests.items()):
        held = _grouped(guesses, task_of)
        accuracy = tuple(_accuracy(guesses, truth, held[j]) if j in held else None for j in range(t + 1))
        lost = tuple(_fall(ends[j], guesses, truth, held[j]) if j in held and j in ends else None for j in range(t))
        history.append(RoundAccuracy(t, r, accuracy, lost))
    latest = data.all()[last[0]] if tests else None
    curve = _learning_curve(journal, latest, history) if latest else []
    target = next_target(curve)
    return Estimates(
        tuple(tasks),
        mean(shares) if shares else None,
        mean(falls) if falls else None,
        tuple(history),
        dict(Counter((truth[item], guess) for item, guess in now.items())),
        store.counts_by_class(),
        store.counts_by_person(),
        tuple(curve),
        forecast(curve, target, *_to_label(journal, data, latest, curve, answers)) if latest and target else None,
        _calibration(journal),
        {id: _fall(then, now, truth, items) for id, items in _grouped(then, truth).items()},
    )


def _calibration(journal: Path) -> str:
    """Return sentences on whether the model's confidence is right and how it has learned from items without a label."""
    trained = read_steps(journal, "train")
    facts = trained[-1].result.get("facts", {}) if trained else {}
    if "left_out_accuracy" not in facts:
        return ""
    text = (
        f"Calibration: of the training examples, each left out in turn, {facts['left_out_accuracy']:.0f} % are right; "
        f"the model's mean confidence in them is {facts['left_out_confidence']:.0f} %."
    )
    if "before_forgetting" in facts:
        text += " That was before items were forgotten."
    if count := int(facts.get("pseudo_labels", 0)):
        text += f" That was before it also learned from its own predictions for {count:,} items without a label."
    elif "pseudo_labels" in facts:
        text += " Its own predictions were not used: left-out labels spoke against it."
    elif count := int(facts.get("smoothed_by", 0)):
        text += f" It moves each item towards its nearest of {count:,} items without a label."
    return text


def _learning_curve(journal: Path, task: TaskInfo, history: Sequence[RoundAccuracy]) -> list[Measured]:
    """Return the task's labels and how many of its held-out items were right, after each of its rounds."""
    labels, curve = 0, []
    measured = {after.round: after.accuracy[task.index] for after in history if after.task == task.index}
    for step in read_steps(journal, "label", task=task.index):
        held = set(step.result["held"])  # the held-out items, of which some may have been skipped
        learned = [item for item, _ in (*step.result["labels"], *step.result.get("late", ())) if item not in held]
        labels += sum(item in task for item in learned)  # a late label may belong to an earlier task
        if step.round is not None and (accuracy := measured.get(step.round)) is not None:
            curve.append(Measured(labels, round(accuracy.value * accuracy.count / 100), accuracy.count))
    return curve


def _to_label(
    journal: Path, data: Tasks, task: TaskInfo, curve: Sequence[Measured], answers: Mapping[int, int | None]
) -> tuple[int, int]:
    """Return how many items of a task are still to be labelled, and how many labels came since the last measurement.

    answers: the class of each answered item of all tasks; None for a skipped one. Items that a round was closed without
    are not asked for again, so they are not counted.
    """
    steps = read_steps(journal, "label", "query", task=task.index)
    closed = {step.round for step in steps if step.kind == "label"}
    held = {item for step in steps if step.kind == "label" for item in step.result["held"]}
    picked = {item for step in steps if step.kind == "query" and step.round in closed for item in step.result["ids"]}
    usable = set(usable_items(data, task).tolist())
    labelled = sum(answers.get(item) is not None for item in usable - held)
    return len(usable - picked - answers.keys()), max(0, labelled - curve[-1].labels)


def training_gain(history: Sequence[RoundAccuracy]) -> TrainingGain | None:
    """Return the accuracy before and after the last training; None before the first, or without held-out items."""
    means = []
    for after in history[-2:]:
        measured = [e for e in after.accuracy if e is not None]
        count = sum(e.count for e in measured)
        means.append((count, sum(e.value * e.count for e in measured) / count if count else 0.0))
    if not means or not means[-1][0]:
        return None
    same = len(means) == 2 and means[0][0] == means[1][0]
    return TrainingGain(means[0][1] if same else None, means[-1][1], means[-1][0])


def last_predictions(journal: Path) -> Predictions:
    """Return the class that the model gives each held-out item after its last training."""
    tests, _ = _read_predictions(journal)
    return tests[max(tests)] if tests else {}


def _read_predictions(
    journal: Path, root: Mapping[int, int] | None = None
) -> tuple[dict[tuple[int, int], Predictions], dict[int, Predictions]]:
    """Return the predictions after each round and those after each task. root: the class that each class counts as."""
    tests: dict[tuple[int, int], Predictions] = {}
    ends: dict[int, Predictions] = {}
    for step in read_steps(journal, "test", "evaluate"):
        guesses = {int(item): int(guess) for item, guess, _ in step.result["predictions"]}
        predictions = {item: root[guess] for item, guess in guesses.items()} if root else guesses
        assert step.task is not None
        if step.round is not None:
            tests[step.task, step.round] = predictions
        else:
            ends[step.task] = predictions
    return tests, ends


def _grouped(items: Iterable[int], groups: Mapping[int, int]) -> dict[int, list[int]]:
    """Return the items of each group, such as a task or a class. groups: the group of each item."""
    grouped: dict[int, list[int]] = {}
    for item in items:
        grouped.setdefault(groups[item], []).append(item)
    return grouped


def _accuracy(guesses: Predictions, truth: Mapping[int, int], items: Sequence[int]) -> Estimate:
    return share(sum(guesses.get(item) == truth[item] for item in items), len(items))


def _fall(before: Predictions, after: Predictions, truth: Mapping[int, int], items: Sequence[int]) -> Estimate:
    """Return how many points of accuracy on these items were lost between two predictions."""
    right = [(before.get(item) == truth[item], after.get(item) == truth[item]) for item in items]
    return change(right.count((True, False)), right.count((False, True)), len(items))


@dataclass(frozen=True)
class ClassEstimate:
    """How many labels a class has, and how well the model knows it.

    accuracy: the share of its held-out items that the model gets right; None without such items. forgetting: how many
    points that share has fallen on the items of earlier tasks, since each of these was learned.
    """

    id: int
    labels: int
    accuracy: Estimate | None
    forgetting: Estimate | None = None


def by_class(estimates: Estimates, classes: Iterable[int]) -> list[ClassEstimate]:
    """Return the estimate of each class. Its accuracy is computed from the confusion matrix."""
    held: Counter[int] = Counter()
    for (label, _), count in estimates.confusion.items():
        held[label] += count
    return [
        ClassEstimate(
            id,
            estimates.labels_by_class.get(id, 0),
            share(estimates.confusion.get((id, id), 0), held[id]) if held[id] else None,
            estimates.class_forgetting.get(id),
        )
        for id in classes
    ]


def mean_over_classes(classes: Iterable[ClassEstimate]) -> Estimate | None:
    """Return the mean accuracy over classes, each with the same weight, however rare; None without measured classes."""
    measured = [c.accuracy for c in classes if c.accuracy is not None]
    if len(measured) <= 1:
        return measured[0] if measured else None
    return mean([exact(round(e.value * e.count / 100), e.count) for e in measured])
