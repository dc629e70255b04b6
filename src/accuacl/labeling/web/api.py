"""What the labelling page's script calls. Answers that change the view carry the state of the round and the next
example.

People who may still be asked about already labelled examples are shown nothing that would reveal which these are,
before or after they answer: see `is_blind` and `hidden`. Leads see everything.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field

from accuacl.labeling.project import Item, budget_of, training_gain, unlearned_guesses
from accuacl.labeling.store import Act, Expected, Person, Pick, Status, Turn, living
from accuacl.labeling.web.images import media_type
from accuacl.labeling.web.session import Limited
from accuacl.labeling.web.site import Here, Number, Site, View
from accuacl.labeling.web.trainer import Activity

router = APIRouter(prefix="/api")
RequestId = Annotated[str, Field(min_length=8, max_length=100, pattern=r"^[\w.-]+$")]


class ItemRequest(BaseModel):
    item: Number


class LabelRequest(BaseModel):
    item: Number
    class_id: Number
    request: RequestId


class ManyRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]


class ReasonRequest(BaseModel):
    item: Number
    reason: Annotated[str, Field(max_length=2000)] = ""
    request: RequestId


class UndoRequest(BaseModel):
    request: RequestId


@router.get("/state")
def state(site: Here, person: Limited) -> View:
    """The state of the round, and the classes. Leases nothing."""
    return round_state(site, person)


@router.post("/next")
def next_pick(site: Here, person: Limited) -> View:
    """The next example, leased to the person."""
    return _turn(site, person)


@router.post("/label")
def label(body: LabelRequest, site: Here, person: Limited) -> View:
    """Save a label; it is synced to the disk before this answers. Returns the next example."""
    return _turn(site, person, Act("label", body.request, body.item, body.class_id))


@router.post("/skip")
def skip(body: ReasonRequest, site: Here, person: Limited) -> View:
    """Skip an example, with an optional reason. Returns the next one."""
    site.comment_bytes.take(person.id, len(body.reason.encode()))
    return _turn(site, person, Act("skip", body.request, body.item, reason=body.reason))


@router.post("/undo")
def undo(body: UndoRequest, site: Here, person: Limited) -> View:
    """Undo the person's last label or skip. Returns that example again."""
    return _turn(site, person, Act("undo", body.request))


@router.post("/correct")
def correct(body: LabelRequest, site: Here, person: Limited) -> View:
    """Change the label of an item that has one, in any round. Annotators may change only their own."""
    site.store.correct(person, body.item, body.class_id, body.request, own=not person.lead)
    return {}


@router.post("/renew")
def renew(body: ItemRequest, site: Here, person: Limited) -> View:
    """Extend the lease of an item."""
    site.store.renew(person, body.item)
    return {}


@router.post("/release")
def release(body: ItemRequest, site: Here, person: Limited) -> View:
    """Release an item, so that others can have it."""
    site.store.release(person, body.item)
    return {}


@router.get("/guess/{item}")
def guess(item: Number, site: Here, person: Limited) -> View:
    """The model's guess for the example on the screen: only on request, so that it influences nobody."""
    pick = site.store.held(person)
    if pick is None or pick.item != item:
        raise HTTPException(409, "Your lease of this example has expired.")
    pick = _visible_guess(site, person, pick)
    site.store.show_guess(person, pick)  # since it may influence the answer
    names = site.class_names()
    return {"name": None if pick.guess is None else names.get(pick.guess), "confidence": pick.confidence}


@router.post("/flag")
def flag(body: ReasonRequest, site: Here, person: Limited) -> View:
    """Ask a lead to look at an item."""
    site.comment_bytes.take(person.id, len(body.reason.encode()))
    site.store.flag(person, body.item, body.reason, body.request)
    return {}


# What people are told


def hidden(site: Site, person: Person) -> set[int]:
    """The items of which a person is told nothing that others or the model have said, because they are still to be
    asked about them.
    """
    return set() if person.lead else site.store.still_asked(person)


def is_blind(site: Site, person: Person) -> bool:
    """Whether to hide the number of labels from the person: second opinions and answers to gold examples do not raise
    it, which would give them away.
    """
    return not person.lead and site.store.asks_twice()


def stamp(site: Site) -> str:
    """A text that changes whenever anything else does. A page reads it before it collects what it shows."""
    now = site.trainer.now
    busy = "busy" if now.busy else now.trouble
    return f"{site.store.latest_change()}/{len(site.project.tasks.all())}/{busy}"


