"""What the dashboard shows: what to do, estimates with their intervals, counts, confusions, the latest picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Path, Request
from markupsafe import Markup
from starlette.datastructures import State

from accuacl.base.errors import InputError, counted
from accuacl.labeling.project import (
    Advice,
    ClassEstimate,
    Doubts,
    Estimate,
    Estimates,
    RoundAccuracy,
    advise,
    by_class,
    describe_budget,
    mean_over_classes,
    predicted_accuracy,
    training_gain,
)
from accuacl.labeling.store import Person, Reviewed, living
from accuacl.labeling.web import api
from accuacl.labeling.web.api import hidden
from accuacl.labeling.web.charts import Point, Series, curve, plot, signed
from accuacl.labeling.web.session import Limited

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
    found = advise(app.project.settings, estimates, training_gain(estimates.history), classes, names, doubts, here.left)
    if budget := describe_budget(app.project.settings, app.project.store, here.tasks):
        found.append(Advice(" ".join(budget)))
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


MOMENTS = 30  # columns of the heatmap: of more trainings the last one of each task
FALLEN = 4  # lines of the plot of forgetting
AFTER = "after task.round"
AHEAD = 3.0  # how far the learning curve is continued, in labels that there are


def held_out_of(task: int) -> str:
    """Where the held-out examples of a task are reviewed."""
    return f"/review?held=1&task={task}"


def heatmap(estimates: Estimates) -> dict[str, Any] | None:
    """Accuracy by task (rows, with the count of held-out items) after each training (columns): text, the colour's
    step from 0 to 10, and the interval."""
    moments = _shown(estimates)
    if not moments:
        return None

    def of(task: int, moment: RoundAccuracy) -> Estimate | None:
        return moment.accuracy[task] if task < len(moment.accuracy) else None

    rows = []
    for task in range(moments[-1].task + 1):
        cells = [of(task, moment) for moment in moments]
        latest = next((e for e in reversed(cells) if e is not None), None)
        if latest is not None:
            rows.append((f"Task {task + 1}", held_out_of(task), latest.count, [e and _cell(e) for e in cells]))
    return {"moments": [_name(moment) for moment in moments], "after": AFTER, "rows": rows}


def _cell(e: Estimate) -> tuple[str, int, str]:
    return f"{e.value:.0f}", round(e.value / 10), f"{e.low:.0f}\N{EN DASH}{e.high:.0f}"


def _shown(estimates: Estimates) -> list[RoundAccuracy]:
    """The trainings after which something was measured; of too many the last one of each task."""
    moments = [moment for moment in estimates.history if any(moment.accuracy)]
    if len(moments) > MOMENTS:
        last = {moment.task: moment for moment in moments}
        moments = list(last.values())[-MOMENTS:]
    return moments


def _name(moment: RoundAccuracy) -> str:
    return f"{moment.task + 1}.{moment.round + 1}"


def learning_curve(app: State, estimates: Estimates) -> dict[str, Any] | None:
    """The accuracy of the latest task over its labels, and how it is expected to go on."""
    measured = estimates.curve
    if not measured or not measured[-1].held:
        return None
    task = estimates.history[-1].task
    shown = [moment.accuracy[task] for moment in estimates.history if moment.task == task]
    points = [Point(m.labels, e.value, e.low, e.high) for m, e in zip(measured, shown, strict=False) if e is not None]
    first, last = measured[0].labels, measured[-1].labels
    steps = [first + (AHEAD * last - first) * i / 40 for i in range(41)]
    ahead = predicted_accuracy(measured, steps)
    band = [Point(n, mid, low, high) for n, (low, mid, high) in zip(steps, ahead, strict=False)]
    alt = f"Accuracy on task {task + 1} by its labels, with intervals, and how it is expected to go on."
    return {
        "task": task + 1,
        "plot": curve(points, band, "labels of the task", alt),
        "forecast": estimates.forecast.text if estimates.forecast else "",
        "held": counted(measured[-1].held, "held-out example"),
        "to": held_out_of(task),
    }


def forgetting(estimates: Estimates) -> Markup:
    """The plot of forgetting after each training, with a line at zero; empty before the second task is learned.

    A line for each of the tasks that have lost most. It begins at zero, where its task had been learned.
    """
    moments = _shown(estimates)
    lines = []
    for task in sorted(_most_fallen(moments)):
        fallen = [(x, moment.forgetting[task]) for x, moment in enumerate(moments) if task < moment.task]
        points = [Point(x, e.value, e.low, e.high) for x, e in fallen if e is not None]
        if points[0].x > 0:
            points.insert(0, Point(points[0].x - 1, 0.0, 0.0, 0.0))
        lines.append(Series(f"task {task + 1}", points, held_out_of(task)))
    if not lines:
        return Markup()
    first = int(min(line.points[0].x for line in lines))
    lines = [Series(s.name, [replace(p, x=p.x - first) for p in s.points], s.to) for s in lines]
    every = [point for line in lines for point in line.points]
    low, high = min(-10.0, *(p.low for p in every)), max(10.0, *(p.high for p in every))
    ticks = [_name(moment) for moment in moments[first:]]
    alt = "Forgetting of each task after each training, with intervals; the table below has the latest numbers."
    return plot(lines, ticks, AFTER, alt, low, high)


def _most_fallen(moments: Sequence[RoundAccuracy]) -> list[int]:
    """The tasks that have lost most by now, at most `FALLEN`."""
    last = moments[-1].forgetting if moments else ()
    fallen = [(task, e.value) for task, e in enumerate(last) if e is not None]
    return [task for task, _ in sorted(fallen, key=lambda one: -one[1])[:FALLEN]]


router = APIRouter(prefix="/api")
Number = Annotated[int, Path(ge=0, le=2**62)]
SNIPPET = 200  # characters of a text that are shown
UNLABELLED, PICKED, LABELLED, SKIPPED = range(4)


@router.get("/map")
def pool_map(request: Request, person: Limited) -> dict[str, Any]:
    """[item, x, y, state, class] of each item shown, x and y from 0 to 1000; class -1: none."""
    app = request.app.state
    hidden = api.hidden(app, person)
    rows = {row.item: row for row in app.project.store.everything() if not row.answered or row.item not in hidden}
    latest = sorted(rows.values(), key=lambda row: (row.answered, -(row.time or 0.0)))
    items, places, total = app.pool_map.shown([row.item for row in latest])
    points = [
        [item, round(1000 * x), round(1000 * y), *_state(rows.get(item))]
        for item, (x, y) in zip(items.tolist(), places.tolist(), strict=True)
    ]
    names = {c.id: c.name for c in app.project.store.classes()}
    return {"points": points, "total": total, "classes": names, "images": app.project.settings.kind == "images"}


@router.get("/item/{item}")
def item(item: Number, request: Request, person: Limited) -> dict[str, Any]:
    """What is shown of an item."""
    try:
        shown = request.app.state.project.item(item)
    except InputError as error:
        raise HTTPException(404, "There is no such item.") from error
    text = shown.text or ", ".join(f"{name} {value}" for name, value in shown.fields)
    return {"item": item, "kind": shown.kind, "snip": text[:SNIPPET]}


@router.get("/changes")
def changes(request: Request, person: Limited) -> dict[str, Any]:
    """A text that is another one when the dashboard would be."""
    return {"stamp": api.stamp(request.app.state)}


def _state(row: Reviewed | None) -> tuple[int, int]:
    if row is None:
        return UNLABELLED, -1
    if not row.answered:
        return PICKED, -1
    return (SKIPPED, -1) if row.class_id is None else (LABELLED, row.class_id)
