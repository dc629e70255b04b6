"""The gallery: a person's batch grouped by the model's guess. They strike out the wrong ones and confirm the rest."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.datastructures import State

from accuacl.labeling.store import Expected, Person, Pick, counts_as
from accuacl.labeling.web import api
from accuacl.labeling.web.api import Number
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Limited

router = APIRouter()
BATCH = 60  # items that one person has at a time
MOST = 100  # labels in a request
Many = Annotated[list[Number], Field(min_length=1, max_length=MOST)]
BatchId = Annotated[str, Field(min_length=8, max_length=90, pattern=r"^[\w.-]+$")]  # each label adds its number
View = dict[str, Any]


class Confirmed(BaseModel):
    item: Number
    class_id: Number


class ConfirmRequest(BaseModel):
    labels: Annotated[list[Confirmed], Field(min_length=1, max_length=MOST)]
    request: BatchId


class UndoBatchRequest(BaseModel):
    batch: BatchId
    request: BatchId


class ItemsRequest(BaseModel):
    items: Many


@router.get("/gallery", response_class=HTMLResponse)
def page(request: Request, person: Limited) -> str:
    """The page; its script asks for the batch."""
    return render(request, "gallery.html", person, here="gallery")


@router.post("/api/gallery")
def batch(request: Request, person: Limited) -> View:
    """The person's batch, leased to them, grouped by the model's guess."""
    return _view(request.app.state, person)


@router.post("/api/gallery/label")
def confirm(body: ConfirmRequest, request: Request, person: Limited) -> View:
    """Save all labels in one transaction, synced to the disk before this answers; each counts against the limit."""
    app = request.app.state
    app.requests.take(person.id, len(body.labels) - 1)
    done = app.project.store.label_batch(person, {one.item: one.class_id for one in body.labels}, body.request)
    refused = [text[:1].upper() + text[1:] for text in done.refused.values()]
    return {"saved": done.saved, "refused": refused, **api.round_state(app, person)}


@router.post("/api/gallery/undo")
def undo(body: UndoBatchRequest, request: Request, person: Limited) -> View:
    """Undo the labels of a request, as far as they still stand."""
    app = request.app.state
    undone = app.project.store.undo_batch(person, body.batch, body.request)
    return {"undone": undone, **_view(app, person)}


@router.post("/api/gallery/seen")
def seen(body: ItemsRequest, request: Request, person: Limited) -> View:
    """Record that items have been on the screen, with the model's guesses."""
    request.app.state.project.store.show_guesses(person, body.items)
    return {}


@router.post("/api/gallery/renew")
def renew(body: ItemsRequest, request: Request, person: Limited) -> View:
    """Extend the leases; the answer names those that others have now. The person works on the first."""
    return {"lost": request.app.state.project.store.renew_batch(person, body.items)}


@router.post("/api/gallery/release")
def release(body: ItemsRequest, request: Request, person: Limited) -> View:
    """Release items, so that others can have them."""
    request.app.state.project.store.release_batch(person, body.items)
    return {}


def _view(app: State, person: Person) -> View:
    """The state of the round, and the batch in groups; items that other people's pages expect come last."""
    store = app.project.store
    others = frozenset(item for id, items in app.expected.items() if id != person.id for item in items)
    picks = store.lease_batch(person, BATCH, Expected((), others))
    view = api.round_state(app, person)
    if not picks and view["state"]["phase"] == "waiting":
        app.trainer.poke()
    return {**view, "guesses": bool(picks) or _has_guesses(app), "groups": _groups(app, picks)}


def _has_guesses(app: State) -> bool:
    """Whether the model has guesses for the round: it has none before its first training."""
    store = app.project.store
    status = store.status()
    return status is not None and any(pick.guess is not None for pick in store.picks(status.task, status.round))


def _groups(app: State, picks: list[Pick]) -> list[View]:
    """By class; in each, what the model is surest of comes first."""
    classes = app.project.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    groups: dict[int, list[Pick]] = {}
    for pick in picks:
        assert pick.guess is not None
        groups.setdefault(final[pick.guess], []).append(pick)
    return [
        {
            "class_id": id,
            "name": names[id],
            "items": [_cell(app, pick) for pick in sorted(groups[id], key=lambda pick: -(pick.confidence or 0.0))],
        }
        for id in sorted(groups)
    ]


def _cell(app: State, pick: Pick) -> View:
    item = app.project.item(pick.item)
    shown = {"item": pick.item, "kind": item.kind, "confidence": pick.confidence}
    if item.kind == "image":
        return {**shown, "image": f"/item/{pick.item}/thumb"}
    if item.kind == "text":
        return {**shown, "text": item.text}
    return {**shown, "fields": api.fields(item)}
