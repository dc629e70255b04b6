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

Z = 1.959963984540054  # two-sided 95 %


@dataclass(frozen=True)
class Estimate:
    """A value in percent, its confidence interval, and how many examples it comes from."""

    value: float
    low: float
    high: float
    count: int


def interval_text(estimate: Estimate | None) -> str:
    """An estimate as text, with its interval; "" if there is none."""
    return "" if estimate is None else f"{estimate.value:.0f} ({estimate.low:.0f} to {estimate.high:.0f})"


def share(right: int, count: int) -> Estimate:
    """A share with Wilson's interval.

    >>> estimate = share(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (49.0, 80.0, 94.3)
    """
    low, high = wilson(right / count, count)
    return Estimate(100 * right / count, 100 * low if right else 0.0, 100 * high if right < count else 100.0, count)


def wilson(p: float, n: int) -> tuple[float, float]:
    """Wilson's interval of a share, which need not be a whole number of n."""
    middle, half = p + Z * Z / (2 * n), Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    return (middle - half) / (1 + Z * Z / n), (middle + half) / (1 + Z * Z / n)


@lru_cache(maxsize=4096)  # the same few counts come again for every task and round
def exact(right: int, count: int) -> Estimate:
    """A share with the interval of Clopper and Pearson, which is never too narrow.

    >>> estimate = exact(8, 10)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (44.4, 80.0, 97.5)
    """
    from scipy.special import betaincinv  # not scipy.stats, which takes a second to import

    low = float(betaincinv(right, count - right + 1, 0.025)) if right else 0.0
    high = float(betaincinv(right + 1, count - right, 0.975)) if right < count else 1.0
    return Estimate(100 * right / count, 100 * low, 100 * high, count)


def change(lost: int, gained: int, count: int) -> Estimate:
    """By how much a share has fallen, when `lost` of the same examples were right before and are wrong now, and
    `gained` the other way round; with the paired interval of Bonett and Price (2012), made for small samples.

    >>> estimate = change(3, 1, 20)
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (-12.4, 10.0, 30.6)
    """
    a, b, n = (lost + 1) / (count + 2), (gained + 1) / (count + 2), count + 2
    half = Z * math.sqrt((a + b - (a - b) ** 2) / n)
    low, high = max(-1.0, a - b - half), min(1.0, a - b + half)
    return Estimate(100 * (lost - gained) / count, 100 * low, 100 * high, count)


def mean(estimates: Sequence[Estimate]) -> Estimate:
    """The mean over tasks, each with the same weight. Its interval combines theirs, after Zou and Donner (2008).

    For shares give the `exact` ones: intervals that are each a little too narrow combine to one far too narrow.

    >>> estimate = mean([exact(8, 10), exact(10, 10)])
    >>> round(estimate.low, 1), estimate.value, round(estimate.high, 1)
    (66.4, 90.0, 98.7)
    """
    value = sum(e.value for e in estimates) / len(estimates)
    below = math.sqrt(sum((e.value - e.low) ** 2 for e in estimates)) / len(estimates)
    above = math.sqrt(sum((e.high - e.value) ** 2 for e in estimates)) / len(estimates)
    return Estimate(value, value - below, value + above, sum(e.count for e in estimates))


Predictions = dict[int, int]  # held-out item: class


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
    forgetting: tuple[Estimate | None, ...] = ()  # of the tasks before this one


@dataclass(frozen=True)
class Estimates:
    """What is known of a project's model and labels."""

    tasks: tuple[TaskEstimate, ...]
    accuracy: Estimate | None  # the mean over tasks
    forgetting: Estimate | None  # the mean over all tasks but the last
    history: tuple[RoundAccuracy, ...]
    confusion: dict[tuple[int, int], int]  # (class, the model's guess): held-out items
    labels_by_class: dict[int, int]
    labels_by_person: dict[int, int]
    curve: tuple[Measured, ...] = ()  # of the latest task that was tested
    forecast: Forecast | None = None  # labels that the latest task needs for its next target
    calibration: str = ""  # whether the model's confidence is right; a sentence, where the learner can tell
    class_forgetting: dict[int, Estimate] = field(default_factory=dict)  # of the classes that earlier tasks test

    @property
    def overall(self) -> Estimate | None:
        """The mean over tasks; of a single task its own estimate, so that one number never has two intervals."""
        return self.tasks[0].now if len(self.tasks) == 1 else self.accuracy

    @property
    def over_examples(self) -> Estimate | None:
        """The share of all held-out items that are right: tasks count by how many items they have."""
        right = sum(count for (label, guess), count in self.confusion.items() if label == guess)
        return share(right, sum(self.confusion.values())) if self.confusion else None


