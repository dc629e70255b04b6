"""What the dashboard draws over time: accuracy after each training, the learning curve, forgetting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from markupsafe import Markup
from starlette.datastructures import State

from accuacl.base.names import counted
from accuacl.labeling.project import Estimate, Estimates, Moment, foreseen
from accuacl.labeling.web.charts import Point, Series, curve, plot

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

    def of(task: int, moment: Moment) -> Estimate | None:
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


def _shown(estimates: Estimates) -> list[Moment]:
    """The trainings after which something was measured; of too many the last one of each task."""
    moments = [moment for moment in estimates.history if any(moment.accuracy)]
    if len(moments) > MOMENTS:
        last = {moment.task: moment for moment in moments}
        moments = list(last.values())[-MOMENTS:]
    return moments


def _name(moment: Moment) -> str:
    return f"{moment.task + 1}.{moment.round + 1}"


def learning_curve(app: State, estimates: Estimates) -> dict[str, Any] | None:
    """The accuracy of the latest task over its labels, and how it is expected to go on."""
    measured = app.project.learning_curve(estimates)
    if not measured or not measured[-1].held:
        return None
    task = estimates.history[-1].task
    shown = [moment.accuracy[task] for moment in estimates.history if moment.task == task]
    points = [Point(m.labels, e.value, e.low, e.high) for m, e in zip(measured, shown, strict=False) if e is not None]
    first, last = measured[0].labels, measured[-1].labels
    steps = [first + (AHEAD * last - first) * i / 40 for i in range(41)]
    band = [Point(n, mid, low, high) for n, (low, mid, high) in zip(steps, foreseen(measured, steps), strict=False)]
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


def _most_fallen(moments: Sequence[Moment]) -> list[int]:
    """The tasks that have lost most by now, at most `FALLEN`."""
    last = moments[-1].forgetting if moments else ()
    fallen = [(task, e.value) for task, e in enumerate(last) if e is not None]
    return [task for task, _ in sorted(fallen, key=lambda one: -one[1])[:FALLEN]]
