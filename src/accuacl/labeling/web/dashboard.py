"""What the dashboard shows: estimates with their intervals, counts, the confusion matrix, the latest picks."""

from __future__ import annotations

from collections import Counter
from typing import Any

from markupsafe import Markup
from starlette.datastructures import State

from accuacl.labeling.project import Estimate, Estimates
from accuacl.labeling.store import living
from accuacl.labeling.web.charts import Point, Series, plot

MOST = 24  # classes in the confusion matrix
SHEET = 60  # picks of a round that are shown
SNIP = 140  # characters of a text that are shown


def gather(app: State) -> dict[str, Any]:
    """Everything that the template needs."""
    project, store = app.project, app.project.store
    estimates: Estimates = project.estimates()
    names = {c.id: c.name for c in store.classes()}
    people = {person.id: person.name for person in store.people()}
    by_person = {id: (people[id], count) for id, count in estimates.labels_by_person.items()}
    by_class = {c.id: (c.name, estimates.labels_by_class.get(c.id, 0)) for c in living(store.classes())}
    return {
        "facts": facts(app, estimates),
        "trouble": app.trainer.now.trouble,
        "accuracy": accuracy(estimates),
        "forgetting": forgetting(estimates),
        "numbers": [
            (f"Task {t.task + 1}", [said(t.learned), said(t.now), said(t.forgetting)]) for t in estimates.tasks
        ],
        "counts": [
            ("Labels per class", shares(by_class, "/review?label=")),
            ("Labels per person", shares(by_person, "/review?show=labelled&person=")),
        ],
        "confusion": confusion(estimates, names),
        "sheets": sheets(app, names),
    }


def facts(app: State, estimates: Estimates) -> list[tuple[str, str]]:
    """The overview: names and values."""
    here, status = app.project.state(), app.project.store.status()
    shown = [("labels left in the budget", f"{here.budget - here.used} of {here.budget}")]
    if status is not None:
        shown.insert(0, ("current round", f"Task {status.task + 1}, round {status.round + 1}"))
    if estimates.accuracy:
        shown.append(("accuracy, mean over tasks", f"{said(estimates.accuracy)} %"))
    if estimates.forgetting:
        shown.append(("forgetting, mean over earlier tasks", said(estimates.forgetting)))
    if estimates.forecast:
        shown.append(("labels still needed for the latest task", estimates.forecast.text))
    return shown


def said(estimate: Estimate | None) -> str:
    """An estimate as text: the value and its interval.

    >>> said(Estimate(80.0, 49.01, 94.3, 10)), said(None)
    ('80.0 (49.0 to 94.3)', '-')
    """
    return "-" if estimate is None else f"{estimate.value:.1f} ({estimate.low:.1f} to {estimate.high:.1f})"


def accuracy(estimates: Estimates) -> Markup:
    """The plot of accuracy on each task after each round; empty if there is none yet."""
    ticks = [f"{moment.task + 1}.{moment.round + 1}" for moment in estimates.history]
    series = []
    for task in range(len(estimates.tasks)):
        points = [
            Point(x, e.value, e.low, e.high)
            for x, moment in enumerate(estimates.history)
            if task < len(moment.accuracy) and (e := moment.accuracy[task]) is not None
        ]
        if points:
            series.append(Series(f"task {task + 1}", points))
    if not series:
        return Markup()
    alt = "Accuracy on each task after each round, with intervals; the table below has the same numbers."
    return plot(series, ticks, "after task.round", alt)


def forgetting(estimates: Estimates) -> Markup:
    """The plot of forgetting by task; empty before the second task is learned."""
    measured = [(t.task, t.forgetting) for t in estimates.tasks if t.forgetting is not None]
    if not measured:
        return Markup()
    points = [Point(x, e.value, e.low, e.high) for x, (_, e) in enumerate(measured)]
    alt = "Forgetting of each task, with intervals; the table below has the same numbers."
    low = min(-25.0, *(25.0 * (e.low // 25) for _, e in measured))
    high = max(75.0, *(25.0 * -(-e.high // 25) for _, e in measured))
    return plot([Series("", points)], [str(t + 1) for t, _ in measured], "task", alt, low, high, joined=False)


def shares(counts: dict[int, tuple[str, int]], address: str) -> list[tuple[str, int, float, str]]:
    """Name, count, count relative to the largest, and where to review them."""
    most = max([1, *(count for _, count in counts.values())])
    return [(name, count, count / most, f"{address}{id}") for id, (name, count) in counts.items()]


def confusion(estimates: Estimates, names: dict[int, str]) -> dict[str, Any] | None:
    """The confusion matrix of held-out items: rows are labels, columns guesses; the most confused classes if many."""
    pairs = estimates.confusion
    wrong: Counter[int] = Counter()
    for (label, guess), count in pairs.items():
        wrong[label] += count * (label != guess)
        wrong[guess] += count * (label != guess)
    kept = sorted(id for id, _ in wrong.most_common(MOST))
    if not kept:
        return None

    def cell(label: int, guess: int) -> tuple[int, str, str]:
        count, address = pairs.get((label, guess), 0), f"/review?held=1&label={label}&guess={guess}"
        return count, "" if not count else "right" if label == guess else "wrong", address

    rows = [(names[label], [cell(label, guess) for guess in kept]) for label in kept]
    return {"names": [names[id] for id in kept], "rows": rows, "left_out": len(wrong) - len(kept)}


def sheets(app: State, names: dict[int, str]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The picks of the last two rounds with their labels, by the name of the round."""
    status = app.project.store.status()
    if status is None:
        return []
    rounds = [(status.task, status.round)]
    if status.round:
        rounds.append((status.task, status.round - 1))
    elif status.task:
        rounds.append((status.task - 1, app.project.settings.rounds - 1))
    return [(f"Task {t + 1}, round {r + 1}", _sheet(app, names, t, r)) for t, r in rounds]


def _sheet(app: State, names: dict[int, str], task: int, round: int) -> list[dict[str, Any]]:
    project = app.project
    picks = project.store.picks(task, round)[:SHEET]
    labels = {answer.item: answer.class_id for answer in project.store.answers([pick.item for pick in picks])}
    shown = []
    for item in (project.item(pick.item) for pick in picks):
        label = labels.get(item.id)
        what = names[label] if label is not None else "skipped" if item.id in labels else "not labelled"
        snip = item.text or ", ".join(f"{name} {value}" for name, value in item.fields)
        shown.append({"item": item.id, "kind": item.kind, "snip": snip[:SNIP], "what": what})
    return shown
