"""People: who may label, how fast they are and how far others agree; invitations as links and QR codes. For leads."""

from __future__ import annotations

import time
from typing import Annotated

import segno
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from accuacl.labeling.project import measure_quality
from accuacl.labeling.store import INVITATION, Work
from accuacl.labeling.web.guard import host_name, is_loopback
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead, is_secure
from accuacl.labeling.web.site import Here, Number, Site, View

router = APIRouter()
NOTHING = Work(labels=0, skips=0, seconds=None, compared=0, agreed=0, corrected=0, last=None)
LISTENS_HERE = (
    "This link works only on this computer. To invite people on other devices, start the server with --host 0.0.0.0, "
    "--cert and --key; or put it behind a proxy that has HTTPS, and name the proxy's address with --public-url."
)
OPENED_HERE = (
    "This link works only on this computer, because you have opened this page at an address that only this computer "
    "knows. Open it at the address that other devices use, or start the server with --public-url; then make a new link."
)


class InviteRequest(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=200)]
    lead: bool = False


class RoleRequest(BaseModel):
    lead: bool


@router.get("/people", response_class=HTMLResponse)
def show(request: Request, site: Here, person: Lead) -> str:
    """Everyone who has or had access."""
    work = site.store.work()
    return render(
        request,
        "people.html",
        person,
        here="people",
        rows=[(each, work.get(each.id) or NOTHING) for each in site.store.people()],
        days=round(INVITATION / 86400),
        me=person.id,
        agreement=_agreement(site),
    )


@router.post("/api/people")
def add(body: InviteRequest, request: Request, site: Here, person: Lead) -> View:
    """Add a person. Returns an invitation for them."""
    return _invitation(request, site.store.add_person(body.name, body.lead))


@router.post("/api/people/{id}/invite")
def invite(id: Number, request: Request, site: Here, person: Lead) -> View:
    """Make a new invitation for a person who has access; an unused one becomes invalid."""
    return _invitation(request, site.store.invite(_name(site, id)))


@router.post("/api/people/{id}/revoke")
def revoke(id: Number, site: Here, person: Lead) -> View:
    """End a person's access; nobody can end their own."""
    if id == person.id:
        raise HTTPException(409, "You cannot end your own access; another lead can.")
    site.store.revoke(_name(site, id))
    return {}


@router.post("/api/people/{id}/role")
def set_role(id: Number, body: RoleRequest, site: Here, person: Lead) -> View:
    """Make a person a lead or an annotator."""
    site.store.set_role(_name(site, id), body.lead)
    return {}


def _name(site: Site, id: int) -> str:
    for person in site.store.people():
        if person.id == id and not person.revoked:
            return person.name
    raise HTTPException(404, "There is no such person with access.")


def _invitation(request: Request, token: str) -> View:
    """The link, which is shown this once, and its QR code as rows of 0 and 1; no code if no phone could open it."""
    site: Site = request.app.state.site
    scheme = "https" if is_secure(request) else "http"
    address = site.hosts.public_url or f"{scheme}://{request.headers['host']}"
    link = f"{address}{site.root}/login#token={token}"
    until = time.strftime("%Y-%m-%d", time.localtime(time.time() + INVITATION))
    if is_loopback(host_name(address.partition("://")[2])):
        here = LISTENS_HERE if site.hosts.public_url or site.hosts.loopback_only else OPENED_HERE
        return {"link": link, "until": until, "code": [], "here": here}
    code = segno.make_qr(link, error="m")
    return {"link": link, "until": until, "code": ["".join("01"[bool(dark)] for dark in row) for row in code.matrix]}


def _agreement(site: Site) -> View:
    """How far people agree: all together, each pair, and each with the known answers of gold examples."""
    names, quality = site.people_names(), measure_quality(site.store)
    pairs = [(names[a], names[b], kappa) for (a, b), kappa in quality.pairs.items()]
    return {"text": quality.text, "pairs": pairs, "gold": [(names[id], right) for id, right in quality.gold.items()]}
