"""Who is asking: the token in a cookie, looked up at every request, so that revoking it takes effect at once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response

from accuacl.labeling.store import Person, Store

DAYS = 30


def cookie_name(directory: Path) -> str:
    """A name for each project: browsers share cookies between the ports of a machine."""
    return f"accuacl-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]}"


def log_in(request: Request, response: Response, token: str) -> None:
    """Set the session cookie; 401 if the token is nobody's."""
    store: Store = request.app.state.project.store
    if store.person_of(token) is None:
        raise HTTPException(401, "This link is not valid. Ask the project's lead for a new one.")
    response.set_cookie(
        request.app.state.cookie,
        token,
        max_age=DAYS * 24 * 3600,
        httponly=True,
        samesite="strict",
        secure=request.scope["scheme"] == "https",
    )


def log_out(request: Request, response: Response) -> None:
    """Delete the session cookie of this browser; the token stays valid."""
    response.delete_cookie(request.app.state.cookie, httponly=True, samesite="strict")


def _someone(request: Request) -> Person:
    """The person who is logged in; 401 if nobody is."""
    store: Store = request.app.state.project.store
    token = request.cookies.get(request.app.state.cookie)
    person = store.person_of(token) if token else None
    if person is None:
        raise HTTPException(401, "Log in first.")
    return person


Someone = Annotated[Person, Depends(_someone)]
