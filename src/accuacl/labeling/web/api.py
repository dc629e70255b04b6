"""What the page's script requests. Answers that change the view carry the state of the round and the next example."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, Field
from starlette.datastructures import State

from accuacl.labeling.project import Item, RoundAccuracy, training_gain
from accuacl.labeling.store import Act, Class, Expected, Person, Pick, Status, living
from accuacl.labeling.web import session
from accuacl.labeling.web.session import Limited
from accuacl.labeling.web.trainer import Activity

router = APIRouter(prefix="/api")
RequestId = Annotated[str, Field(min_length=8, max_length=100, pattern=r"^[\w.-]+$")]
Number = Annotated[int, Field(ge=0, le=2**62)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
View = dict[str, Any]


class LoginRequest(BaseModel):
    token: Annotated[str, Field(min_length=1, max_length=200)]


class ItemRequest(BaseModel):
    item: Number


class LabelRequest(BaseModel):
    item: Number
    class_id: Number
    request: RequestId


class SkipRequest(BaseModel):
    item: Number
    request: RequestId


class FlagRequest(BaseModel):
    item: Number
    reason: Annotated[str, Field(max_length=2000)] = ""
    request: RequestId


class UndoRequest(BaseModel):
    request: RequestId


@router.post("/login")
def login(body: LoginRequest, request: Request, response: Response) -> View:
    """Exchange an invitation for a session."""
    session.log_in(request, response, body.token)
    return {}


@router.post("/logout")
def logout(request: Request, response: Response) -> View:
    """End the session."""
    session.log_out(request, response)
    return {}


@router.get("/state")
def state(request: Request, person: Limited) -> View:
    """The state of the round and the classes; leases nothing."""
    return round_state(request.app.state, person)


@router.post("/next")
def next_pick(request: Request, person: Limited) -> View:
    """The next example, leased to the person."""
    return turn(request.app.state, person)


@router.post("/label")
def label(body: LabelRequest, request: Request, person: Limited) -> View:
    """Save a label, synced to the disk before this answers; the next example."""
    return turn(request.app.state, person, Act("label", body.request, body.item, body.class_id))


@router.post("/skip")
def skip(body: SkipRequest, request: Request, person: Limited) -> View:
    """Skip an example; the next one."""
    return turn(request.app.state, person, Act("skip", body.request, body.item))


@router.post("/undo")
def undo(body: UndoRequest, request: Request, person: Limited) -> View:
    """Undo the person's last label or skip; that example again."""
    return turn(request.app.state, person, Act("undo", body.request))


@router.post("/correct")
def correct(body: LabelRequest, request: Request, person: Limited) -> View:
    """Change the label of an item that has one, in any round; annotators only their own."""
    request.app.state.project.store.correct(person, body.item, body.class_id, body.request, own=not person.lead)
    return {}


@router.post("/renew")
def renew(body: ItemRequest, request: Request, person: Limited) -> View:
    """Extend the lease of an item."""
    request.app.state.project.store.renew(person, body.item)
    return {}


@router.post("/release")
def release(body: ItemRequest, request: Request, person: Limited) -> View:
    """Release an item, so that others can have it."""
    request.app.state.project.store.release(person, body.item)
    return {}


@router.get("/guess/{item}")
def guess(item: Number, request: Request, person: Limited) -> View:
    """The model's guess for the example on the screen: only on request, so that it influences nobody."""
    pick = request.app.state.project.store.held(person)
    if pick is None or pick.item != item:
        raise HTTPException(409, "Your lease of this example has expired.")
    request.app.state.project.store.show_guess(person, pick)  # since it may influence the answer
    return guess_of(request.app.state, pick)


@router.post("/flag")
def flag(body: FlagRequest, request: Request, person: Limited) -> View:
    """Ask a lead to look at an item."""
    request.app.state.project.store.flag(person, body.item, body.reason, body.request)
    return {}


def round_state(app: State, person: Person) -> View:
    """The state of the round, and the classes."""
    store = app.project.store
    return _state(app, person, store.status(), store.classes(), store.can_undo(person))


def hidden(app: State, person: Person) -> set[int]:
    """The items of which a person is told nothing that others or the model have said, because they are still to be
    asked about them. Leads see everything.
    """
    return set() if person.lead else app.project.store.still_asked(person)


