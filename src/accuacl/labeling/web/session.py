"""Who is asking: a session id in a cookie, looked up at every request, so that revoking access takes effect at once.
`router` has the calls that begin and end a session.

`Limited`, `Viewer`, `Lead`, `ClassEditor` and `Proposer` are what routes ask for: the person who is logged in, unless
they may not do this, or ask for more than a person can.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import BaseModel, Field

from accuacl.labeling.store import SESSION, Person
from accuacl.labeling.web.site import Entrance, Here, Limit, Site, View

router = APIRouter(prefix="/api")
REFUSED = (
    "This link is not valid. It may have been used already, be older than a week, or not be copied whole. "
    "Ask the project's lead for a new one."
)


class LoginRequest(BaseModel):
    token: Annotated[str, Field(min_length=1, max_length=200)]


@router.post("/login")
def login(body: LoginRequest, request: Request, response: Response) -> View:
    """Exchange an invitation for a session."""
    site: Entrance = request.app.state.site
    session = site.store.enter(body.token)
    if session is None:
        raise HTTPException(401, REFUSED)
    set_cookie(request, response, session, site.directory)
    return {}


@router.post("/logout")
def logout(request: Request, response: Response) -> View:
    """End the session."""
    site: Entrance = request.app.state.site
    secure = is_secure(request)
    name = cookie_name(site.directory, secure)
    session = request.cookies.get(name)
    if session:
        site.store.leave(session)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=secure)
    return {}


def logged_in(request: Request) -> Person | None:
    """The person who is logged in, if anybody is. When the session is prolonged, so is the cookie."""
    site: Entrance = request.app.state.site
    if site.proxy is not None and (known := site.proxy.person(request, site.store)) is not None:
        return known
    session = request.cookies.get(cookie_name(site.directory, is_secure(request)))
    person, prolonged = site.store.person_of_session(session) if session else (None, False)
    if session and prolonged:
        cookie = Response()
        set_cookie(request, cookie, session, site.directory)
        request.state.cookie = cookie.headers["set-cookie"]  # the guard sends it, with whatever the answer is
    return person


def page_after_login(wanted: str) -> str:
    """The page to open after the login: the wanted one if it is a page of this server, otherwise the labelling page.

    Browsers read `//evil.example` and `/\\evil.example` as another site, without tabs and line breaks.

    >>> [page_after_login(wanted) for wanted in ("/review?label=3", "//evil.example", "https://evil.example", "/login")]
    ['/review?label=3', '/', '/', '/']
    """
    own = re.fullmatch(r"/(?!/)[!-\[\]-~]{0,2000}", wanted)  # ASCII without spaces and backslashes
    return wanted if own and not re.match(r"/(login|api)\b", wanted) else "/"


@lru_cache(maxsize=16)  # asked at every request
def cookie_name(directory: Path, secure: bool = False) -> str:
    """A name for each project: browsers share cookies between the ports of a machine.

    Over HTTPS it begins with __Host-, so that no other host of the domain can set it.
    """
    name = f"accuacl-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]}"
    return f"__Host-{name}" if secure else name


def is_secure(request: Request) -> bool:
    """Whether the browser is connected by HTTPS, to this server or to the proxy in front of it."""
    site: Entrance = request.app.state.site
    return request.scope["scheme"] == "https" or site.hosts.public_url.startswith("https://")


def set_cookie(request: Request, response: Response, session: str, directory: Path) -> None:
    """The cookie of a session with a project; it lasts as long as the session does if it is not used again."""
    secure = is_secure(request)
    name = cookie_name(directory, secure)
    response.set_cookie(name, session, max_age=int(SESSION), httponly=True, samesite="strict", secure=secure)


def _person(request: Request) -> Person:
    """The person who is logged in; 401 if nobody is."""
    person = logged_in(request)
    if person is None:
        raise HTTPException(401, "Log in first.")
    return person


def _within(limit: Callable[[Site], Limit], whose: Callable[..., Any]) -> Callable[..., Any]:
    """A dependency: the person, unless they do more than the limit allows; 429 then."""

    person_of = Depends(whose)

    async def person_within(site: Here, person: Person = person_of) -> Person:  # async: it waits for nothing
        limit(site).take(person.id)
        return person

    return person_within


async def _lead(person: Limited) -> Person:
    """The person, if they are a lead; 403 if not."""
    if not person.lead:
        raise HTTPException(403, "Only a lead of the project may do this.")
    return person


_limited = _within(lambda site: site.requests, _person)
_viewer = _within(lambda site: site.image_requests, _person)
Limited = Annotated[Person, Depends(_limited)]
Viewer = Annotated[Person, Depends(_viewer)]  # of images, of which a page has many
Lead = Annotated[Person, Depends(_lead)]
ClassEditor = Annotated[Person, Depends(_within(lambda site: site.class_changes, _lead))]  # a lead
Proposer = Annotated[Person, Depends(_within(lambda site: site.class_changes, _limited))]
