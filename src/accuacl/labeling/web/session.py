"""Who is asking: the token in a cookie, looked up at every request, so that a revoked one opens nothing any more."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response

from accuacl.labeling.store import Person, Store

DAYS = 30


def cookie_name(directory: Path) -> str:
    """One for each project: browsers do not tell the ports of a machine apart."""
    return f"accuacl-{hashlib.sha256(str(directory.resolve()).encode()).hexdigest()[:12]}"


def log_in(request: Request, response: Response, token: str) -> None:
    """Exchange a token for the cookie; 401 if it is nobody's."""
    store: Store = request.app.state.project.store
    if store.person_of(token) is None:
        raise HTTPException(401, "This token opens nothing here. Ask for a new link.")
    response.set_cookie(
        request.app.state.cookie,
        token,
        max_age=DAYS * 24 * 3600,
        httponly=True,
        samesite="strict",
        secure=request.scope["scheme"] == "https",
    )


def log_out(request: Request, response: Response) -> None:
    """Forget the token in this browser; it stays valid."""
    response.delete_cookie(request.app.state.cookie, httponly=True, samesite="strict")


def _someone(request: Request) -> Person:
    """Whoever is logged in; 401 if nobody is."""
    store: Store = request.app.state.project.store
    token = request.cookies.get(request.app.state.cookie)
    person = store.person_of(token) if token else None
    if person is None:
        raise HTTPException(401, "Log in first.")
    return person


Someone = Annotated[Person, Depends(_someone)]
