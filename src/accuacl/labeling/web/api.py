"""What the page's script requests. Answers that change the view carry the state of the round and the next example."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, Field

from accuacl.labeling.store import Act
from accuacl.labeling.web import session, views
from accuacl.labeling.web.session import Limited

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
    return views.state(request.app.state, person)


@router.post("/next")
def next_pick(request: Request, person: Limited) -> View:
    """The next example, leased to the person."""
    return views.turn(request.app.state, person)


@router.post("/label")
def label(body: LabelRequest, request: Request, person: Limited) -> View:
    """Save a label, synced to the disk before this answers; the next example."""
    return views.turn(request.app.state, person, Act("label", body.request, body.item, body.class_id))


@router.post("/skip")
def skip(body: SkipRequest, request: Request, person: Limited) -> View:
    """Skip an example; the next one."""
    return views.turn(request.app.state, person, Act("skip", body.request, body.item))


@router.post("/undo")
def undo(body: UndoRequest, request: Request, person: Limited) -> View:
    """Undo the person's last label or skip; that example again."""
    return views.turn(request.app.state, person, Act("undo", body.request))


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
    return views.guess(request.app.state, pick)


@router.post("/flag")
def flag(body: FlagRequest, request: Request, person: Limited) -> View:
    """Ask a lead to look at an item."""
    request.app.state.project.store.flag(person, body.item, body.reason, body.request)
    return {}
