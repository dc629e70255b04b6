"""What all requests share: the project, what is cached and counted between requests, and how errors are worded."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import anyio
from fastapi import Depends, HTTPException, Request
from pydantic import Field

from accuacl.base.errors import InputError
from accuacl.labeling.store import Store

if TYPE_CHECKING:
    from accuacl.labeling.project import Item, PoolMap, Project, Uploads
    from accuacl.labeling.web.guard import Hosts
    from accuacl.labeling.web.images import Decoder
    from accuacl.labeling.web.incoming import Places
    from accuacl.labeling.web.session import ProxyLogin
    from accuacl.labeling.web.trainer import Trainer

T = TypeVar("T")
View = dict[str, Any]  # what is sent as JSON, or given to a template
Number = Annotated[int, Field(ge=0, le=2**62)]  # of an item or a class


class Limit:
    """A rate limit: a bucket for each person, which fills up again with time.

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
        """Take this many from the bucket, or return the seconds until that is possible."""
        with self._turn:
            now = self._clock()
            left, then = self._left.get(person, (float(self.burst), now))
            left = min(self.burst, left + (now - then) * self.each_second)
            allowed = left >= count
            self._left[person] = (left - count if allowed else left, now)
            return 0.0 if allowed else (count - left) / self.each_second

    def take(self, person: int, count: int = 1) -> None:
        """Take this many from the bucket; 429 if there are too few."""
        seconds = self.wait(person, count)
        if seconds:
            after = max(1, round(seconds))
            detail = f"That is too much at once; try again in {after} s."
            raise HTTPException(429, detail, headers={"Retry-After": str(after)})


@dataclass(kw_only=True)
class Entrance:
    """What people log in to: the page of a project, or the index of several."""

    directory: Path
    store: Store  # who may enter, and in a project what they did
    hosts: Hosts
    places: Places  # folders that leads may add data from
    proxy: ProxyLogin | None = None  # that says who is asking, if there is one
    title: str = ""  # the name of the project; "": several
    root: str = ""  # the path below which it is; "": the whole server is its own
    # What a person may send: several times what their pages do.
    requests: Limit = field(default_factory=lambda: Limit(burst=200, each_second=40))

    def describe(self, error: Exception) -> str:
        """What the page says of an error, without paths of the server."""
        return sentence(error, [self.directory, self.directory.resolve()])


@dataclass(kw_only=True)
class Site(Entrance):
    """The page of one project."""

    project: Project
    trainer: Trainer
    decoder: Decoder
    pool_map: PoolMap
    uploads: Uploads
    image_requests: Limit = field(default_factory=lambda: Limit(burst=2000, each_second=200))  # three pages a second
    class_changes: Limit = field(default_factory=lambda: Limit(burst=20, each_second=0.5))
    comment_bytes: Limit = field(default_factory=lambda: Limit(burst=200_000, each_second=1000))
    receiving: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(2))  # few files at a time
    ahead: dict[int, tuple[int, ...]] = field(default_factory=dict)  # by person: what their page has loaded ahead
    _kept: dict[str, tuple[object, Any]] = field(default_factory=dict)

    def kept(self, name: str, version: object, make: Callable[[], T]) -> T:
        """Cache what `make` returns until the version changes."""
        if name not in self._kept or self._kept[name][0] != version:
            self._kept[name] = (version, make())
        result: T = self._kept[name][1]
        return result

    def journal_version(self) -> int:
        """A number that changes with the journal."""
        journal = self.project.journal
        return journal.stat().st_mtime_ns if journal.exists() else 0

    def item(self, item: int) -> Item:
        """An item; 404 if there is none."""
        try:
            return self.project.item(item)
        except InputError as error:
            raise HTTPException(404, "There is no such item.") from error

    def class_names(self) -> dict[int, str]:
        """The names of all classes, also of merged ones."""
        return {c.id: c.name for c in self.store.classes()}

    def people_names(self) -> dict[int, str]:
        """The names of all people, also of those without access."""
        return {person.id: person.name for person in self.store.people()}

    def expected_by_others(self, person: int) -> frozenset[int]:
        """The items that other people's pages have loaded ahead."""
        return frozenset(item for id, items in self.ahead.items() if id != person for item in items)

    def describe(self, error: Exception) -> str:
        return describe(error, self.project)


async def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


Here = Annotated[Site, Depends(_site)]
ABSOLUTE = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:[\\/]|/)(?:[^\s'\"/\\:;,()]+[\\/])*([^\s'\"/\\:;,()]+)")


def capital(text: str) -> str:
    """The text with a capital letter, to begin a sentence."""
    return text[:1].upper() + text[1:]


def describe(error: Exception, project: Project) -> str:
    """What the page of a project says of an error, without paths of the server."""
    places = [project.directory, project.directory.resolve()]
    with contextlib.suppress(InputError):  # what is wrong may be the list of tasks
        places += [Path(task.place) for task in project.tasks.all()]
    return sentence(error, places)


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
        return text if "." in text.partition(" ")[0].rstrip(".") else capital(text)
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
