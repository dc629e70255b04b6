"""What the page shows, as JSON: the state of the round, the classes, and the example to label."""

from __future__ import annotations

import math
from typing import Any

from starlette.datastructures import State

from accuacl.labeling.project import Item
from accuacl.labeling.store import Person, Pick, Status, living
from accuacl.labeling.web.reasons import meaning
from accuacl.labeling.web.trainer import Activity

View = dict[str, Any]


def state(app: State) -> View:
    """The state of the round, and the classes."""
    status: Status | None = app.project.store.status()
    now: Activity = app.trainer.now
    task, round = (status.task, status.round) if status else (0, 0)
    labelled, skipped = (status.labelled, status.skipped) if status else (0, 0)
    classes = [{"id": c.id, "name": c.name} for c in living(app.project.store.classes())]
    return {
        "state": {
            "phase": _phase(app, status, now),
            "text": now.text or now.trouble,
            "progress": now.done,
            "task": task,
            "round": round,
            "rounds": app.project.settings.rounds,
            "total": status.total if status else 0,
            "labelled": labelled,
            "skipped": skipped,
            "free": max(0, status.left - status.leased) if status and status.open else 0,
            "undo": bool(status and status.open and labelled + skipped),
            "budget": {"used": _before(app, task, round) + labelled, "total": _budget(app, task)},
        },
        "classes": classes,
    }


def _phase(app: State, status: Status | None, now: Activity) -> str:
    if now.busy:
        return "training"
    if status and status.open and status.left:
        return "labelling"
    return "done" if app.project.state().finished else "waiting"


def _before(app: State, task: int, round: int) -> int:
    """Labels of the task's earlier rounds. These are closed, so they are counted once and kept."""
    counted: tuple[int, int, int] = app.counted
    if counted[:2] != (task, round):
        store = app.project.store
        earlier = [pick.item for r in range(round) for pick in store.picks(task, r)]
        counted = app.counted = (task, round, len(store.labels(earlier)))
    return counted[2]


def _budget(app: State, task: int) -> int:
    """How many labels the task may have."""
    tasks, settings = app.project.tasks.all(), app.project.settings
    return min(settings.per_round * settings.rounds, tasks[task].count) if tasks else 0


def with_pick(app: State, person: Person) -> View:
    """The same, and the next example, leased to the person; None if there is none."""
    pick = app.project.store.lease(person)
    view = state(app)
    if pick is None and view["state"]["phase"] == "waiting":
        app.trainer.poke()
    return {**view, "pick": None if pick is None else example(app, pick, view["state"]["total"])}


def example(app: State, pick: Pick, total: int) -> View:
    """A pick, without the model's guess, which is shown only on request."""
    item = app.project.item(pick.item)
    scores = {name: value if math.isfinite(value) else None for name, value in pick.scores.items()}
    meanings = {name: meaning(app.project.settings.strategy, name) for name in scores}
    shown = {"item": pick.item, "rank": pick.rank, "of": total, "kind": item.kind}
    shown |= {"scores": scores, "meanings": meanings}
    if item.kind == "image":
        return {**shown, "image": f"/item/{pick.item}/image"}
    if item.kind == "text":
        return {**shown, "text": item.text}
    return {**shown, "fields": fields(item)}


def guess(app: State, pick: Pick) -> View:
    """The name of the class that the model guesses; None if it has no guess."""
    names = {c.id: c.name for c in app.project.store.classes()}
    name = None if pick.guess is None else names.get(pick.guess)
    return {"name": name, "confidence": pick.confidence}


def fields(item: Item) -> list[tuple[str, str]]:
    """The fields shown for a vector, as text."""
    return [(name, f"{value:.6g}" if isinstance(value, float) else str(value)) for name, value in item.fields]
