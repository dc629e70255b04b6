"""Classes: the page that shows what each means, and what leads may change and others propose."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.datastructures import State

from accuacl.labeling.store import Class, ClassChange, Guideline, Person, Store, living, near_names
from accuacl.labeling.web import api
from accuacl.labeling.web.api import Number, RequestId
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import ClassEditor, Lead, Limited, Proposer

router = APIRouter()
Name = Annotated[str, Field(min_length=1, max_length=200)]
View = dict[str, Any]
LATEST = 20  # changes that are listed


class NewClassRequest(BaseModel):
    """sure: add it although there is a class that is called nearly the same."""

    name: Name
    sure: bool = False


class RenameRequest(BaseModel):
    name: Name
    sure: bool = False


class MergeRequest(BaseModel):
    into: Number


class UndoChangeRequest(BaseModel):
    change: Number


class GuideRequest(BaseModel):
    text: Annotated[str, Field(max_length=4000)] = ""
    examples: Annotated[str, Field(max_length=400, pattern=r"^[\d\s,]*$")] = ""  # numbers of items


class ExampleRequest(BaseModel):
    item: Number


class ExamplesRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]


class ProposeRequest(BaseModel):
    name: Name
    request: RequestId
    sure: bool = False


class SettleRequest(BaseModel):
    """name: what the class shall be called; empty: it is declined."""

    name: Annotated[str, Field(max_length=200)] = ""
    sure: bool = False


@router.get("/classes", response_class=HTMLResponse)
def classes(request: Request, person: Limited) -> str:
    """What each class means; leads can change it."""
    store = request.app.state.project.store
    counts, every, guidelines = store.counts_by_class(), store.classes(), _guidelines(request.app.state, person)
    names, people = {c.id: c.name for c in every}, {one.id: one.name for one in store.people()}
    kind = request.app.state.project.settings.kind
    return render(
        request,
        "classes.html",
        person,
        here="classes",
        living=[(c, counts.get(c.id, 0), guidelines.get(c.id)) for c in living(every)],
        merged=[(c, names[c.merged_into]) for c in every if c.merged_into is not None],
        changes=_changes(store, people) if person.lead else [],
        proposals=[(one, people.get(one.person, "")) for one in store.proposals()],
        images=kind == "images",
    )


@router.get("/api/guidelines")
def guidelines(request: Request, person: Limited) -> View:
    """What classes mean, for the labelling page: name, text and examples of each."""
    app = request.app.state
    names = {c.id: c.name for c in living(app.project.store.classes())}
    said = _guidelines(app, person)
    return {"classes": [_guideline(app, names[id], said[id]) for id in names if id in said]}


@router.post("/api/classes")
def add_class(body: NewClassRequest, request: Request, person: ClassEditor) -> View:
    """Add a class, or return the one of that name: the answer to an earlier try may have been lost.

    If one is called nearly the same, nothing is added, and that one is offered.
    """
    app, store = request.app.state, request.app.state.project.store
    known = {c.name: c for c in living(store.classes())}
    same = known.get(" ".join(body.name.split()))
    if same is None and not body.sure and (near := _near(body.name, known)):
        return {"near": near, **api.round_state(app, person)}
    added = same or store.add_class(body.name, person)
    return {"added": added.id, **api.round_state(app, person)}


@router.post("/api/classes/undo")
def undo(body: UndoChangeRequest, request: Request, person: Lead) -> View:
    """Undo the latest change of classes, or a merge."""
    request.app.state.project.store.undo_class_change(person, body.change)
    return {}


@router.post("/api/classes/{id}/rename")
def rename_class(id: Number, body: RenameRequest, request: Request, person: ClassEditor) -> View:
    """Rename a class; if another is called nearly the same, nothing happens, and that one is named."""
    store = request.app.state.project.store
    near = [] if body.sure else _alike(body.name, [c for c in living(store.classes()) if c.id != id])
    if not near:
        store.rename_class(id, body.name, person)
    return {"near": near}


@router.post("/api/classes/{id}/merge")
def merge_class(id: Number, body: MergeRequest, request: Request, person: ClassEditor) -> View:
    """Merge a class into another."""
    request.app.state.project.store.merge_class(id, body.into, person)
    return {}


@router.post("/api/classes/{id}/guide")
def guide(id: Number, body: GuideRequest, request: Request, person: Lead) -> View:
    """Say what a class means."""
    examples = [int(number) for number in body.examples.replace(",", " ").split()]
    request.app.state.project.store.guide(person, id, body.text, examples)
    return {}


@router.post("/api/classes/{id}/example")
def add_example(id: Number, body: ExampleRequest, request: Request, person: Lead) -> View:
    """Let an item show what a class is."""
    request.app.state.project.store.add_examples(person, id, [body.item])
    return {}


@router.post("/api/classes/{id}/examples")
def add_examples(id: Number, body: ExamplesRequest, request: Request, person: Lead) -> View:
    """Let several items show what a class is."""
    request.app.state.project.store.add_examples(person, id, body.items)
    return {}


@router.post("/api/proposals")
def propose(body: ProposeRequest, request: Request, person: Proposer) -> View:
    """Propose a class; if one is called nearly the same, nothing happens, and that one is offered."""
    app, store = request.app.state, request.app.state.project.store
    near = [] if body.sure else _near(body.name, {c.name: c for c in living(store.classes())})
    if not near:
        store.propose(person, body.name, body.request)
    return {"near": near, **api.round_state(app, person)}


@router.post("/api/proposals/{id}")
def settle(id: Number, body: SettleRequest, request: Request, person: ClassEditor) -> View:
    """Add a class that was proposed, or decline it; if one is called nearly the same, nothing happens, and that one is
    named.
    """
    store = request.app.state.project.store
    near = [] if body.sure or not body.name else _alike(body.name, living(store.classes()))
    if not near:
        store.settle(person, id, body.name or None)
    return {"near": near}


def _guidelines(app: State, person: Person) -> dict[int, Guideline]:
    """What classes mean, without examples about which the person is still to be asked."""
    hidden = api.hidden(app, person)
    told = {
        id: replace(said, examples=tuple(item for item in said.examples if item not in hidden))
        for id, said in app.project.store.guidelines().items()
    }
    return {id: said for id, said in told.items() if said.text or said.examples}


def _alike(name: str, others: list[Class]) -> list[View]:
    """Classes that are called nearly the same; none if one has that very name, which the store refuses."""
    known = {c.name: c for c in others}
    return [] if " ".join(name.split()) in known else _near(name, known)


def _near(name: str, known: dict[str, Class]) -> list[View]:
    return [{"id": known[other].id, "name": other} for other in near_names(name, known)]


def _guideline(app: State, name: str, said: Any) -> View:
    items = [app.project.item(item) for item in said.examples]
    shown = [{"item": item.id, "kind": item.kind, "snip": (item.text or item.name)[:200]} for item in items]
    return {"name": name, "text": said.text, "examples": shown}


def _changes(store: Store, people: dict[int, str]) -> list[tuple[int, str, bool]]:
    """The latest changes of classes, and earlier ones that can be undone: event, sentence, whether it can be undone."""
    undoable = store.undoable_class_changes()
    return [
        (change.event, _said(change, people), change.event in undoable)
        for i, change in enumerate(store.class_changes())
        if i < LATEST or change.event in undoable
    ]


def _said(change: ClassChange, people: dict[int, str]) -> str:
    """A change of classes as a sentence."""
    who = people.get(change.person, "someone") if change.person is not None else "the command line"
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(change.time))
    what = {
        "added": f"“{change.to}” was added",
        "renamed": f"“{change.name}” was renamed to “{change.to}”",
        "merged": f"“{change.name}” was merged into “{change.to}”",
    }[change.kind]
    return f"{what} by {who}, {when}"
