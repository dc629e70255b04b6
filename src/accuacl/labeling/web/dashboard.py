"""What the dashboard shows: what to do, estimates with their intervals, counts, confusions, the latest picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Set
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import State

from accuacl.base.names import counted
from accuacl.labeling.project import (
    Advice,
    ClassEstimate,
    Doubts,
    Estimate,
    Estimates,
    advise,
    by_class,
    gain,
    mean_over_classes,
)
from accuacl.labeling.store import Person, living
from accuacl.labeling.web.charts import signed
from accuacl.labeling.web.over_time import FALLEN, forgetting, heatmap, held_out_of, learning_curve
from accuacl.labeling.web.views import hidden

MOST = 24  # classes in the confusion matrix
SHEET = 24  # picks of a round that are shown
SNIP = 140  # characters of a text that are shown


def gather(app: State, person: Person) -> dict[str, Any]:
    """Everything that the template needs, for one person."""
    project, store = app.project, app.project.store
    estimates: Estimates = project.estimates()
    names = {c.id: c.name for c in store.classes()}
    people = {person.id: person.name for person in store.people()}
    classes = by_class(estimates, [c.id for c in living(store.classes())])
    return {
        "advice": advice(app, estimates, classes, names),
        "facts": facts(app, estimates, classes),
        "trouble": app.trainer.now.trouble,
        "heatmap": heatmap(estimates),
        "calibration": estimates.calibration,
        "curve": learning_curve(app, estimates),
        "forgetting": forgetting(estimates),
        "fewer": FALLEN if sum(t.forgetting is not None for t in estimates.tasks) > FALLEN else 0,
        "numbers": [
            (f"Task {t.task + 1}", held_out_of(t.task), [said(t.learned), said(t.now), said(t.forgetting), t.now.count])
            for t in estimates.tasks
        ],
        "classes": class_rows(classes, names),
        "class_forgetting": bool(estimates.class_forgetting),
        "people": person_rows(estimates, people),
        "confusion": confusion(estimates, names),
        "sheets": sheets(app, names, hidden(app, person)),
    }


def person_rows(estimates: Estimates, people: dict[int, str]) -> list[tuple[str, int, float, str]]:
    """Name, labels, labels relative to the most, and where to review them; who gave most comes first."""
    counts = sorted(estimates.labels_by_person.items(), key=lambda item: -item[1])
    return [(people[id], n, n / counts[0][1], f"/review?show=labelled&person={id}") for id, n in counts]


def advice(
    app: State, estimates: Estimates, classes: list[ClassEstimate], names: dict[int, str]
) -> list[dict[str, str]]:
    """What has happened and what to do, each with a link to the answers it is about."""
    rows, here = app.project.store.everything(), app.project.state()
    answered = [row for row in rows if row.answered]
    doubts = Doubts(sum(row.unsettled for row in rows), sum(row.skipped for row in rows), len(answered))
    found = advise(app.project.settings, estimates, gain(estimates.history), classes, names, doubts, here.left)
    found += [Advice(" ".join(sentences))] if (sentences := app.project.budget_text(here)) else []
    return [
        {"text": one.text, "do": one.do, "tone": one.tone, "to": f"/review?{urlencode(one.about)}" if one.about else ""}
        for one in found
    ]


def facts(app: State, estimates: Estimates, classes: list[ClassEstimate]) -> list[tuple[str, str]]:
    """The overview: names and values."""
    here, status = app.project.state(), app.project.store.status()
    shown = [("labels left in the budget", f"{here.left} of {here.budget}")]
    if status is not None:
        shown.insert(0, ("current round", f"Task {status.task + 1}, {here.round_name}"))
    if estimates.overall:
        over = "" if len(estimates.tasks) == 1 else ", mean over tasks"
        shown.append((f"accuracy{over} ({_held(estimates.overall)})", f"{said(estimates.overall)} %"))
    if len(estimates.tasks) > 1 and estimates.over_examples:
        shown.append(("accuracy, mean over examples", f"{said(estimates.over_examples)} %"))
    if estimates.forgetting:
        shown.append(("forgetting, mean over earlier tasks (points)", said(estimates.forgetting)))
    balanced = mean_over_classes(classes)
    if balanced:
        shown.append((f"accuracy, {_over(classes)} ({_held(balanced)})", f"{said(balanced)} %"))
    if classes:
        found = [one for one in classes if one.labels]
        rarest = min(classes, key=lambda one: one.labels)
        shown.append(("classes with a label", f"{len(found)} of {len(classes)}"))
        shown.append(("labels of the rarest class", str(rarest.labels)))
    return shown


def _over(classes: list[ClassEstimate]) -> str:
    """Which classes a mean is over: those without held-out examples cannot be measured."""
    measured = sum(one.accuracy is not None for one in classes)
    if measured == len(classes):
        return "mean over classes"
    return f"mean over the {measured} of {len(classes)} classes that can be measured"


def said(estimate: Estimate | None) -> str:
    """An estimate as text: the value and its interval.

    >>> said(Estimate(80.0, 49.01, 94.3, 10)), said(None)
    ('80 (49 to 94)', '–')
    >>> said(Estimate(57.0, -0.3, 89.0, 7)), said(Estimate(0.0, -20.0, 20.0, 12))
    ('57 (0 to 89)', '0 (−20 to 20)')
    """
    if estimate is None:
        return "\N{EN DASH}"
    return f"{signed(estimate.value)} ({signed(estimate.low)} to {signed(estimate.high)})"


def _held(estimate: Estimate) -> str:
    return counted(estimate.count, "held-out example")


def class_rows(classes: list[ClassEstimate], names: dict[int, str]) -> list[dict[str, Any]]:
    """A row for each class: its labels, relative to the most, its accuracy and forgetting, its held-out examples."""
    most = max([1, *(one.labels for one in classes)])
    return [
        {
            "name": names[one.id],
            "labels": one.labels,
            "share": one.labels / most,
            "accuracy": said(one.accuracy),
            "forgetting": said(one.forgetting),
            "held": one.accuracy.count if one.accuracy else 0,
            "to": f"/review?label={one.id}",
        }
        for one in classes
    ]


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


def sheets(app: State, names: dict[int, str], unknown: Set[int]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The picks of the last two rounds that had any, with their labels, by the name of the round.

    unknown: items whose labels are not told.
    """
    status = app.project.store.status()
    if status is None:
        return []
    present = [(status.task, r) for r in range(status.round, -1, -1)]
    earlier = [(t, r) for t in range(status.task - 1, -1, -1) for r in range(app.project.rounds(t) - 1, -1, -1)]
    found: list[tuple[str, list[dict[str, Any]]]] = []
    for t, r in [*present, *earlier]:
        picks = _sheet(app, names, t, r, unknown)
        if picks:
            found.append((f"Task {t + 1}, round {r + 1}", picks))
        if len(found) == 2:
            break
    return found


def _sheet(app: State, names: dict[int, str], task: int, round: int, unknown: Set[int]) -> list[dict[str, Any]]:
    project = app.project
    picks = project.store.picks(task, round)[:SHEET]
    told = [pick.item for pick in picks if pick.item not in unknown]
    labels = {answer.item: answer.class_id for answer in project.store.answers(told)}
    shown = []
    for item in (project.item(pick.item) for pick in picks):
        label = labels.get(item.id)
        what = names[label] if label is not None else "skipped" if item.id in labels else "not labelled"
        snip = item.text or ", ".join(f"{name} {value}" for name, value in item.fields)
        shown.append({"item": item.id, "kind": item.kind, "snip": snip[:SNIP], "what": what})
    return shown