def stamp(app: State) -> str:
    """A text that is another one when something has changed. A page takes it before it gathers what it shows."""
    now: Activity = app.trainer.now
    busy = "busy" if now.busy else now.trouble
    return f"{app.project.store.latest_change()}/{len(app.project.tasks.all())}/{busy}"


def _state(app: State, person: Person, status: Status | None, classes: list[Class], undo: bool) -> View:
    now: Activity = app.trainer.now
    phase = _phase(app, status, now)
    task, round = (status.task, status.round) if status else (0, 0)
    labelled, skipped = (status.labelled, status.skipped) if status else (0, 0)
    return {
        "state": {
            "phase": phase,
            "text": now.text or now.trouble,
            "stage": now.stage,
            "preparing": now.busy and status is not None and not app.project.chosen(task, round),
            "progress": now.done,
            "task": task,
            "round": round,
            "rounds": 0 if app.project.settings.budget_total else app.project.settings.rounds,
            "total": status.total if status else 0,
            "labelled": labelled,
            "skipped": skipped,
            "free": _free(app, person, status) if status and status.open else 0,
            "undo": undo,
            "trained": _trained(app, task, round),
            "budget": {"used": _before(app, task, round) + labelled, "total": _budget(app, task)},
            **(_all(app) if phase == "done" else {}),
        },
        "classes": [{"id": c.id, "name": c.name} for c in living(classes)],
    }


def _phase(app: State, status: Status | None, now: Activity) -> str:
    if status and status.open and (status.left or status.opinions):
        return "labelling"
    if now.busy:
        return "training"
    if not app.project.tasks.all():
        return "empty"
    return "done" if app.project.state().finished else "waiting"


def _free(app: State, person: Person, status: Status) -> int:
    """How many items the person could be given now, without the one that they have."""
    store = app.project.store
    return max(0, status.left - status.leased) or store.opinions_wanted(person) or int(store.can_be_spared(person))


def _all(app: State) -> View:
    """How many items there are, and how many of them have a label."""
    return {"given": app.project.store.given(), "items": sum(task.count for task in app.project.tasks.all())}


def _trained(app: State, task: int, round: int) -> View | None:
    """The accuracy on all held-out items after the last training, and before it if they were the same; percent.

    It is computed once for each round and kept.
    """
    if app.trained[:2] != (task, round):
        moments = app.project.estimates().history[-2:]
        app.trained = (task, round, trained(moments) if moments else None)
    found: View | None = app.trained[2]
    return found


def trained(moments: Sequence[RoundAccuracy]) -> View | None:
    """What the page says of the last two moments."""
    found = training_gain(moments)
    if found is None:
        return None
    before = None if found.before is None else round_half_up(found.before)
    return {"before": before, "now": round_half_up(found.now), "count": found.count}


def round_half_up(value: float) -> int:
    return math.floor(value + 0.5)


def _before(app: State, task: int, round: int) -> int:
    """Labels of the earlier rounds that the budget is for. These are closed, so they are counted once and kept."""
    counted: tuple[int, int, int] = app.counted
    if counted[:2] != (task, round):
        store = app.project.store
        earlier = [pick.item for r in range(round) for pick in store.picks(task, r)]
        whole = app.project.settings.budget_total
        before = store.used_elsewhere(task, round) if whole else len(store.labels(earlier))
        counted = app.counted = (task, round, before)
    return counted[2]


def _budget(app: State, task: int) -> int:
    """How many labels the task may have, or the whole project."""
    if app.project.settings.budget_total:
        return int(app.project.settings.budget_total)
    tasks, settings = app.project.tasks.all(), app.project.settings
    return min(settings.per_round * settings.rounds, tasks[task].count) if tasks else 0


def turn(app: State, person: Person, act: Act | None = None) -> View:
    """Do what the person did; the same, and the next example, leased to them (None if there is none), and those that
    will probably come after it, for the page to load.
    """
    told: dict[int, tuple[int, ...]] = app.expected
    others = frozenset(item for id, items in told.items() if id != person.id for item in items)
    turn = app.project.store.turn(person, act, Expected(told.get(person.id, ()), others))
    if act is not None and act.kind == "undo" and turn.done is None:
        raise HTTPException(422, "You have nothing to undo in this round; correct earlier labels under Review.")
    told[person.id] = tuple(pick.item for pick in turn.ahead)
    view = _state(app, person, turn.status, turn.classes, turn.undo)
    if turn.pick is None:
        told.pop(person.id, None)
        if view["state"]["phase"] == "waiting":
            app.trainer.poke()
    round, total = view["state"]["round"], view["state"]["total"]
    shown = None if turn.pick is None else example(app, turn.pick, round, total)
    return {**view, "pick": shown, "ahead": [example(app, pick, round, total) for pick in turn.ahead]}


