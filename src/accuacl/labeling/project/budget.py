"""A budget of labels for a whole project (`--budget-total`), spent on the tasks that need them most.

A task has rounds until the labels of another one would do more good in tasks that come later. How much good is read
from learning curves (`stopping`): of this task from its own, of later ones, which nobody knows yet, from the mean of
all tasks so far. Where no curve is known, every task is to have the same number of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from accuacl.experiments import read_steps
from accuacl.labeling.project.estimates import estimate, learning_curve
from accuacl.labeling.project.settings import ProjectSettings
from accuacl.labeling.project.stopping import Measured, expected_errors
from accuacl.labeling.project.taught import held_out_count
from accuacl.labeling.store import Store

# A lead has ended it, nothing is left of its pool or of the budget, or later tasks need the labels more.
Why = Literal["ended", "pool", "budget", "later"]


@dataclass(frozen=True)
class Gains:
    """Points of accuracy that another round brings a task, and that its labels bring later tasks, all together."""

    here: float
    later: float


@dataclass(frozen=True)
class LabelBudget:
    """What a task may have. left: labels that nobody has used; waiting: how large the pools are that come next."""

    settings: ProjectSettings
    left: int
    task: int
    waiting: tuple[int, ...]

    @property
    def later(self) -> int:
        """How many tasks after this one the budget has to serve."""
        expected = self.settings.budget_tasks - self.task - 1 if self.settings.budget_tasks else 1
        return max(len(self.waiting), expected)

    @property
    def first_round(self) -> int:
        """How many labels the first round of the task may ask for: never more than an equal share."""
        return min(self.settings.per_round, -(-self.left // (1 + self.later)))

    @property
    def next_round(self) -> int:
        return min(self.settings.per_round, self.left)

    def gains(self, curves: Sequence[Sequence[Measured]], trained: int) -> Gains | None:
        """What the next round is worth here and later. curves: of all tasks so far, this one's last; trained: labels
        that this task's model has. None: the curve says nothing yet, or there is no later task.
        """
        if not self.later or not curves:
            return None
        step, held = self.next_round, held_out_count(self.settings.holdout, self.settings.per_round)
        here = expected_errors(curves[-1], [trained, trained + step])
        shares = [labels / self.later - held for labels in (self.left, self.left - step)]
        known = [errors for curve in curves if (errors := expected_errors(curve, shares))]
        if not here:
            return None
        lost = sum(fewer - more for more, fewer in known) / len(known)
        return Gains(100 * (here[0] - here[1]), 100 * self.later * lost)

    def needed_here(self, gains: Gains | None, used: int) -> bool:
        """Whether the task shall have another round. used: labels that it has had."""
        enough = len(self.waiting) == self.later and self.left - self.next_round >= sum(self.waiting)
        if not self.later or enough:
            return True
        if gains is not None:
            return gains.here > gains.later
        return used + self.next_round / 2 <= (used + self.left) / (1 + self.later)


def open_label_budget(
    settings: ProjectSettings, store: Store, counts: Sequence[int], task: int, round: int
) -> LabelBudget:
    """What a round of a task may have, apart from the labels that it has already. counts: how large all pools are."""
    left = max(0, settings.budget_total - store.used_elsewhere(task, round))
    return LabelBudget(settings, left, task, tuple(counts[task + 1 :]))


def over(purse: LabelBudget, store: Store, journal: Path, pool: int) -> tuple[Why, Gains | None] | None:
    """Why the task shall have no further round; None if it shall. pool: how many of its items are left to ask for."""
    if store.has_ended(purse.task):
        return "ended", None
    if not pool or not purse.left:
        return ("budget" if pool else "pool"), None
    curves = measured_curves(store, journal, purse.task)
    gains = purse.gains(curves, curves[-1][-1].labels if curves and curves[-1] else 0)
    return None if purse.needed_here(gains, store.used(purse.task)) else ("later", gains)


def measured_curves(store: Store, journal: Path, task: int) -> list[list[Measured]]:
    """The learning curves of all tasks up to this one."""
    history = estimate(store, journal).history
    return [learning_curve(journal, t, history) for t in range(task + 1)]


def tell(settings: ProjectSettings, store: Store, journal: Path, counts: Sequence[int], finished: bool) -> list[str]:
    """How much of the budget is used, and where the next labels help most, in sentences.

    counts: how large all pools are; finished: whether all tasks are.
    """
    status, used, total = store.status(), store.used_in_all(), settings.budget_total
    if used >= total:
        return [f"The whole budget of {total} labels is used."]
    said = [f"{used} of {total} labels are used, {total - used} are left."]
    if status is None:
        return said
    task, number = status.task, status.task + 1
    still = status.left if status.open else 0  # what people have been asked for
    purse = LabelBudget(settings, max(0, total - used - still), task, tuple(counts[task + 1 :]))
    curves, step = measured_curves(store, journal, task), purse.next_round
    if finished:
        said += _why_over(journal, task, settings.per_round)
    elif step and purse.later:
        trained = curves[-1][-1].labels if curves[-1] else 0
        gains = purse.gains(curves, trained + (status.total - status.skipped if status.open else 0))
        goes_on = purse.needed_here(gains, store.used(task) + still)
        ends = "goes on" if goes_on else "ends with this round"
        if gains is None:
            said.append(f"Task {number} {ends}: its learning curve is not known yet, so each task has the same share.")
        else:
            said.append(f"{_worth(gains, step, number)}, so task {number} {ends}.")
    worth = {t: gain for t, curve in enumerate(curves) if (gain := _gain(curve, step)) is not None}
    best = max(worth, key=lambda t: worth[t], default=task)
    if len(worth) > 1 and task in worth and (finished or best != task):
        most = f"Of the tasks so far task {best + 1} would gain most from {step} more labels, {_points(worth[best])}"
        said.append(f"{most}: to go on with it, add more of its data as a task.")
    return said


def _gain(curve: Sequence[Measured], step: int) -> float | None:
    """Points that so many labels more would bring a task; None: its curve says nothing."""
    errors = expected_errors(curve, [curve[-1].labels, curve[-1].labels + step]) if curve else []
    return 100 * (errors[0] - errors[1]) if errors else None


def _why_over(journal: Path, task: int, step: int) -> list[str]:
    """Why the task that was last had no further round."""
    queries = read_steps(journal, "query", task=task)
    why = queries[-1].result.get("over") if queries else None
    if why is None or why["why"] != "later":
        return []
    if why["here"] is None:
        return [f"Task {task + 1} has had its share."]
    return [f"{_worth(Gains(why['here'], why['later']), step, task + 1)}, so it has ended."]


def _worth(gains: Gains, step: int, number: int) -> str:
    here, later = _points(gains.here), _points(gains.later)
    return f"Another {step} labels would bring task {number} {here}, tasks to come {later}"


def _points(points: float) -> str:
    """As in about 2.6 points.

    >>> _points(2.63), _points(0.02)
    ('about 2.6 points', 'less than 0.1 points')
    """
    return f"about {points:.1f} points" if points >= 0.1 else "less than 0.1 points"