def round_state(site: Site, person: Person) -> View:
    """The state of the round, and the classes."""
    return _state(site, person, site.store.look(person))


def _turn(site: Site, person: Person, act: Act | None = None) -> View:
    """Record what the person did. Returns the state of the round, the next example, leased to them (None if there is
    none), and those that will probably come after it, for the page to load.
    """
    expected = Expected(site.ahead.get(person.id, ()), site.expected_by_others(person.id))
    turn = site.store.turn(person, act, expected)
    if act is not None and act.kind == "undo" and turn.done is None:
        raise HTTPException(422, "You have nothing to undo in this round; correct earlier labels under Review.")
    view = _state(site, person, turn)
    if turn.pick is None:
        site.ahead.pop(person.id, None)
        if view["state"]["phase"] == "waiting":
            site.trainer.poke()
    else:
        site.ahead[person.id] = tuple(pick.item for pick in turn.ahead)
    blind = turn.asks_twice and not person.lead
    picks = [turn.pick, *turn.ahead] if turn.pick else turn.ahead
    examples = [example(site, pick) | ({} if blind else reasons(site, pick, turn.status)) for pick in picks]
    return {**view, "pick": examples.pop(0) if turn.pick else None, "ahead": examples}


def _state(site: Site, person: Person, turn: Turn) -> View:
    now, status = site.trainer.now, turn.status
    phase = _phase(site, status, now)
    task, round = (status.task, status.round) if status else (0, 0)
    state = {
        "phase": phase,
        "text": now.text or now.trouble,
        "stage": now.stage,
        "preparing": now.busy and status is not None and not site.project.chosen(task, round),
        "progress": now.done,
        "task": task,
        "round": round,
        "rounds": site.project.settings.rounds_of(task),
        "own": {"labelled": turn.own.labelled, "skipped": turn.own.skipped},
        "free": turn.free,
        "undo": turn.undo,
        "trained": _trained(site),
    }
    if phase == "done":
        state |= {"given": site.store.given(), "items": sum(task.count for task in site.project.tasks.all())}
    if person.lead or not turn.asks_twice:
        used, total = budget_of(site.project.settings, site.project.tasks.all(), site.store, task)
        counts = ("total", "labelled", "skipped", "opinions")
        state |= {name: getattr(status, name) if status else 0 for name in counts}
        state["budget"] = {"used": used, "total": total}
    return {"state": state, "classes": [{"id": c.id, "name": c.name} for c in living(turn.classes)]}


def _phase(site: Site, status: Status | None, now: Activity) -> str:
    if status and status.open and (status.left or status.opinions):
        return "labelling"
    if now.busy:
        return "training"
    if not site.project.tasks.all():
        return "empty"
    return "done" if site.project.state().finished else "waiting"


def _trained(site: Site) -> View | None:
    """The accuracy on all held-out items after the last training, and before it if they were the same; percent."""

    def gain() -> View | None:
        gain = training_gain(site.project.estimates().history)
        if gain is None:
            return None
        before = None if gain.before is None else _round_half_up(gain.before)
        return {"before": before, "now": _round_half_up(gain.now), "count": gain.count}

    return site.kept("trained", site.journal_version(), gain)


def _round_half_up(value: float) -> int:
    return math.floor(value + 0.5)


# The model's guesses


def guessed(site: Site, pick: Pick) -> Pick:
    """The pick with a guess: the recorded one or, without one, that of the present model, if it has not learned it."""
    if pick.guess is not None:
        return pick
    guess, confidence = _unlearned(site).get(pick.item, (None, None))
    return replace(pick, guess=guess, confidence=confidence)


def _visible_guess(site: Site, person: Person, pick: Pick) -> Pick:
    """The guess, if showing it cannot reveal gold: if only some items had one, gold would be recognised by that."""
    if not is_blind(site, person):
        return guessed(site, pick)
    lacking = site.store.gold_without_guess()
    may_show = site.store.has_guesses() and (not lacking or lacking <= _unlearned(site).keys())
    return guessed(site, pick) if may_show else replace(pick, guess=None, confidence=None)


def _unlearned(site: Site) -> dict[int, tuple[int, float]]:
    return site.kept("unlearned", site.journal_version(), lambda: unlearned_guesses(site.project))


# Examples, and why they were chosen


