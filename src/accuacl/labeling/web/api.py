"""What the page's script asks for. Every answer that matters says how the round stands and what to show next."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import BaseModel, Field

from accuacl.labeling.store import living
from accuacl.labeling.web import session, views
from accuacl.labeling.web.session import Someone

router = APIRouter(prefix="/api")
RequestId = Annotated[str, Field(min_length=8, max_length=100, pattern=r"^[\w.-]+$")]
Number = Annotated[int, Field(ge=0, le=2**62)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
View = dict[str, Any]


class Token(BaseModel):
    token: Annotated[str, Field(min_length=1, max_length=200)]


class Item(BaseModel):
    item: Number


class Labelled(BaseModel):
    item: Number
    class_id: Number
    request: RequestId


class Skipped(BaseModel):
    item: Number
    request: RequestId


class Undone(BaseModel):
    request: RequestId


class Named(BaseModel):
    name: Name


class Merged(BaseModel):
    into: Number


@router.post("/login")
def login(body: Token, request: Request, response: Response) -> View:
    """A token for a cookie."""
    session.log_in(request, response, body.token)
    return {}


@router.post("/logout")
def logout(request: Request, response: Response) -> View:
    """The cookie away."""
    session.log_out(request, response)
    return {}


@router.get("/state")
def state(request: Request, person: Someone) -> View:
    """How the round stands, without taking anything in hand."""
    return views.state(request.app.state)


@router.post("/next")
def next_pick(request: Request, person: Someone) -> View:
    """Something to label, leased to the person who asks."""
    return views.with_pick(request.app.state, person)


@router.post("/label")
def label(body: Labelled, request: Request, person: Someone) -> View:
    """A label, on the disk before this answers; and the next one."""
    request.app.state.project.store.label(person, body.item, body.class_id, body.request)
    return views.with_pick(request.app.state, person)


@router.post("/skip")
def skip(body: Skipped, request: Request, person: Someone) -> View:
    """Leave it out; and the next one."""
    request.app.state.project.store.skip(person, body.item, body.request)
    return views.with_pick(request.app.state, person)


@router.post("/undo")
def undo(body: Undone, request: Request, person: Someone) -> View:
    """Take the last answer back; and its example again."""
    if request.app.state.project.store.undo(person, body.request) is None:
        raise HTTPException(422, "There is nothing to undo in this round; labels of earlier ones can be corrected.")
    return views.with_pick(request.app.state, person)


@router.post("/correct")
def correct(body: Labelled, request: Request, person: Someone) -> View:
    """Another label for an item that has one, of whatever round."""
    request.app.state.project.store.correct(person, body.item, body.class_id, body.request)
    return {}


@router.post("/renew")
def renew(body: Item, request: Request, person: Someone) -> View:
    """Keep an item a while longer."""
    request.app.state.project.store.renew(person, body.item)
    return {}


@router.post("/release")
def release(body: Item, request: Request, person: Someone) -> View:
    """Give an item back."""
    request.app.state.project.store.release(person, body.item)
    return {}


@router.get("/guess/{item}")
def guess(item: Number, request: Request, person: Someone) -> View:
    """What the model takes the example in hand for: only when asked, so that nobody is led."""
    pick = request.app.state.project.store.held(person)
    if pick is None or pick.item != item:
        raise HTTPException(409, "This example is not in your hands any more.")
    return views.guess(request.app.state, pick)


@router.post("/classes")
def add_class(body: Named, request: Request, person: Someone) -> View:
    """A new class; one that is there already is as good, since the answer to an earlier try may have been lost."""
    store = request.app.state.project.store
    wanted = " ".join(body.name.split())
    known = {c.name: c for c in living(store.classes())}
    added = known.get(wanted) or store.add_class(body.name, person)
    return {"added": added.id, **views.state(request.app.state)}


@router.post("/classes/{id}/rename")
def rename_class(id: Number, body: Named, request: Request, person: Someone) -> View:
    """Another name for a class."""
    request.app.state.project.store.rename_class(id, body.name, person)
    return {}


@router.post("/classes/{id}/merge")
def merge_class(id: Number, body: Merged, request: Request, person: Someone) -> View:
    """One class for two."""
    request.app.state.project.store.merge_class(id, body.into, person)
    return {}
