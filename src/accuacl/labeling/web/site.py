"""What all requests share: the project, what is kept and counted between requests, and what is said of errors."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import anyio
from fastapi import Depends, HTTPException, Request
from pydantic import Field

from accuacl.base.errors import InputError
from accuacl.labeling.store import Store

if TYPE_CHECKING:
    from accuacl.labeling.project import PoolMap, Project, Uploads
    from accuacl.labeling.web.guard import Hosts
    from accuacl.labeling.web.images import Decoder
    from accuacl.labeling.web.places import Places
    from accuacl.labeling.web.proxy import ProxyLogin
    from accuacl.labeling.web.trainer import Trainer

View = dict[str, Any]  # what is sent as JSON, or given to a template
Number = Annotated[int, Field(ge=0, le=2**62)]  # of an item or a class


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
        """Count this many; or return the seconds until that is allowed."""
        with self._turn:
            now = self._clock()
            left, then = self._left.get(person, (float(self.burst), now))
            left = min(self.burst, left + (now - then) * self.each_second)
            allowed = left >= count
            self._left[person] = (left - count if allowed else left, now)
            return 0.0 if allowed else (count - left) / self.each_second

    def take(self, person: int, count: int = 1) -> None:
        """Count this many; 429 if that is too many."""
        seconds = self.wait(person, count)
        if seconds:
            after = max(1, round(seconds))
            detail = f"That is too much at once; try again in {after} s."
            raise HTTPException(429, detail, headers={"Retry-After": str(after)})


class Entrance(Protocol):
    """What people log in to: the page of a project, or the index of several."""

    hosts: Hosts
    root: str  # the path below which it is; "": the whole server is its own
    proxy: ProxyLogin | None  # that says who is asking, if there is one

    @property
    def title(self) -> str:
        """The name of the project; "": several."""

    @property
    def store(self) -> Store:
        """Who may enter."""

    @property
    def directory(self) -> Path:
        """Where it is on the disk."""

    def describe(self, error: Exception) -> str:
        """What it says of an error, without paths of the server."""


@dataclass
class Site:
    """The page of one project."""

    project: Project
    trainer: Trainer
    hosts: Hosts
    decoder: Decoder
    pool_map: PoolMap
    uploads: Uploads
    places: Places
    root: str = ""
    proxy: ProxyLogin | None = None
    # What a person may send: several times what their pages do.
    requests: Limit = field(default_factory=lambda: Limit(burst=200, each_second=40))
    image_requests: Limit = field(default_factory=lambda: Limit(burst=2000, each_second=200))  # three pages a second
    class_changes: Limit = field(default_factory=lambda: Limit(burst=20, each_second=0.5))
    comment_bytes: Limit = field(default_factory=lambda: Limit(burst=200_000, each_second=1000))
    receiving: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(2))  # few files at a time
    # What is kept between requests.
    ahead: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by person: what their page has loaded ahead
    trained: tuple[int, View | None] = (0, None)  # when the journal was changed, and what the last training brought
    unlearned: tuple[int, dict[int, tuple[int, float]]] = (0, {})  # the same, and guesses for labelled items
    doubts: tuple[dict[int, int] | None, dict[int, tuple[float, int]]] = (None, {})  # labels, and likely mistakes

    @property
    def store(self) -> Store:
        """What people did."""
        return self.project.store

    @property
    def directory(self) -> Path:
        return self.project.directory

    @property
    def title(self) -> str:
        """The name of the project."""
        return self.project.directory.resolve().name

    def describe(self, error: Exception) -> str:
        """What the page says of an error, without paths of the server."""
        return describe(error, self.project)


def rooted(page: str, root: str) -> str:
    """A page whose addresses are below a path; those of static files, and of forms, which scripts send, stay,
    and so does the link to the index.

    >>> rooted('<html lang="en"><a href="/review">', "/p/a")
    '<html lang="en" data-root="/p/a"><a href="/p/a/review">'
    """
    if not root:
        return page
    page = page.replace('<html lang="en">', f'<html lang="en" data-root="{root}">', 1)
    return ADDRESS.sub(rf"\g<1>{root}/", page)


async def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(_site)]
ADDRESS = re.compile(r'((?:href|src|data-next)=")/(?!static/|/|\?all")')
ABSOLUTE = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:[\\/]|/)(?:[^\s'\"/\\:;,()]+[\\/])*([^\s'\"/\\:;,()]+)")


def describe(error: Exception, project: Project) -> str:
    """What the page of a project says of an error, without paths of the server."""
    with contextlib.suppress(InputError):  # what is wrong may be the list of tasks
        places = [Path(task.place) for task in project.tasks.all()]
        return sentence(error, [project.directory, project.directory.resolve(), *places])
    return sentence(error, [project.directory, project.directory.resolve()])


def sentence(error: Exception, places: Iterable[Path] = ()) -> str:
    """What the page says of an error: the sentence of an InputError; of a bug its type, to find it in the log.

    places: folders that it may name; only their last part is shown, as for any absolute path.

    >>> sentence(InputError("the folder /srv/my data/photos is missing; bring it back."), [Path("/srv/my data/photos")])
    'The folder photos is missing; bring it back.'
    >>> sentence(InputError("/srv/p/labels.sqlite cannot be read."))  # the name of a file stays as it is
    'labels.sqlite cannot be read.'
    >>> sentence(KeyError("a"))
    "KeyError: 'a' (a bug; the server's log has the details)"
    """
    text = without_paths(str(error), places)
    if isinstance(error, InputError):
        return text if "." in text.partition(" ")[0].rstrip(".") else text[:1].upper() + text[1:]
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