def example(site: Site, pick: Pick) -> View:
    """What is shown of a pick; not the model's guess, which is shown only on request."""
    item = site.project.item(pick.item)
    shown = {"item": pick.item, "kind": item.kind}
    if item.kind == "image":
        return {**shown, "image": f"{site.root}/item/{pick.item}/image"}
    if item.kind == "text":
        return {**shown, "text": item.text}
    if item.kind == "file":
        shown |= {"file": f"{site.root}/item/{pick.item}/file", "media": media_type(item.name).partition("/")[0]}
    return {**shown, "fields": fields(item)}


def fields(item: Item) -> list[tuple[str, str]]:
    """The fields shown for a vector or record, as text; a dash where a value is missing."""
    digits = 12 if item.kind == "record" else 6
    return [(name, _as_text(value, digits)) for name, value in item.fields]


def _as_text(value: Any, digits: int) -> str:
    if value is None or value == "":
        return "\N{EN DASH}"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def reasons(site: Site, pick: Pick, status: Status | None) -> View:
    """Why a pick was chosen: its rank in the round, its scores, and what these mean."""
    given = pick.scores or {"draw": math.nan}  # without a score it was drawn at random, to be held out
    scores = {name: value if math.isfinite(value) else None for name, value in given.items()}
    settings, first = site.project.settings, status is not None and status.round == 0
    strategy = "coverage" if first and settings.first_round == "coverage" else settings.strategy
    meanings = {name: meaning(strategy, name) for name in scores}
    return {"rank": pick.rank, "of": status.total if status else 0, "scores": scores, "meanings": meanings}


MEANINGS = {
    "distribution": "how far this example is from what the old and new tasks need together; smaller is better",
    "magnitude": "how much the model can learn from this example; larger is better",
    "entropy": "how undecided the model is between all classes (nats); larger is chosen first",
    "confidence": "the probability that the model gives its guess; smaller is chosen first",
    "margin": "how much more probable the model's first guess is than its second; smaller is chosen first",
    "gain": "how much this example adds to the information of those labelled or chosen before it; larger is better",
    "draw": "drawn at random from the task's examples",
    "class": "the class for which this example was chosen, by its number in the order of the classes",
    "behind": "how much less probable that class is than the model's guess; 0 if it is the guess",
    "accuacl": "1 if AccuACL has chosen this example, 0 if the other half of the strategy has",
}
COVERS = "how many of the task's examples this one newly stands for; larger is better"
BY_STRATEGY = {  # what these scores mean depends on the strategy
    ("kcenter", "distance"): "how far this example is, in the model's embedding, from the nearest one labelled in this "
    "task or chosen before it; the farthest is chosen first",
    ("kcenter+memory", "distance"): "how far this example is, in the model's embedding, from the nearest one labelled "
    "in this task, kept in the replay memory or chosen before it; the farthest is chosen first",
    ("badge", "distance"): "how much the training step that this example would cause differs from the most similar one "
    "among those chosen before it in this round (for the first: how large the step is); larger distances are drawn "
    "more often",
    ("badge+memory", "distance"): "how much the training step that this example would cause differs from the most "
    "similar one among those in the replay memory or chosen before it in this round (for the first, without a memory: "
    "how large the step is); larger distances are drawn more often",
    ("typiclust", "distance"): "how far this example is, on average, from its 20 nearest in its cluster; the smallest "
    "is chosen first",
    ("anchoral", "distance"): "how far this example is from those labelled or chosen before it, as the strategy that "
    "AnchorAL uses (badge, unless another was given) measures it",
    ("coverage", "gain"): COVERS,
    ("coverage+memory", "gain"): "how many of the task's examples this one newly stands for, not counting those that "
    "the replay memory stands for; larger is better",
    ("accuacl+coverage", "gain"): COVERS,
    ("uncertain-coverage", "gain"): "how many of the task's examples this one newly stands for, each counted by how "
    "undecided the model is about it; larger is better",
    ("fisher-ratio", "gain"): "how much this example lowers the uncertainty about old and new tasks together; larger "
    "is better",
}
UNKNOWN = "a score of the strategy"  # a plugin's


def meaning(strategy: str, score: str) -> str:
    """What a score of a pick means.

    >>> meaning("entropy", "entropy")
    'how undecided the model is between all classes (nats); larger is chosen first'
    """
    return BY_STRATEGY.get((strategy, score)) or MEANINGS.get(score, UNKNOWN)
