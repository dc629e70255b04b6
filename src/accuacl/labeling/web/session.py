"""Who is asking: a session id in a cookie, looked up at every request, so that revoking access takes effect at once.

`Limited`, `Viewer`, `Lead`, `ClassEditor` and `Proposer` are what routes ask for: the person who is logged in, unless
they may not do this, or ask for more than a person can.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response

from accuacl.labeling.store import SESSION, Person
from accuacl.labeling.web.site import Entrance, Here

REFUSED = (
    "This link is not valid. It may have been used already, be older than a week, or not be copied whole. "
    "Ask the project's lead for a new one."
)


def log_in(request: Request, response: Response, token: str) -> None:
    """Exchange an invitation for a session, and set its cookie; 401 if the invitation is not valid."""
    site: Entrance = request.app.state.site
    session = site.store.enter(token)
    if session is None:
        raise HTTPException(401, REFUSED)
    set_cookie(request, response, session, site.directory)


def log_out(request: Request, response: Response) -> None:
    """End the session, and delete its cookie."""
    site: Entrance = request.app.state.site
    secure = is_secure(request)
    name = cookie_name(site.directory, secure)
    session = request.cookies.get(name)
    if session:
        site.store.leave(session)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=secure)


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


LoggedIn = Annotated[Person, Depends(_person)]

# The following wait for nothing, so they are async: others are run by a thread.


async def _limited(site: Here, person: LoggedIn) -> Person:
    """The person, unless they send more than a person can; 429 then."""
    site.requests.take(person.id)
    return person


async def _viewer(site: Here, person: LoggedIn) -> Person:
    site.image_requests.take(person.id)
    return person


Limited = Annotated[Person, Depends(_limited)]
Viewer = Annotated[Person, Depends(_viewer)]  # for images: a page has many


async def _lead(person: Limited) -> Person:
    """The person, if they are a lead; 403 if not."""
    if not person.lead:
        raise HTTPException(403, "Only a lead of the project may do this.")
    return person


Lead = Annotated[Person, Depends(_lead)]


async def _class_editor(site: Here, person: Lead) -> Person:
    site.class_changes.take(person.id)
    return person


async def _proposer(site: Here, person: Limited) -> Person:
    site.class_changes.take(person.id)
    return person


ClassEditor = Annotated[Person, Depends(_class_editor)]  # a lead, who may not do it too often
Proposer = Annotated[Person, Depends(_proposer)]
