"""Classes: the page that shows what each means, and what leads may change and others propose."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from accuacl.base.errors import InputError
from accuacl.labeling.store import ClassChange, Guideline, Person, alike_pairs, clean_name, living, near_names
from accuacl.labeling.web import api
from accuacl.labeling.web.api import ItemRequest, ManyRequest, RequestId
from accuacl.labeling.web.pages import SNIP, render
from accuacl.labeling.web.session import ClassEditor, Lead, Limited, Proposer
from accuacl.labeling.web.site import Here, Number, Site, View

router = APIRouter()
Name = Annotated[str, Field(min_length=1, max_length=200)]
LATEST = 20  # changes that are listed
MANY = 500  # classes that are added at once


class ClassNameRequest(BaseModel):
    """sure: call it that although there is a class that is called nearly the same."""

    name: Name
    sure: bool = False


class NewClassesRequest(BaseModel):
    """names: one per line. sure: add them although some are called nearly the same."""

    names: Annotated[str, Field(min_length=1, max_length=50_000)]
    sure: bool = False


class MergeRequest(BaseModel):
    into: Number


class UndoChangeRequest(BaseModel):
    change: Number


class GuideRequest(BaseModel):
    text: Annotated[str, Field(max_length=4000)] = ""
    examples: Annotated[str, Field(max_length=400, pattern=r"^[\d\s,]*$")] = ""  # numbers of items


class ProposeRequest(BaseModel):
    name: Name
    request: RequestId
    sure: bool = False


class SettleRequest(BaseModel):
    """name: what to call the class; empty: decline it."""

    name: Annotated[str, Field(max_length=200)] = ""
    sure: bool = False


@router.get("/classes", response_class=HTMLResponse)
def classes(request: Request, site: Here, person: Limited) -> str:
    """What each class means; leads can change it."""
    every, counts, guidelines = site.store.classes(), site.store.counts_by_class(), _guidelines(site, person)
    names = {c.id: c.name for c in every}
    return render(
        request,
        "classes.html",
        person,
        here="classes",
        living=[(c, counts.get(c.id, 0), guidelines.get(c.id)) for c in living(every)],
        counted=not api.is_blind(site, person),
        merged=[(c, names[c.merged_into]) for c in every if c.merged_into is not None],
        changes=_changes(site) if person.lead else [],
        proposals=site.store.proposals(),
        people=site.people_names(),
        images=site.project.settings.kind == "images",
    )


@router.get("/api/guidelines")
def guidelines(site: Here, person: Limited) -> View:
    """What classes mean, for the labelling page: name, text and examples of each."""
    names = {c.id: c.name for c in living(site.store.classes())}
    given = _guidelines(site, person)
    return {"classes": [_guideline(site, names[id], given[id]) for id in names if id in given]}


@router.post("/api/classes")
def add_class(body: ClassNameRequest, site: Here, person: ClassEditor) -> View:
    """Add a class, or return the one of that name, since the answer to an earlier request may have been lost.

    If the name resembles that of another class, nothing is added, and that class is offered.
    """
    near = _near(site, body.name)
    same = [c["id"] for c in near if c["name"] == " ".join(body.name.split())]
    if near and not same and not body.sure:
        return {"near": near, **api.round_state(site, person)}
    added = same[0] if same else site.store.add_class(body.name, person).id
    return {"added": added, **api.round_state(site, person)}


@router.post("/api/classes/many")
def add_classes(body: NewClassesRequest, site: Here, person: ClassEditor) -> View:
    """Add classes, one per line, without those that exist already; at most 500 at once.

    If some names resemble each other or those of existing classes, nothing is added, and these names are returned.
    """
    known = [c.name for c in living(site.store.classes())]
    names = list(dict.fromkeys(clean_name(line, "a class") for line in body.names.splitlines() if line.strip()))
    new = [name for name in names if name not in known]
    if len(new) > MANY:
        raise InputError(f"these are {len(new)} new classes; add at most {MANY} at once.")
    near = [] if body.sure else [pair for pair in alike_pairs([*known, *new]) if not set(pair) <= set(known)]
    if near:
        return {"near": [{"name": name} for name in dict.fromkeys(other for pair in near for other in pair)][:LATEST]}
    for name in new:
        site.store.add_class(name, person)
    return {"near": [], "added": len(new)}


@router.post("/api/classes/undo")
def undo(body: UndoChangeRequest, site: Here, person: Lead) -> View:
    """Undo the latest change of classes, or a merge."""
    site.store.undo_class_change(person, body.change)
    return {}


@router.post("/api/classes/{id}/rename")
def rename_class(id: Number, body: ClassNameRequest, site: Here, person: ClassEditor) -> View:
    """Rename a class. If the name resembles that of another class, nothing changes, and that class is returned."""
    near = [] if body.sure else _near_but_not_equal(site, body.name, id)
    if not near:
        site.store.rename_class(id, body.name, person)
    return {"near": near}


@router.post("/api/classes/{id}/merge")
def merge_class(id: Number, body: MergeRequest, site: Here, person: ClassEditor) -> View:
    """Merge a class into another."""
    site.store.merge_class(id, body.into, person)
    return {}


@router.post("/api/classes/{id}/guide")
def guide(id: Number, body: GuideRequest, site: Here, person: Lead) -> View:
    """Say what a class means."""
    examples = [int(number) for number in body.examples.replace(",", " ").split()]
    site.store.guide(person, id, body.text, examples)
    return {}


@router.post("/api/classes/{id}/example")
def add_example(id: Number, body: ItemRequest, site: Here, person: Lead) -> View:
    """Use an item as an example in the guideline of a class."""
    site.store.add_examples(person, id, [body.item])
    return {}


@router.post("/api/classes/{id}/examples")
def add_examples(id: Number, body: ManyRequest, site: Here, person: Lead) -> View:
    """Use several items as examples in the guideline of a class."""
    site.store.add_examples(person, id, body.items)
    return {}


@router.post("/api/proposals")
def propose(body: ProposeRequest, site: Here, person: Proposer) -> View:
    """Propose a class. If the name resembles that of an existing one, nothing happens, and that class is offered."""
    near = [] if body.sure else _near(site, body.name)
    if not near:
        site.store.propose(person, body.name, body.request)
    return {"near": near, **api.round_state(site, person)}


@router.post("/api/proposals/{id}")
def settle(id: Number, body: SettleRequest, site: Here, person: ClassEditor) -> View:
    """Add a proposed class, or decline it. If the name resembles that of another class, nothing happens, and that class
    is returned.
    """
    near = [] if body.sure or not body.name else _near_but_not_equal(site, body.name)
    if not near:
        site.store.settle(person, id, body.name or None)
    return {"near": near}


def _guidelines(site: Site, person: Person) -> dict[int, Guideline]:
    """What classes mean, without examples about which the person is still to be asked."""
    hidden = api.hidden(site, person)
    shown = {
        id: replace(guideline, examples=tuple(item for item in guideline.examples if item not in hidden))
        for id, guideline in site.store.guidelines().items()
    }
    return {id: guideline for id, guideline in shown.items() if guideline.text or guideline.examples}


def _guideline(site: Site, name: str, guideline: Guideline) -> View:
    items = [site.project.item(item) for item in guideline.examples]
    shown = [{"item": item.id, "kind": item.kind, "snip": (item.text or item.name)[:SNIP]} for item in items]
    return {"name": name, "text": guideline.text, "examples": shown}


def _near(site: Site, name: str, but: int | None = None) -> list[View]:
    """Classes whose names are the same or nearly so. but: the class that is renamed."""
    known = {c.name: c.id for c in living(site.store.classes()) if c.id != but}
    return [{"id": known[other], "name": other} for other in near_names(name, known)]


def _near_but_not_equal(site: Site, name: str, but: int | None = None) -> list[View]:
    """Classes whose names are nearly the same; none if one has that very name, which the store refuses."""
    near = _near(site, name, but)
    return [] if any(c["name"] == " ".join(name.split()) for c in near) else near


def _changes(site: Site) -> list[tuple[ClassChange, bool]]:
    """The latest changes of classes, and earlier ones that can be undone; whether each can be."""
    undoable = site.store.undoable_class_changes()
    changes = enumerate(site.store.class_changes())
    return [(change, change.event in undoable) for i, change in changes if i < LATEST or change.event in undoable]
