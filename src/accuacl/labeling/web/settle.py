"""The page on which leads settle disputes: items on which people disagree, one after the other, with who said what."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from accuacl.labeling.store import Dispute, counts_as, living
from accuacl.labeling.web import api
from accuacl.labeling.web.api import LabelRequest
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.review import shorten
from accuacl.labeling.web.session import Lead
from accuacl.labeling.web.site import Here, Site, View

router = APIRouter()
MOST = 20  # disputes that the page has at a time; it asks for more before it has shown all of them
SNIP = 300  # characters of a comment that are shown
COMMENTS = 5  # of an item that are shown; its history has all


@router.get("/settle", response_class=HTMLResponse)
def page(request: Request, person: Lead) -> str:
    """The page; its script asks for the disputes."""
    return render(request, "settle.html", person, here="settle")


@router.get("/api/disputes")
def disputes(site: Here, person: Lead, first: Annotated[int | None, Query(ge=0, le=2**62)] = None) -> View:
    """How many examples people disagree about, and the first of them with everybody's answers.

    first: an example to begin with, if it is one of them.
    """
    return _view(site, first)


@router.post("/api/settle")
def settle(body: LabelRequest, site: Here, person: Lead) -> View:
    """Decide what an example is that people disagree about; it is synced to the disk before this answers.

    Returns what is left to settle. /api/relabel/undo undoes the decision.
    """
    site.store.decide(person, body.item, body.class_id, body.request)
    return _view(site)


def _view(site: Site, first: int | None = None) -> View:
    classes = site.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    people = {each.id: each.name for each in site.store.people()}
    return {
        "count": len(site.store.unsettled()),
        "classes": [{"id": c.id, "name": c.name} for c in living(classes)],
        "disputes": [_shown(site, each, names, people, final) for each in site.store.disputes(MOST, first)],
    }


def _shown(site: Site, dispute: Dispute, names: dict[int, str], people: dict[int, str], final: dict[int, int]) -> View:
    pick = api.guessed(site, dispute.pick)
    guess = None if pick.guess is None else final[pick.guess]
    return {
        **api.example(site, pick),
        "name": site.project.item(pick.item).name,
        "guess": None if guess is None else {"id": guess, "name": names[guess], "confidence": pick.confidence},
        "gold": None if dispute.gold is None else names[dispute.gold],
        "comments": [shorten(text, SNIP) for text in dispute.comments[-COMMENTS:]],
        "answers": [
            {
                "kind": answer.kind,
                "person": "somebody" if answer.person is None else people[answer.person],
                "id": answer.class_id,
                "name": None if answer.class_id is None else names[answer.class_id],
                "time": answer.time,
                "seconds": answer.seconds,
                "shown": None if answer.shown is None else names[answer.shown],
            }
            for answer in dispute.answers
        ],
    }
