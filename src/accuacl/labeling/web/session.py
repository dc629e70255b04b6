"""Who is asking: a session id in a cookie, looked up at every request, so that revoking access takes effect at once;
or the name that an authenticating proxy, such as oauth2-proxy or Authelia, has put into a header.

`Limited`, `Viewer`, `Lead`, `ClassEditor` and `Proposer` are what routes ask for: the person who is logged in, unless
they may not do this, or ask for more than a person can. `router` has the calls that begin and end a session.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import BaseModel, Field

from accuacl.base.errors import InputError
from accuacl.labeling.store import SESSION, Person, Store, clean_name
from accuacl.labeling.web.site import Entrance, Here, Limit, Site, View

router = APIRouter(prefix="/api")
REFUSED = (
    "This link is not valid. It may have been used already, be older than a week, or not be copied whole. "
    "Ask the project's lead for a new one."
)
ENDED = "Your access to this project has ended; ask its lead."
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


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


@dataclass(frozen=True)
class ProxyLogin:
    """Log-in by a proxy. Anybody can send a header, so it is trusted only in requests from the proxy's own address.

    header: who is asking. networks: where the proxy's requests come from. groups: the header with their groups.
    leads: names and groups that lead; empty: the page People says who leads.
    """

    header: str
    networks: tuple[Network, ...]
    groups: str = ""
    leads: frozenset[str] = frozenset()

    def person(self, request: Request, store: Store) -> Person | None:
        """Who is asking, added if they are new; None if the request is not the proxy's, or does not say.

        403 if their access has been revoked here.
        """
        name = self._named(request)
        if name is None:
            return None
        namesakes = [person for person in store.people() if person.name == name]
        known = next((person for person in namesakes if not person.revoked), None)
        if known is None and namesakes:
            raise HTTPException(403, ENDED)
        person = known or store.person_named(name)
        if not self.leads:
            return person
        leads = not self.leads.isdisjoint({name, *self._groups(request)})
        if leads == person.lead:
            return person
        try:
            store.set_role(name, leads)
        except InputError:  # the only lead, whom the proxy does not know as one, stays one until there is another
            return person
        return Person(person.id, person.name, lead=leads)

    def _named(self, request: Request) -> str | None:
        if not self._is_proxy(request.client.host if request.client else ""):
            return None
        values = request.headers.getlist(self.header)
        if len(values) != 1:  # of two, one may be the browser's own
            return None
        try:
            return clean_name(values[0], "a person")
        except InputError:
            return None

    def _groups(self, request: Request) -> set[str]:
        values = request.headers.getlist(self.groups) if self.groups else []
        return {group.strip() for group in values[0].split(",")} if len(values) == 1 else set()

    def _is_proxy(self, address: str) -> bool:
        try:
            peer = ipaddress.ip_address(address)
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self.networks)


def proxy_login(
    header: str, addresses: Sequence[str], groups: str = "", leads: Sequence[str] = ()
) -> ProxyLogin | None:
    """From the options of `project serve`; None if no header is named.

    >>> proxy_login("Remote-User", ["127.0.0.1", "10.0.0.0/8"]).networks[1]
    IPv4Network('10.0.0.0/8')
    """
    if not header:
        if addresses or groups or leads:
            raise InputError("--proxy-address, --proxy-groups-header and --proxy-lead go with --proxy-user-header.")
        return None
    for name in (header, groups):
        if name and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}", name):
            raise InputError(f"{name!r} is not the name of a header; give one like Remote-User.")
    if not addresses:
        raise InputError("--proxy-user-header needs --proxy-address; the header is trusted only from there.")
    networks = []
    for address in addresses:
        try:
            networks.append(ipaddress.ip_network(address))
        except ValueError:
            raise InputError(
                f"--proxy-address is {address!r}; give an address such as 127.0.0.1, or a network such as 10.0.0.0/8."
            ) from None
    return ProxyLogin(header, tuple(networks), groups, frozenset(leads))
