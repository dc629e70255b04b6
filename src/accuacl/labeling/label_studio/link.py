"""Which Label Studio project belongs to a project, and errors of its server as sentences."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from urllib.parse import urlsplit

import pydantic

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, reading, write_text
from accuacl.labeling.project import Project
from accuacl.labeling.store import Class, living

FILE = "label_studio.json"


@dataclass
class Link:
    """The contents of label_studio.json.

    key: random; marks our project on the server and begins the names of requests. choices: the class of each choice.
    """

    url: str
    key: str
    project: int | None = None
    choices: dict[str, int] = field(default_factory=dict)


def offer(link: Link, classes: list[Class]) -> None:
    """Add a choice for each class that has none. Existing ones stay, so that a class renamed here is still known."""
    for c in living(classes):
        if c.id not in link.choices.values():
            link.choices[c.name if c.name not in link.choices else f"{c.name} ({c.id})"] = c.id


def address(url: str) -> str:
    """The address of a server, checked. It is not repeated in the error: it may contain a token."""
    split = urlsplit(url)
    if split.scheme not in ("http", "https") or not split.hostname or "@" in split.netloc:
        raise InputError("this is not the address of a Label Studio server; give one like http://127.0.0.1:8080.")
    return url.rstrip("/")


def load(project: Project, url: str) -> Link | None:
    """The link to the server at `url`; None if the project has not been pushed yet."""
    path = project.directory / FILE
    if not path.exists():
        return None
    try:
        with reading(path):
            link = Link(**json.loads(path.read_text(encoding="utf-8")))
    except (UnicodeDecodeError, json.JSONDecodeError, TypeError):
        raise InputError(f"{path} is damaged; restore it from a copy, or remove it and push again.") from None
    if link.url != url and link.project is None:  # a push to a wrong address, which failed
        return None
    if link.url != url:
        raise InputError(
            f"this project was pushed to {link.url}, not {url}; if that is the same server, change `url` in {path}, "
            "else remove that file and push again."
        )
    return link


def save(project: Project, link: Link) -> None:
    """Remember the link."""
    write_text(project.directory / FILE, json.dumps(asdict(link), indent=1) + "\n")


@contextlib.contextmanager
def alone(project: Project) -> Iterator[None]:
    """One process at a time pushes, so that nothing is pushed twice."""
    with Lock(project.directory / f"{FILE}.lock", wait=True):
        yield


class Unreachable(InputError):
    """The server at `url` does not answer."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(f"no Label Studio server answers at {url} ({why}); start it, or give another address.")
        self.url = url


@contextlib.contextmanager
def clear_errors(url: str) -> Iterator[None]:
    """Errors of the server and on the way to it as InputErrors, which never repeat what was sent: the token."""
    try:
        yield
    except InputError:
        raise
    except (json.JSONDecodeError, pydantic.ValidationError):
        raise InputError(f"{url} answers, but not as Label Studio does; check the address.") from None
    except Exception as error:  # the SDK's, or the HTTP library's: known by their fields and module, so that
        status = getattr(error, "status_code", None)  # neither needs to be installed for this file
        if status in (401, 403):
            raise InputError(
                f"Label Studio at {url} does not accept the token in {TOKEN}; copy it from your account there, and "
                "check that the server allows tokens of this kind."
            ) from None
        if status is not None:
            raise InputError(
                f"{url} answered with status {status}; check that it is a Label Studio server without errors in its "
                f"log.{_detail(error)}"
            ) from None
        if type(error).__module__.split(".")[0] in ("httpx", "httpcore", "requests", "urllib3"):
            raise Unreachable(url, type(error).__name__) from None
        raise


def _detail(error: Exception) -> str:
    body = getattr(error, "body", None)
    detail = body.get("detail") if isinstance(body, dict) else None
    return f" It says: {str(detail)[:200]!r}." if detail else ""


TOKEN = "LABEL_STUDIO_API_KEY"  # the environment variable