@dataclass(frozen=True)
class TrainingGain:
    """The accuracy on all held-out items after the last training, and before it if they were the same; percent."""

    before: float | None
    now: float
    count: int


def estimate(store: Store, journal: Path, data: Tasks) -> Estimates:
    """From what the journal has: predictions for held-out items, judged by the labels as they are now."""
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
    then: Predictions = {}  # of the items of earlier tasks, when these had been learned
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
    """Whether the model's confidence is right, and what it has learned from its own predictions for the pool."""
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
    """The task's labels and how many of its held-out items were right, after each of its rounds."""
    labels, curve = 0, []
    measured = {after.round: after.accuracy[task.index] for after in history if after.task == task.index}
    for step in read_steps(journal, "label", task=task.index):
        held = set(step.result["held"])  # some may have been skipped
        learned = [item for item, _ in (*step.result["labels"], *step.result.get("late", ())) if item not in held]
        labels += sum(item in task for item in learned)  # late labels may be of earlier tasks
        if step.round is not None and (accuracy := measured.get(step.round)) is not None:
            curve.append(Measured(labels, round(accuracy.value * accuracy.count / 100), accuracy.count))
    return curve


def _to_label(
    journal: Path, data: Tasks, task: TaskInfo, curve: Sequence[Measured], answers: Mapping[int, int | None]
) -> tuple[int, int]:
    """How many items of a task are still to be labelled, and how many labels it has that no accuracy was measured with.

    answers: of all tasks; None is a skip. What a round was closed without is not asked for again.
    """
    steps = read_steps(journal, "label", "query", task=task.index)
    closed = {step.round for step in steps if step.kind == "label"}
    held = {item for step in steps if step.kind == "label" for item in step.result["held"]}
    picked = {item for step in steps if step.kind == "query" and step.round in closed for item in step.result["ids"]}
    usable = set(usable_items(data, task).tolist())
    labelled = sum(answers.get(item) is not None for item in usable - held)
    return len(usable - picked - answers.keys()), max(0, labelled - curve[-1].labels)


def training_gain(history: Sequence[RoundAccuracy]) -> TrainingGain | None:
    """What the last training has brought; None before the first, or without held-out items."""
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
    """The class that the model gives each held-out item after its last training."""
    tests, _ = _read_predictions(journal)
    return tests[max(tests)] if tests else {}


def _read_predictions(
    journal: Path, root: Mapping[int, int] | None = None
) -> tuple[dict[tuple[int, int], Predictions], dict[int, Predictions]]:
    """Predictions after each round, and after each task. root: what merged classes count as."""
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
    """The items of each group, such as a task or a class."""
    grouped: dict[int, list[int]] = {}
    for item in items:
        grouped.setdefault(groups[item], []).append(item)
    return grouped


def _accuracy(guesses: Predictions, truth: Mapping[int, int], items: Sequence[int]) -> Estimate:
    return share(sum(guesses.get(item) == truth[item] for item in items), len(items))


def _fall(before: Predictions, after: Predictions, truth: Mapping[int, int], items: Sequence[int]) -> Estimate:
    """How many points of accuracy on these items were lost between two predictions."""
    right = [(before.get(item) == truth[item], after.get(item) == truth[item]) for item in items]
    return change(right.count((True, False)), right.count((False, True)), len(items))


@dataclass(frozen=True)
class ClassEstimate:
    """A class: its labels, the share of its held-out items that the model gets right; None if there are none.

    forgetting: by how much that share has fallen on the items of earlier tasks, since each of these was learned.
    """

    id: int
    labels: int
    accuracy: Estimate | None
    forgetting: Estimate | None = None


def by_class(estimates: Estimates, classes: Iterable[int]) -> list[ClassEstimate]:
    """What is known of each class; the confusion matrix has all that is needed for its accuracy."""
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
    """A rare class counts as much as a common one; of a single class it is its own estimate."""
    measured = [c.accuracy for c in classes if c.accuracy is not None]
    if len(measured) <= 1:
        return measured[0] if measured else None
    return mean([exact(round(e.value * e.count / 100), e.count) for e in measured])
