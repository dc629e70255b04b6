"""Who is asking: a session id in a cookie, looked up at every request, so that revoking access takes effect at once."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response

from accuacl.base.errors import InputError
from accuacl.labeling.store import SESSION, Person, Store

REFUSED = (
    "This link or token is not valid: it has been used, is older than a week, was replaced, or was not copied whole. "
    "Ask a lead of the project for a new one."
)


def page_after_login(wanted: str) -> str:
    """The page to go on to: the wanted one if it is a page of this server, otherwise the labelling page.

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


def log_in(request: Request, response: Response, token: str) -> None:
    """Exchange an invitation for a session, and set its cookie; 401 if the invitation is not valid."""
    store: Store = request.app.state.project.store
    session = store.enter(token)
    if session is None:
        raise HTTPException(401, REFUSED)
    _set_cookie(request, response, session)


def _set_cookie(request: Request, response: Response, session: str) -> None:
    """As long as the session lasts if it is not used again."""
    secure = is_secure(request)
    name = cookie_name(request.app.state.project.directory, secure)
    response.set_cookie(name, session, max_age=int(SESSION), httponly=True, samesite="strict", secure=secure)


def log_out(request: Request, response: Response) -> None:
    """End the session, here and in the browser."""
    secure = is_secure(request)
    name = cookie_name(request.app.state.project.directory, secure)
    session = request.cookies.get(name)
    if session:
        request.app.state.project.store.leave(session)
    response.delete_cookie(name, httponly=True, samesite="strict", secure=secure)


def is_secure(request: Request) -> bool:
    """Whether the browser is connected by HTTPS, to this server or to the proxy before it."""
    return request.scope["scheme"] == "https" or request.app.state.public_url.startswith("https://")


def someone(request: Request) -> Person | None:
    """The person who is logged in, if anybody is. When the session is prolonged, so is the cookie."""
    session = request.cookies.get(cookie_name(request.app.state.project.directory, is_secure(request)))
    store: Store = request.app.state.project.store
    person, prolonged = store.person_of_session(session) if session else (None, False)
    if session and prolonged:
        cookie = Response()
        _set_cookie(request, cookie, session)
        request.state.cookie = cookie.headers["set-cookie"]  # the guard sends it, with whatever the answer is
    return person


def _someone(request: Request) -> Person:
    """The person who is logged in; 401 if nobody is."""
    person = someone(request)
    if person is None:
        raise HTTPException(401, "Log in first.")
    return person


# These wait for nothing, so they need no thread, as others do that are not async.


async def _within_limits(request: Request, person: Annotated[Person, Depends(_someone)]) -> Person:
    """The same person, unless they ask for more than a person can; 429 then."""
    request.app.state.requests.take(person.id)
    return person


async def _views(request: Request, person: Annotated[Person, Depends(_someone)]) -> Person:
    request.app.state.image_requests.take(person.id)
    return person


async def _lead(person: Annotated[Person, Depends(_within_limits)]) -> Person:
    """The person, if they are a lead; 403 if not."""
    if not person.lead:
        raise HTTPException(403, "Only a lead of the project may do this.")
    return person


async def _changes_classes(request: Request, person: Annotated[Person, Depends(_lead)]) -> Person:
    request.app.state.class_changes.take(person.id)
    return person


async def _proposes(request: Request, person: Annotated[Person, Depends(_within_limits)]) -> Person:
    request.app.state.class_changes.take(person.id)
    return person


Limited = Annotated[Person, Depends(_within_limits)]
Viewer = Annotated[Person, Depends(_views)]  # of images, of which a page has many
Lead = Annotated[Person, Depends(_lead)]
ClassEditor = Annotated[Person, Depends(_changes_classes)]  # a lead, who may not do it too often
Proposer = Annotated[Person, Depends(_proposes)]


class Limit:
    """A bucket for each person, which fills up again with time.

    >>> now = [0.0]
    >>> limit = Limit(burst=2, each_second=1.0, clock=lambda: now[0])
    >>> [limit.wait(7), limit.wait(7), limit.wait(7), limit.wait(8)]
    [0.0, 0.0, 1.0, 0.0]
    >>> now[0] = 1.0
    >>> limit.wait(7)
    0.0
    """

    def __init__(self, burst: int, each_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.burst, self.each_second, self._clock = burst, each_second, clock
        self._left: dict[int, tuple[float, float]] = {}  # person: (what is left, when that was)
        self._turn = threading.Lock()

    def wait(self, person: int, count: int = 1) -> float:
        """Count so many; or else the seconds until that is allowed."""
        with self._turn:
            now = self._clock()
            left, then = self._left.get(person, (float(self.burst), now))
            left = min(self.burst, left + (now - then) * self.each_second)
            allowed = left >= count
            self._left[person] = (left - count if allowed else left, now)
            return 0.0 if allowed else (count - left) / self.each_second

    def take(self, person: int, count: int = 1) -> None:
        """Count so many; 429 if that is too many."""
        seconds = self.wait(person, count)
        if seconds:
            after = max(1, round(seconds))
            detail = f"That is too much at once; try again in {after} s."
            raise HTTPException(429, detail, headers={"Retry-After": str(after)})


ABSOLUTE = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:[\\/]|/)(?:[^\s'\"/\\:;,()]+[\\/])*([^\s'\"/\\:;,()]+)")


def sentence(error: Exception, places: Iterable[Path] = ()) -> str:
    """What the page says of an error: the sentence of an InputError; of a bug its type, to find it in the log.

    places: folders that it may name, of which only the last part is shown, as of any absolute path.

    >>> sentence(InputError("the folder /srv/my data/photos is missing; bring it back."), [Path("/srv/my data/photos")])
    'The folder photos is missing; bring it back.'
    >>> sentence(KeyError("a"))
    "KeyError: 'a' (a bug; the server's log has the details)"
    """
    text = without_paths(str(error), places)
    if isinstance(error, InputError):
        return text[:1].upper() + text[1:]
    return f"{type(error).__name__}: {text} (a bug; the server's log has the details)"


def without_paths(text: str, places: Iterable[Path] = ()) -> str:
    """The text with only the last part of each path.

    >>> without_paths("/home/ada/p/labels.sqlite cannot be read; and/or https://a.example/b")
    'labels.sqlite cannot be read; and/or https://a.example/b'
    """
    for place in sorted(map(str, places), key=len, reverse=True):
        parent = place.rpartition("/")[0]
        if parent:
            text = text.replace(f"{parent}/", "")
    return ABSOLUTE.sub(r"\1", text)