def example(app: State, pick: Pick, round: int, total: int) -> View:
    """A pick of a round, which has so many, without the model's guess, which is shown only on request."""
    item = app.project.item(pick.item)
    given = pick.scores or {"draw": math.nan}  # without a score it was drawn at random, to be held out
    scores = {name: value if math.isfinite(value) else None for name, value in given.items()}
    covers = round == 0 and app.project.settings.first_round == "coverage"  # whatever chooses the other rounds
    strategy = "coverage" if covers else app.project.settings.strategy
    meanings = {name: meaning(strategy, name) for name in scores}
    shown = {"item": pick.item, "rank": pick.rank, "of": total, "kind": item.kind}
    shown |= {"scores": scores, "meanings": meanings}
    if item.kind == "image":
        return {**shown, "image": f"/item/{pick.item}/image"}
    if item.kind == "text":
        return {**shown, "text": item.text}
    return {**shown, "fields": fields(item)}


def guess_of(app: State, pick: Pick) -> View:
    """The name of the class that the model guesses; None if it has no guess."""
    names = {c.id: c.name for c in app.project.store.classes()}
    name = None if pick.guess is None else names.get(pick.guess)
    return {"name": name, "confidence": pick.confidence}


def fields(item: Item) -> list[tuple[str, str]]:
    """The fields shown for a vector or record, as text; a dash where a value is missing."""
    digits = 12 if item.kind == "record" else 6
    return [(name, _as_text(value, digits)) for name, value in item.fields]


def _as_text(value: Any, digits: int) -> str:
    if value is None or value == "":
        return "\N{EN DASH}"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


MEANINGS = {
    "distribution": "how far this example is from what the old and new tasks need together; smaller is better",
    "magnitude": "how much the model can learn from this example; larger is better",
    "entropy": "how undecided the model is between all classes (nats); larger is chosen first",
    "confidence": "the probability that the model gives its guess; smaller is chosen first",
    "margin": "how much more probable the model's first guess is than its second; smaller is chosen first",
    "gain": "how much this example adds to the information of those labelled or chosen before it; larger is better",
    "draw": "drawn at random from the task's examples",
    "accuacl": "1 if AccuACL has chosen this example, 0 if the other half of the strategy has",
}
DISTANCES = {  # what `distance` is measured from depends on the strategy
    "kcenter": "how far this example is, in the model's embedding, from the nearest one labelled in this task or "
    "chosen before it; the farthest is chosen first",
    "kcenter+memory": "how far this example is, in the model's embedding, from the nearest one labelled in this task, "
    "kept in the replay memory or chosen before it; the farthest is chosen first",
    "badge": "how much the training step that this example would cause differs from the most similar one among those "
    "chosen before it in this round (for the first: how large the step is); larger distances are drawn more often",
    "badge+memory": "how much the training step that this example would cause differs from the most similar one among "
    "those in the replay memory or chosen before it in this round (for the first, without a memory: how large the step "
    "is); larger distances are drawn more often",
    "typiclust": "how far this example is, on average, from its 20 nearest in its cluster; the smallest is chosen "
    "first",
}
COVERS = "how many of the task's examples this one newly stands for; larger is better"
GAINS = {  # and so does what is gained
    "coverage": COVERS,
    "coverage+memory": "how many of the task's examples this one newly stands for, not counting those that the "
    "replay memory stands for; larger is better",
    "accuacl+coverage": COVERS,
    "uncertain-coverage": "how many of the task's examples this one newly stands for, each counted by how undecided "
    "the model is about it; larger is better",
    "fisher-ratio": "how much this example lowers the uncertainty about old and new tasks together; larger is better",
}
UNKNOWN = "a score of the strategy"  # a plugin's


def meaning(strategy: str, score: str) -> str:
    """What a score of a pick means.

    >>> meaning("entropy", "entropy")
    'how undecided the model is between all classes (nats); larger is chosen first'
    """
    if score == "distance":
        return DISTANCES.get(strategy, UNKNOWN)
    if score == "gain" and strategy in GAINS:
        return GAINS[strategy]
    return MEANINGS.get(score, UNKNOWN)
