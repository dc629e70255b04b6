"""A client of the page's server, for programs that label: other models, rules, scripts.

    with Client("http://127.0.0.1:8765", token) as client:
        for example in client:  # waits while the model learns, and ends when all data are learned
            client.label(example, "cat" if looks_like_a_cat(client.image(example)) else "dog")

It needs Python's standard library alone. Requests that change something have an id, so that one whose answer was lost
is sent again and counts once.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from accuacl.base.errors import InputError, one_line
from accuacl.base.files import reason

PATIENCE = 60.0  # seconds for which a server that does not answer is asked again
ANSWER = 60.0  # seconds that one answer may take
PAUSE = 1.0  # seconds between two questions for the next example
AGAIN = (502, 503, 504)  # the server, or the proxy before it, cannot answer now


class Refused(InputError):
    """The server refuses a request; status: that of HTTP, such as 409 for an example that somebody else has now."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class ServerUnreachable(InputError):
    """No server answers at `url`."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"no server answers at {url} ({why}); start it, or give another address.")
        self.url = url


@dataclass(frozen=True)
class Example:
    """Something to label. kind: image, text, vector, record or file; a vector or record has fields."""

    item: int
    kind: str
    text: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    path: str = ""  # of its image or file on the server: see `Client.image`
    classes: tuple[str, ...] = ()  # the names of all classes


class Client:
    """One person's session with a server. Not for several threads: give each a client, and a token, of its own."""

    def __init__(self, url: str, token: str = "", *, ca: Path | str | None = None, patience: float = PATIENCE) -> None:
        """Log in.

        url: where `accuacl project serve` serves, or a login link, which has its token behind a #. token: as
        `accuacl project person DIR add NAME` prints it; it works once. ca: a file with the certificate that signed the
        server's, if no public authority did. patience: for this many seconds a server that does not answer is asked
        again.
        """
        address, self._root, given = _split(url)
        self.url = f"{address.scheme}://{address.netloc}{self._root}"
        self.patience = patience
        self._connect = _connector(address.scheme, address.hostname or "", address.port, ca)
        self._line: http.client.HTTPConnection | None = None
        self._cookie = ""
        self._classes: dict[str, int] = {}
        self._state: dict[str, Any] = {}
        self._held: Example | None = None
        if not (token or given):
            raise InputError("no token was given; give that of `accuacl project person DIR add NAME`, or a login link.")
        try:
            self._post("/api/login", {"token": token or given})
        except BaseException:
            self._hang_up()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            self.finish()
        except InputError:
            if kind is None:  # otherwise the earlier error counts
                raise

    def __iter__(self) -> Iterator[Example]:
        """Examples, until all data are learned; one that is neither labelled nor skipped comes again."""
        while (example := self.wait()) is not None:
            yield example

    @property
    def phase(self) -> str:
        """What the server's last answer said: labelling, training, waiting, empty or done."""
        return str(self._state.get("phase", ""))

    @property
    def classes(self) -> list[str]:
        """The names of the classes, from the server's last answer."""
        return list(self._classes)

    def wait(self, seconds: float | None = None) -> Example | None:
        """The next example, leased to this person for two minutes; None if all data are learned.

        There may be none for a while: the model learns, the rest of a round is being chosen, or others hold all
        examples. seconds: how long to wait for one before TimeoutError; None: for ever.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while self._held is None:
            self._take(self._post("/api/next", {}))
            if self._held is None:
                if self.phase == "done":
                    return None
                if end is not None and time.monotonic() >= end:
                    raise TimeoutError(f"there was nothing to label within {seconds:g} seconds ({self.phase}).")
                time.sleep(PAUSE if end is None else max(0.0, min(PAUSE, end - time.monotonic())))
        return self._held

    def label(self, example: Example, name: str) -> None:
        """Save a label: the name of a class. It is on the server's disk when this returns."""
        if name not in self._classes:
            self._take(self._get("/api/state"))  # somebody may have added it meanwhile
        if name not in self._classes:
            known = ", ".join(map(repr, self._classes)) or "none yet"
            raise InputError(f"there is no class {name!r}; a lead can add it, and the classes are {known}.")
        self._answer("/api/label", example, {"class_id": self._classes[name]})

    def skip(self, example: Example) -> None:
        """Skip an example: nobody is asked about it again."""
        self._answer("/api/skip", example, {})

    def image(self, example: Example) -> bytes:
        """The image or file of an example."""
        if not example.path:
            raise InputError(f"item {example.item} is a {example.kind}, which has no file.")
        status, body, _ = self._send("GET", example.path, None)
        if status != 200:
            raise _refusal(status, body, self.url)
        return body

    def finish(self) -> None:
        """Log out, which frees the example that is held; the token has been used up. Called at the end of `with`."""
        if self._cookie:
            self._post("/api/logout", {})
            self._cookie = ""
        self._held = None
        self._hang_up()

    # Requests

    def _answer(self, path: str, example: Example, more: Mapping[str, int]) -> None:
        self._held = None  # whatever the server says: after a refusal it is asked for the next one
        self._take(self._post(path, {"item": example.item, "request": uuid.uuid4().hex, **more}))

    def _take(self, view: Mapping[str, Any]) -> None:
        self._state = view["state"]
        self._classes = {each["name"]: each["id"] for each in view["classes"]}
        if pick := view.get("pick"):
            self._held = Example(
                pick["item"],
                pick["kind"],
                pick.get("text") or "",
                tuple((name, value) for name, value in pick.get("fields") or ()),
                (pick.get("image") or pick.get("file") or "").removeprefix(self._root),
                tuple(self._classes),
            )

    def _get(self, path: str) -> Any:
        return self._json("GET", path, None)

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._json("POST", path, json.dumps(body).encode())

    def _json(self, method: str, path: str, body: bytes | None) -> Any:
        status, answer, _ = self._send(method, path, body)
        if status != 200:
            raise _refusal(status, answer, self.url)
        try:
            return json.loads(answer)
        except ValueError:
            raise InputError(f"{self.url} answers, but not as accuacl does; check the address.") from None

    def _send(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body and headers of the answer; sent again while the server does not answer or is too busy."""
        end, pause = time.monotonic() + self.patience, 0.1
        while True:
            try:
                status, answer, headers = self._exchange(method, path, body)
                if status == 429:
                    pause, why = float(headers.get("retry-after", "1")), "it is asked too often"
                elif status in AGAIN:
                    why = f"status {status}"
                else:
                    return status, answer, headers
            except ssl.SSLCertVerificationError as error:
                raise InputError(
                    f"the certificate of {self.url} is not trusted ({error.verify_message}); give the file of the "
                    "certificate that signed it as `ca`."
                ) from None
            except (OSError, http.client.HTTPException) as error:
                self._hang_up()  # a kept connection may have been closed meanwhile
                why = reason(error) if isinstance(error, OSError) else one_line(error) or type(error).__name__
            if time.monotonic() + pause > end:
                raise ServerUnreachable(self.url, why)
            time.sleep(pause)
            pause = min(2 * pause, 4.0)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes, Mapping[str, str]]:
        self._line = self._line or self._connect()
        headers = {"Cookie": self._cookie} if self._cookie else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._line.request(method, self._root + path, body, headers)
        with self._line.getresponse() as response:
            answer = response.read()
            for line in response.headers.get_all("Set-Cookie", []):
                self._keep(line)
            return response.status, answer, {name.lower(): value for name, value in response.headers.items()}

    def _keep(self, line: str) -> None:
        """Keep the session's cookie, and no other: a proxy may set its own."""
        try:
            cookies = SimpleCookie(line)
        except CookieError:
            return
        for name, morsel in cookies.items():
            if "accuacl-" in name:
                self._cookie = f"{name}={morsel.value}" if morsel.value else ""

    def _hang_up(self) -> None:
        if self._line is not None:
            self._line.close()
        self._line = None


def _split(url: str) -> tuple[Any, str, str]:
    """The parts of an address, the path below which the project is, and the token of a login link.

    >>> _split("https://label.example.org/p/flowers/login#token=abc")[1:]
    ('/p/flowers', 'abc')
    """
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        address = urlsplit("")
    if address.scheme not in ("http", "https") or not address.hostname or "@" in address.netloc:
        raise InputError("this is not the address of a server; give one like http://127.0.0.1:8765.")
    token = parse_qs(address.fragment).get("token", [""])[0]
    return address, address.path.removesuffix("/login").rstrip("/"), token


def _connector(
    scheme: str, host: str, port: int | None, ca: Path | str | None
) -> Callable[[], http.client.HTTPConnection]:
    """A function that makes a connection."""
    if scheme == "http":
        if ca is not None:
            raise InputError("`ca` is for addresses that begin with https://; leave it out.")
        return lambda: http.client.HTTPConnection(host, port, timeout=ANSWER)
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:  # SSLError is one
        raise InputError(f"{ca} cannot be used: {reason(error)}; give a file with a certificate as PEM.") from None
    return lambda: http.client.HTTPSConnection(host, port, timeout=ANSWER, context=context)


def _refusal(status: int, body: bytes, url: str) -> Refused:
    """The server's own sentence about why it refused a request."""
    try:
        detail = json.loads(body)["detail"]
    except (ValueError, KeyError, TypeError):
        detail = ""
    return Refused(status, detail if isinstance(detail, str) and detail else f"{url} answered with status {status}.")
