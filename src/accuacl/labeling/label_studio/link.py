"""Which Label Studio project is ours, and how its server's troubles are told."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, write_text
from accuacl.labeling.project import Project
from accuacl.labeling.store import Class, living

FILE = "label_studio.json"
TOKEN = "LABEL_STUDIO_API_KEY"  # the environment variable


@dataclass
class Link:
    """What the file remembers. key: random, marks the project there and names requests; choices: their classes."""

    url: str
    key: str
    project: int | None = None
    choices: dict[str, int] = field(default_factory=dict)


def offer(link: Link, classes: list[Class]) -> None:
    """A choice for each class that has none; those there stay, so that a class renamed here is still known."""
    for c in living(classes):
        if c.id not in link.choices.values():
            link.choices[c.name if c.name not in link.choices else f"{c.name} ({c.id})"] = c.id


def address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InputError("that is not the address of a Label Studio; give one like http://127.0.0.1:8080.")
    return url.rstrip("/")


def load(project: Project, url: str) -> Link | None:
    path = project.directory / FILE
    try:
        link = Link(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise InputError(f"{path} is damaged; restore it from a copy, or remove it and push again.") from None
    if link.url != url and link.project is None:  # a wrong address was tried, and nothing came of it
        return None
    if link.url != url:
        raise InputError(
            f"this project was pushed to {link.url}, not {url}; if that is the same server, change `url` in {path}, "
            "else remove that file and push again."
        )
    return link


def save(project: Project, link: Link) -> None:
    write_text(project.directory / FILE, json.dumps(asdict(link), indent=1) + "\n")


@contextlib.contextmanager
def alone(project: Project) -> Iterator[None]:
    """Two who push at once come one after the other, so that nothing is there twice."""
    with Lock(project.directory / f"{FILE}.lock", wait=True):
        yield


@contextlib.contextmanager
def clear(url: str) -> Iterator[None]:
    """What can go wrong with a server, in a sentence; never with what was sent, which has the token."""
    try:
        yield
    except (ValueError, OSError):
        raise
    except Exception as error:
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            raise InputError(
                f"Label Studio at {url} does not accept the token in {TOKEN}; copy it from your account there, and "
                "look whether tokens of its kind are allowed."
            ) from None
        if status is not None:
            raise InputError(
                f"{url} answered with status {status}; is that a Label Studio, and is it well?{_detail(error)}"
            ) from None
        if type(error).__module__.split(".")[0] in ("httpx", "httpcore", "requests", "urllib3"):
            raise ConnectionError(f"Label Studio is not at {url} ({type(error).__name__}); start it there.") from None
        raise


def _detail(error: Exception) -> str:
    body = getattr(error, "body", None)
    said = body.get("detail") if isinstance(body, dict) else None
    return f" It says: {str(said)[:200]!r}." if said else ""
