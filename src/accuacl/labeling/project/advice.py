"""What has happened in a project and what to do about it, in sentences.

Each sentence follows from the estimates, and says if there are too few held-out items: it is certain that a task has
fallen only if the whole interval of its forgetting is above zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from accuacl.base.errors import counted
from accuacl.labeling.project.estimates import ClassEstimate, Estimates, TrainingGain
from accuacl.labeling.project.settings import ProjectSettings

FEW_LABELS = 5  # a class with fewer labels is called rare
FEW_HELD = 30  # with fewer held-out items, a task's accuracy is known to about 15 points at best
LARGE_FALL = 10  # a task is mentioned if its accuracy has fallen by this many points
MORE_HELD = 50  # the percentage of a first round to hold out that is suggested if too little is known
SHOWN = 3  # the most tasks or classes that one piece of advice names

Tone = Literal["good", "bad", "plain"]
Action = Literal["", "round", "holdout", "memory"]


@dataclass(frozen=True)
class Advice:
    """A sentence on what has happened and what to do; about: filters of the page that show the answers in question.

    action: a change that a lead can make at once, with its value: one more round (the task's index), another hold-out
    (percent) or memory (examples).
    """

    text: str
    do: str = ""
    tone: Tone = "plain"
    about: tuple[tuple[str, str], ...] = ()
    action: Action = ""
    value: int = 0


@dataclass(frozen=True)
class Doubts:
    """The numbers of disputed items that nobody has settled, of skipped items, and of answers."""

    unsettled: int = 0
    skipped: int = 0
    answered: int = 0


def advise(
    settings: ProjectSettings,
    estimates: Estimates,
    gain: TrainingGain | None,
    classes: Sequence[ClassEstimate],
    names: Mapping[int, str],
    doubts: Doubts,
    left: int,
    task: int | None = None,
) -> list[Advice]:
    """Return all advice, the most urgent first.

    left: how many labels are left in the budget of the task; task None: the latest task that was measured.
    """
    advice = [
        *_training(gain),
        *_fallen(settings, estimates),
        *_confused(estimates, names),
        *_rare(classes, names),
        *_disputed(doubts),
        *_forecast(settings, estimates, left, task),
        *_precision(settings, estimates),
    ]
    order = {"bad": 0, "good": 1, "plain": 2}
    return sorted(advice, key=lambda each: order[each.tone])


def _training(gain: TrainingGain | None) -> Iterator[Advice]:
    """Say how the last training has changed the accuracy."""
    if gain is None:
        return
    now = f"{gain.now:.0f} %, on {counted(gain.count, 'held-out example')}"
    if gain.before is None:
        yield Advice(f"After the last training the accuracy is {now}.")
    elif gain.now > gain.before:
        yield Advice(f"The last training raised the accuracy from {gain.before:.0f} to {now}.", tone="good")
    elif gain.now < gain.before:
        text = f"The last training lowered the accuracy from {gain.before:.0f} to {now}."
        do = "That may be chance. If the next training lowers it too, look at the likely mistakes in the labels."
        yield Advice(text, do, "bad", (("show", "mistakes"),))
    else:
        yield Advice(f"The last training left the accuracy at {now}.")


def _fallen(settings: ProjectSettings, estimates: Estimates) -> Iterator[Advice]:
    """Name the tasks that were forgotten, the worst first, and say whether that is certain; or that there are none."""
    measured = [(t, t.learned, t.forgetting) for t in estimates.tasks if t.learned and t.forgetting]
    fallen = sorted((row for row in measured if row[2].value >= LARGE_FALL), key=lambda row: -row[2].value)
    for t, learned, forgetting in fallen[:SHOWN]:
        numbers = f"from {learned.value:.0f} to {t.now.value:.0f} %, on {counted(t.now.count, 'held-out example')}"
        about = (("task", str(t.task)), ("held", "1"))
        labels = sum(estimates.labels_by_class.values())
        do = f"Add data like it as the next task and label {settings.per_round} of them"
        if forgetting.low <= 0:
            do = "That is too few to be sure; see whether it goes on."
            yield Advice(f"Task {t.task + 1} may have fallen, {numbers}.", do, about=about)
        elif settings.exact or settings.memory >= labels:
            do += ": everything that was labelled is already learned from."
            yield Advice(f"Task {t.task + 1} fell {numbers}.", do, "bad", about)
        else:
            do += f", or raise the memory, so that the tasks to come replay all {labels} labels, not {settings.memory}."
            yield Advice(f"Task {t.task + 1} fell {numbers}.", do, "bad", about, "memory", labels)
    if measured and not fallen:
        held = sum(t.now.count for t, _, _ in measured)
        yield Advice(f"No earlier task has measurably fallen, on {counted(held, 'held-out example')}.", tone="good")


def _confused(estimates: Estimates, names: Mapping[int, str]) -> Iterator[Advice]:
    """Name the pair of classes that is confused most often, if it was confused more than once."""
    wrong = {pair: count for pair, count in estimates.confusion.items() if pair[0] != pair[1] and count > 1}
    if not wrong:
        return
    (label, guess), count = max(wrong.items(), key=lambda item: (item[1], -item[0][0], -item[0][1]))
    total = sum(n for (id, _), n in estimates.confusion.items() if id == label)
    text = f"{count} of {total} held-out examples of “{names[label]}” are taken for “{names[guess]}”."
    about = (("held", "1"), ("label", str(label)), ("guess", str(guess)))
    do = f"Look at them: if they are mislabelled, relabel them; if not, label more of “{names[label]}”."
    yield Advice(text, do, "bad", about)


def _rare(classes: Sequence[ClassEstimate], names: Mapping[int, str]) -> Iterator[Advice]:
    """Name the classes without a label, and those with few."""
    if not any(c.labels for c in classes):
        return
    if missing := [f"“{names[c.id]}”" for c in classes if not c.labels]:
        yield Advice(f"No label yet: {_first(missing)}.", "Add data of such classes, or merge them into others.")
    few = sorted((c for c in classes if 0 < c.labels < FEW_LABELS), key=lambda c: c.labels)
    if few:
        text = f"Few labels: {_first([f'“{names[c.id]}” {c.labels}' for c in few])}."
        yield Advice(text, f"A class is learned badly from fewer than {FEW_LABELS} labels.")


def _first(parts: Sequence[str]) -> str:
    """Return a phrase that names the first few: “a”, “b”, “c” and 2 more."""
    rest = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return ", ".join(parts[:SHOWN]) + rest


def _disputed(doubts: Doubts) -> Iterator[Advice]:
    if doubts.unsettled:
        text = f"People disagree about {counted(doubts.unsettled, 'example')}."
        do = "Settle them, and write the rule into the guideline of the class."
        yield Advice(text, do, "bad", (("show", "settle"),))
    if doubts.answered >= 20 and doubts.skipped > 0.2 * doubts.answered:
        text = f"{doubts.skipped} of {doubts.answered} examples were skipped."
        do = "If they belong to no class, add one for them; they do not count against the budget."
        yield Advice(text, do, about=(("show", "skipped"),))


def _forecast(settings: ProjectSettings, estimates: Estimates, left: int, task: int | None) -> Iterator[Advice]:
    """Say how far the budget of a task goes, if the forecast is about that task."""
    forecast = estimates.forecast
    if forecast is None or not estimates.tasks:
        return
    measured = estimates.tasks[-1].task
    text = f"Task {measured + 1}: {forecast.text}."
    left = left if forecast.left is None else min(left, forecast.left)  # skips use up the pool, but not the budget
    if forecast.too_few and not settings.budget_total:
        yield Advice(text, "Add more of its data as the next task.")
    elif settings.budget_total or task not in (None, measured):
        yield Advice(text)
    elif forecast.labels is None or forecast.in_doubt:
        yield Advice(text, f"Its budget has {counted(left, 'label')} left." if left else "")
    elif forecast.labels > left:
        do = f"Its budget has {left} left: ask for one more round, or add more of its data as the next task."
        yield Advice(text, do, action="round", value=measured)
    else:
        yield Advice(text, f"Its budget has {left} left, which is enough." if left else "")


def _precision(settings: ProjectSettings, estimates: Estimates) -> Iterator[Advice]:
    """Say how little is known if few items are held out."""
    worst = min(estimates.tasks, key=lambda t: t.now.count, default=None)
    if worst is None or worst.now.count >= FEW_HELD:
        return
    width, count = (worst.now.high - worst.now.low) / 2, worst.now.count
    held = f"only {counted(count, 'example')} of task {worst.task + 1} {'is' if count == 1 else 'are'} held out"
    text = f"Accuracies are known to about ±{width:.0f} points: {held}."
    if settings.holdout < MORE_HELD / 100:
        do = f"To know more, hold out more than {100 * settings.holdout:g} % of the first round in the next tasks."
        yield Advice(text, do, action="holdout", value=MORE_HELD)
    else:
        yield Advice(text, "With more labels per round they would be known better.")
