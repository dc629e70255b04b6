"""The dashboard: what to do, estimates with their intervals, counts, confusions, the map, the latest picks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from accuacl.base.errors import counted
from accuacl.labeling.project import (
    Advice,
    ClassEstimate,
    Doubts,
    Estimate,
    Estimates,
    Item,
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
from accuacl.labeling.web.charts import Point, Series, curve, plot, with_interval
from accuacl.labeling.web.pages import render, snip
from accuacl.labeling.web.project_page import may_go_on
from accuacl.labeling.web.session import Limited
from accuacl.labeling.web.site import Here, Number, Site, View

router = APIRouter()
MOST = 24  # classes in the confusion matrix
SHEET = 24  # picks of a round that are shown
UNLABELLED, PICKED, LABELLED, SKIPPED = range(4)  # on the map


@router.get("/dashboard", response_class=HTMLResponse)
def show(request: Request, site: Here, person: Limited) -> str:
    """How good the model is and what people have done."""
    stamp = api.stamp(site)
    return render(request, "dashboard.html", person, here="dashboard", stamp=stamp, **gather(site, person))


@router.get("/api/changes")
def changes(site: Here, person: Limited) -> View:
    """A text that changes whenever the dashboard does."""
    return {"stamp": api.stamp(site)}


@router.get("/api/map")
def pool_map(site: Here, person: Limited) -> View:
    """[item, x, y, state, class] of each item shown, x and y from 0 to 1000; class -1: none.

    Annotators are not shown which items have a label among those that they may still be asked about.
    """
    hidden = api.hidden(site, person) if api.is_blind(site, person) else set()
    rows = {row.item: row for row in site.store.everything() if row.item not in hidden}
    latest = sorted(rows.values(), key=lambda row: (row.answered, -(row.time or 0.0)))
    items, places, total = site.pool_map.shown([row.item for row in latest])
    points = [
        [item, round(1000 * x), round(1000 * y), *_map_state(rows.get(item))]
        for item, (x, y) in zip(items.tolist(), places.tolist(), strict=True)
    ]
    return {
        "points": points,
        "total": total,
        "classes": site.class_names(),
        "images": site.project.settings.kind == "images",
    }


def _map_state(row: Reviewed | None) -> tuple[int, int]:
    if row is None:
        return UNLABELLED, -1
    if not row.answered:
        return PICKED, -1
    return (SKIPPED, -1) if row.class_id is None else (LABELLED, row.class_id)


@router.get("/api/item/{item}")
def item(item: Number, site: Here, person: Limited) -> View:
    """What is shown of an item."""
    shown = site.item(item)
    return {"item": item, "kind": shown.kind, "snip": snip(shown)}


def gather(site: Site, person: Person) -> View:
    """Everything that the template needs, for one person."""
    estimates, every = site.project.estimates(), site.store.everything()
    rows, blind = every, api.is_blind(site, person)
    if blind:
        hidden = api.hidden(site, person)
        every = [row for row in every if row.item not in hidden]
        rows = _of_closed_rounds(site, rows)
        labelled = [row for row in rows if row.class_id is not None]
        by_person = Counter(row.person for row in labelled if row.person is not None)
        labels = Counter(row.class_id for row in labelled if row.class_id is not None)
        estimates = replace(estimates, labels_by_class=dict(labels), labels_by_person=dict(by_person))
    names = site.class_names()
    classes = by_class(estimates, [c.id for c in living(site.store.classes())])
    return {
        "advice": [] if blind else advice(site, rows, estimates, classes, names),
        "more": may_go_on(site.project, site.project.state()),
        "facts": facts(site, estimates, classes, blind),
        "trouble": site.trainer.now.trouble,
        "blind": blind,
        "heatmap": heatmap(estimates),
        "calibration": estimates.calibration,
        "curve": learning_curve(estimates),
        "forgetting": forgetting(estimates),
        "fewer": FALLEN if sum(t.forgetting is not None for t in estimates.tasks) > FALLEN else 0,
        "tasks": estimates.tasks,
        "held_out_of": held_out_of,
        "names": names,
        "classes": classes,
        "class_forgetting": bool(estimates.class_forgetting),
        "people": site.people_names(),
        "labels_by_person": sorted(estimates.labels_by_person.items(), key=lambda item: -item[1]),
        "confusion": confusion(estimates),
        "sheets": sheets(site, every),
    }


def _of_closed_rounds(site: Site, rows: list[Reviewed]) -> list[Reviewed]:
    """The parts that answers to the open round cannot change."""
    status = site.store.status()
    current = (status.task, status.round) if status and status.open else None
    return [row for row in rows if (row.task, row.round) != current]


def advice(
    site: Site, rows: list[Reviewed], estimates: Estimates, classes: list[ClassEstimate], names: dict[int, str]
) -> list[tuple[Advice, str]]:
    """What has happened and what to do, each with the address of the answers that it is about."""
    project, state = site.project, site.project.state()
    answered = sum(row.answered for row in rows)
    doubts = Doubts(sum(row.unsettled for row in rows), sum(row.skipped for row in rows), answered)
    gain = training_gain(estimates.history)
    pieces = advise(project.settings, estimates, gain, classes, names, doubts, state.left, state.task)
    if budget := describe_budget(project.settings, project.store, state.tasks):
        pieces.append(Advice(" ".join(budget)))
    return [(piece, _address(piece.about)) for piece in pieces]


def _address(about: Sequence[tuple[str, str]]) -> str:
    """Where to do what a piece of advice says; "": nowhere."""
    if tuple(about) == (("show", "settle"),):
        return "/settle"
    return f"/review?{urlencode(about)}" if about else ""


def facts(site: Site, estimates: Estimates, classes: list[ClassEstimate], blind: bool) -> list[tuple[str, str]]:
    """The overview: names and values."""
    state, status = site.project.state(), site.store.status()
    shown = []
    if status is not None:
        shown.append(("current round", f"Task {status.task + 1}, {state.round_name}"))
    if not blind:
        shown.append(("labels left in the budget", f"{state.left} of {state.budget}"))
    if estimates.overall:
        over = "" if len(estimates.tasks) == 1 else ", mean over tasks"
        shown.append((f"accuracy{over} ({_held(estimates.overall)})", f"{with_interval(estimates.overall)} %"))
    if len(estimates.tasks) > 1 and estimates.over_examples:
        shown.append(("accuracy, mean over examples", f"{with_interval(estimates.over_examples)} %"))
    if estimates.forgetting:
        shown.append(("forgetting, mean over earlier tasks (points)", with_interval(estimates.forgetting)))
    balanced = mean_over_classes(classes)
    if balanced:
        shown.append((f"accuracy, {_over(classes)} ({_held(balanced)})", f"{with_interval(balanced)} %"))
    if classes:
        labelled = sum(estimate.labels > 0 for estimate in classes)
        shown.append(("classes with a label", f"{labelled} of {len(classes)}"))
        shown.append(("labels of the rarest class", str(min(estimate.labels for estimate in classes))))
    return shown


def _over(classes: list[ClassEstimate]) -> str:
    """Which classes a mean is over: those without held-out examples cannot be measured."""
    measured = sum(estimate.accuracy is not None for estimate in classes)
    if measured == len(classes):
        return "mean over classes"
    return f"mean over the {measured} of {len(classes)} classes that can be measured"


def _held(estimate: Estimate) -> str:
    return counted(estimate.count, "held-out example")


def confusion(estimates: Estimates) -> View | None:
    """The counts of held-out items by label and guess; of many classes those that are confused most."""
    wrong: Counter[int] = Counter()
    for (label, guess), count in estimates.confusion.items():
        wrong[label] += count * (label != guess)
        wrong[guess] += count * (label != guess)
    shown = sorted(id for id, _ in wrong.most_common(MOST))
    return {"shown": shown, "left_out": len(wrong) - len(shown), "counts": estimates.confusion} if shown else None


def sheets(site: Site, rows: Iterable[Reviewed]) -> list[tuple[str, list[tuple[Reviewed, Item]]]]:
    """The picks of the last two rounds that had any, by the name of the round."""
    rounds: dict[tuple[int, int], list[Reviewed]] = {}
    for row in rows:
        rounds.setdefault((row.task, row.round), []).append(row)
    return [
        (f"Task {task + 1}, round {round + 1}", [(row, site.project.item(row.item)) for row in picks[:SHEET]])
        for (task, round), picks in sorted(rounds.items(), reverse=True)[:2]
    ]


# Over time: accuracy and forgetting after each training

MOMENTS = 30  # columns of the heatmap: of more trainings the last one of each task
FALLEN = 4  # lines of the plot of forgetting
AFTER = "after task.round"
AHEAD = 3.0  # how far the learning curve is extended, as a multiple of the labels


def held_out_of(task: int) -> str:
    """Where the held-out examples of a task are reviewed."""
    return f"/review?held=1&task={task}"


def heatmap(estimates: Estimates) -> View | None:
    """Accuracy by task (rows, with the count of held-out items) after each training (columns): text, the colour's
    step from 0 to 10, and the interval."""
    moments = _shown(estimates)
    if not moments:
        return None
    rows = []
    for task, cells in enumerate(zip_longest(*(moment.accuracy for moment in moments))):
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


def learning_curve(estimates: Estimates) -> View | None:
    """The accuracy of the latest task over its labels, and how it is expected to continue."""
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
    alt = f"Accuracy on task {task + 1} by its labels, with intervals, and the forecast."
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
    return [task for task, _ in sorted(fallen, key=lambda pair: -pair[1])[:FALLEN]]
