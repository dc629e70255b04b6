"""What every request passes first: checks of its host, origin and size; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from accuacl.base.errors import InputError
from accuacl.labeling.project import LARGEST_UPLOAD

LIMIT = 64 * 1024  # bytes of a body; the longest that the page sends holds a class name
UNWANTED = 2**20  # bytes of a refused body that are read all the same
FILES = re.compile(r"/api/(uploads/[0-9a-f]{32}/files|(labels|gold)/file)")  # where files are sent to, which are longer
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "media-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
SAFE = ("GET", "HEAD")
HTTPS_ONLY = {"Strict-Transport-Security": "max-age=31536000"}


class Hosts:
    """The host names under which the server may be reached.

    Another site can make its own name point at this machine and read our answers as its own (DNS rebinding), so only
    known addresses and names are served. public_url: the address that browsers see when a proxy stands before the
    server, such as https://label.example.org.
    """

    def __init__(self, bound: str, names: Iterable[str] = (), public_url: str = "") -> None:
        self.public_url = public_url
        public = [host_name(public_url.partition("://")[2])] if public_url else []
        self.names = {"localhost", *(name.lower() for name in (*names, *public))}
        if not _is_address(bound):
            self.names.add(bound.lower())
        self.loopback_only = is_loopback(bound)

    def admit(self, host: str) -> bool:
        """Whether the Host header names this server.

        >>> Hosts("127.0.0.1").admit("127.0.0.1:8765"), Hosts("127.0.0.1").admit("evil.example:8765")
        (True, False)
        """
        name = host_name(host)
        if _is_address(name):
            return is_loopback(name) or not self.loopback_only
        return name in self.names

    def same_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this server, as browsers see it, has sent the request."""
        return origin.partition("://")[2].lower() == host.lower() or bool(origin and origin == self.public_url)


def host_name(host: str) -> str:
    """Without the port, as in `[::1]:80` and `localhost:80`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def check_public_url(url: str) -> str:
    """The address as browsers write it in an Origin header.

    >>> check_public_url("https://Label.example.org/")
    'https://label.example.org'
    """
    match = re.fullmatch(r"(https?://[a-z0-9.-]+(:\d{1,5})?|https?://\[[0-9a-f:]+\](:\d{1,5})?)/?", url.lower())
    if url and match is None:
        raise InputError(
            f"--public-url is {url!r}; give the address that people open, without a path: https://label.example.org."
        )
    return match.group(1) if match else ""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI middleware that comes before anything else looks at the request."""

    def __init__(self, app: ASGIApp, hosts: Hosts, limit: int = LIMIT) -> None:
        self.app, self.hosts, self.limit = app, hosts, limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets here

        scope.setdefault("state", {})  # where a cookie is left that is to be set with the answer
        secure = scope["scheme"] == "https" or self.hosts.public_url.startswith("https://")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (HEADERS | (HTTPS_ONLY if secure else {})).items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if cookie := scope["state"].get("cookie"):
                    headers.append("Set-Cookie", cookie)
            await send(message)

        status, reason = self._refusal(scope)
        if scope["method"] not in SAFE and (status or not _is_file(scope)):  # who may send files is checked first
            body = await _body(receive, 0 if status else self.limit)
            if body is None and not status:
                status, reason = 413, f"The request is too large; the limit is {self.limit} bytes."
            elif body is not None:
                receive = _replay(body, receive)
        if status:
            await _refuse(send_guarded, status, reason)
        else:
            await self.app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str]:
        """Status and reason of a refusal; status 0 if the request may proceed."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self.hosts.admit(host):
            return 421, "This host name is not served here; start the server with --allow-host NAME to allow it."
        if scope["method"] in SAFE:
            return 0, ""
        length = headers.get("content-length", "0")
        limit = LARGEST_UPLOAD if _is_file(scope) else self.limit
        if not length.isdecimal() or int(length) > limit:
            return 413, f"The request is too large; the limit is {limit} bytes."
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "Requests from other sites are refused."
        origin = headers.get("origin")
        if origin is not None and not self.hosts.same_origin(origin, host):
            return 403, "Requests from other sites are refused."
        kind, wanted = headers.get("content-type", "").partition(";")[0].strip(), "application/json"
        if _is_file(scope):
            wanted = "application/octet-stream"
        if kind != wanted:
            return 415, "The request must be JSON." if wanted == "application/json" else f"A file is sent as {wanted}."
        return 0, ""


async def _body(receive: Receive, limit: int) -> bytes | None:
    """The whole body; None if it is too long, whatever its header says.

    A client that is still sending does not see that it was refused, so of a body that is too long the rest is read
    too, within reason.
    """
    body, length = b"", 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return body  # the client has disconnected
        length += len(message.get("body", b""))
        if length <= limit:
            body += message.get("body", b"")
        if not message.get("more_body", False) or length > UNWANTED:
            return body if length <= limit else None


def _is_file(scope: Scope) -> bool:
    return FILES.fullmatch(scope.get("path", "")) is not None


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body, which has been read already, once."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, status: int, reason: str) -> None:
    body = json.dumps({"detail": reason}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
    await send({"type": "http.response.body", "body": body})
