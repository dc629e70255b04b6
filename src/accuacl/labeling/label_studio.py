"""Label Studio as the page: push a round's picks there as tasks, pull what people said of them. Extra `labelstudio`.

    push(project, "http://127.0.0.1:8080", token)
    pull(project, "http://127.0.0.1:8080", token, wait=True)

Both can be done again at any time: push adds what is missing there, pull takes each annotation once. In the project's
directory `label_studio.json` remembers which Label Studio project it is, and which choice there is which class.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import io
import json
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

from PIL import Image, ImageDraw

from accuacl.experiment.files import write_text
from accuacl.labeling.label_studio_answers import Intake, Pulled
from accuacl.labeling.project import Project
from accuacl.labeling.records import Class, Pick

FILE = "label_studio.json"
TOKEN = "LABEL_STUDIO_API_KEY"  # the environment variable
TAGS = {"images": "Image", "texts": "Text", "vectors": "Table"}
# What is asked for of tasks and, since the server takes names for both, of annotations; not the data, which are large.
FIELDS = "id,meta,annotations,result,was_cancelled,completed_by"
MOST = 8 * 2**20  # characters of tasks in one request; one that has more goes alone


@dataclass(frozen=True)
class Pushed:
    """The Label Studio project, how many tasks were added now, and how many of the round were there before."""

    project: int
    added: int
    there: int


@dataclass
class Link:
    """What the file remembers. key: random, marks the project there and names requests; choices: their classes."""

    url: str
    key: str
    project: int | None = None
    choices: dict[str, int] = field(default_factory=dict)


def push(project: Project, url: str, token: str, *, client: Any = None) -> Pushed:
    """Create the project there if it is not, and a task for each pick of the open round that nobody has answered."""
    url = _address(url)
    client = client or connect(url, token)
    status = project.store.status()
    if status is None or not status.open:
        raise ValueError(f"there is nothing to push; {project.state().text} Next: `accuacl project train`.")
    with _alone(project), _clear(url):
        link = _load(project, url) or Link(url, secrets.token_hex(8))
        _offer(link, project.store.classes())
        if not link.choices:
            raise ValueError("the project has no classes to choose from yet; name some with `accuacl project new`.")
        _save(project, link)  # before the project is made there, so that it is found if we are stopped in between
        _settle(client, project, link)
        there = {item for _, item, _ in _tasks(client, link)}
        answered = {one.item for one in project.store.answers()}
        picks = project.store.picks(status.task, status.round)
        missing = [pick for pick in picks if pick.item not in there | answered]
        names = {id: choice for choice, id in link.choices.items()}
        made = (_task(project, link, pick, (status.task, status.round, len(picks)), names) for pick in missing)
        for batch in _batches(made):
            client.projects.import_tasks(id=link.project, request=batch, return_task_ids=True)
    return Pushed(link.project or 0, len(missing), sum(pick.item in there for pick in picks))


def pull(
    project: Project,
    url: str,
    token: str,
    wait: bool = False,
    *,
    new_classes: bool = False,
    every: float = 10.0,
    tell: Callable[[Pulled], None] = lambda pulled: None,
    client: Any = None,
) -> Pulled:
    """Take what people have said there since; wait: ask every so many seconds until the round is complete.

    new_classes: a choice that is not known becomes a class; else its annotation is refused until it is known.
    """
    url = _address(url)
    client = client or connect(url, token)
    asked, total = False, Pulled()
    while True:
        link = _load(project, url)
        if link is None or link.project is None:
            raise ValueError(f"nothing of this project is at {url} yet; push it first.")
        try:
            now = _pull(client, project, link, new_classes)
        except ConnectionError as error:
            if not asked:
                raise
            warnings.warn(f"{error} Asking again.", stacklevel=2)  # a server may be away for a while
        else:
            asked, total = True, replace(total + now, refused=now.refused, left=now.left)  # what is so still
            tell(now)
        if not wait or project.state().waiting != "labels":
            return total
        time.sleep(every)


def connect(url: str, token: str) -> Any:
    """The SDK's client."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError(f"there is no token; set {TOKEN} to that of your account in Label Studio.")
    try:
        from label_studio_sdk import LabelStudio
    except ModuleNotFoundError:
        raise ValueError("Label Studio needs an extra; pip install 'accuacl[labelstudio]'.") from None
    with _clear(url):
        return LabelStudio(base_url=url, api_key=token)


def _pull(client: Any, project: Project, link: Link, new_classes: bool) -> Pulled:
    with _clear(link.url):
        _found(client, project, link)
        tasks = _tasks(client, link)
        emails = {user.id: user.email for user in client.users.list()} if any(said for *_, said in tasks) else {}
    before = dict(link.choices)
    intake = Intake(project.store, f"label-studio {link.key}", link.choices, emails, new_classes)
    try:
        for id, item, annotations in tasks:
            intake.take(id, item, annotations)
    finally:
        if link.choices != before:
            with _alone(project):  # a push meanwhile may have offered more
                latest = _load(project, link.url) or link
                latest.choices |= link.choices
                _save(project, latest)
    return intake.pulled


def _tasks(client: Any, link: Link) -> list[tuple[int, int, list[Any]]]:
    """Our tasks there, by id: (task, item, annotations). What others have put there is none of our business."""
    found = []
    for task in client.tasks.list(project=link.project, fields="all", include=FIELDS):
        meta = task.meta if isinstance(task.meta, dict) else {}
        if meta.get("accuacl") == link.key and isinstance(meta.get("item"), int):
            found.append((int(task.id), int(meta["item"]), list(task.annotations or [])))
    return sorted(found, key=lambda task: task[0])


def _task(
    project: Project, link: Link, pick: Pick, place: tuple[int, int, int], names: dict[int, str]
) -> dict[str, Any]:
    """A pick as a task; the best-ranked has the score 1. Its order there is by rank too."""
    task, round, count = place
    meta = {"accuacl": link.key, "item": pick.item, "task": task + 1, "round": round + 1}
    made: dict[str, Any] = {"data": {project.settings.kind: _shown(project, pick.item)}, "meta": meta}
    if pick.guess is not None and pick.guess in names:
        value = {"choices": [names[pick.guess]]}
        said = {"from_name": "class", "to_name": "item", "type": "choices", "value": value}
        version = f"task {task + 1} round {round + 1}"
        made["predictions"] = [{"result": [said], "score": 1 - pick.rank / count, "model_version": version}]
    return made


def _shown(project: Project, id: int) -> Any:
    """What people see of an item: an image as a data URI, a text, or a table."""
    item = project.item(id)
    if item.kind == "text":
        return item.text
    if item.kind == "vector":
        return {str(name): str(value) for name, value in item.fields}
    try:
        data, kind = project.image_bytes(id)
    except (ValueError, OSError):  # vanished or damaged since: a task must show something, to be skipped
        data, kind = _notice("This image cannot be read any more; skip it."), "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _notice(text: str) -> bytes:
    """A picture of a sentence."""
    image = Image.new("RGB", (320, 40), "white")
    ImageDraw.Draw(image).text((10, 12), text, fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def _batches(tasks: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Tasks in lists that are not too long to send."""
    batch: list[dict[str, Any]] = []
    size = 0
    for task in tasks:
        length = len(json.dumps(task))
        if batch and size + length > MOST:
            yield batch
            batch, size = [], 0
        batch.append(task)
        size += length
    if batch:
        yield batch


def _settle(client: Any, project: Project, link: Link) -> None:
    """Make the project there, or see that it offers all choices."""
    if link.project is None:  # perhaps it was made, and we were stopped before we knew its number
        made = next((one.id for one in client.projects.list() if one.description == _mark(link)), None)
        if made is None:
            made = client.projects.create(
                title=f"accuacl {project.directory.resolve().name}"[:50],
                description=_mark(link),
                label_config=_config(project, link),
                show_collab_predictions=False,  # nobody is led by the model's guess
                skip_queue="IGNORE_SKIPPED",  # what was skipped is not asked for again
                sampling="Sequential sampling",  # by rank
            ).id
        link.project = int(made)
        _save(project, link)
    config = str(_found(client, project, link).label_config)
    view = ElementTree.fromstring(config)
    choices = view.find(".//Choices[@name='class']")
    if choices is None:
        raise ValueError(f'project {link.project} at {link.url} has no <Choices name="class"> any more; put it back.')
    missing = [name for name in link.choices if name not in {one.get("value") for one in choices}]
    for name in missing:
        ElementTree.SubElement(choices, "Choice", value=name)
    if missing:
        client.projects.update(id=link.project, label_config=ElementTree.tostring(view, encoding="unicode"))


def _found(client: Any, project: Project, link: Link) -> Any:
    try:
        return client.projects.get(id=link.project)
    except Exception as error:
        if getattr(error, "status_code", None) != 404:
            raise
        raise ValueError(
            f"project {link.project} is not at {link.url} any more; remove {project.directory / FILE} and push again "
            "to make a new one. What was pulled stays."
        ) from None


def _mark(link: Link) -> str:
    return f"accuacl {link.key}"


def _config(project: Project, link: Link) -> str:
    """What people see there: the item, and a button for each class."""
    view = ElementTree.Element("View")
    kind = project.settings.kind
    ElementTree.SubElement(view, TAGS[kind], name="item", value=f"${kind}")
    buttons = {"name": "class", "toName": "item", "choice": "single-radio", "showInline": "true", "required": "true"}
    choices = ElementTree.SubElement(view, "Choices", buttons)
    for name in link.choices:
        ElementTree.SubElement(choices, "Choice", value=name)
    return ElementTree.tostring(view, encoding="unicode")


def _offer(link: Link, classes: list[Class]) -> None:
    """A choice for each class that has none; those there stay, so that a class renamed here is still known."""
    for one in classes:
        if one.merged_into is None and one.id not in link.choices.values():
            link.choices[one.name if one.name not in link.choices else f"{one.name} ({one.id})"] = one.id


def _address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("that is not the address of a Label Studio; give one like http://127.0.0.1:8080.")
    return url.rstrip("/")


def _load(project: Project, url: str) -> Link | None:
    path = project.directory / FILE
    try:
        link = Link(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise ValueError(f"{path} is damaged; restore it from a copy, or remove it and push again.") from None
    if link.url != url and link.project is None:  # a wrong address was tried, and nothing came of it
        return None
    if link.url != url:
        raise ValueError(
            f"this project was pushed to {link.url}, not {url}; if that is the same server, change `url` in {path}, "
            "else remove that file and push again."
        )
    return link


def _save(project: Project, link: Link) -> None:
    write_text(project.directory / FILE, json.dumps(asdict(link), indent=1) + "\n")


@contextlib.contextmanager
def _alone(project: Project) -> Iterator[None]:
    """Two who push at once come one after the other, so that nothing is there twice."""
    held = os.open(project.directory / f"{FILE}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


@contextlib.contextmanager
def _clear(url: str) -> Iterator[None]:
    """What can go wrong with a server, in a sentence; never with what was sent, which has the token."""
    try:
        yield
    except (ValueError, OSError):
        raise
    except Exception as error:
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            raise ValueError(
                f"Label Studio at {url} does not accept the token in {TOKEN}; copy it from your account there, and "
                "look whether tokens of its kind are allowed."
            ) from None
        if status is not None:
            raise ValueError(
                f"{url} answered with status {status}; is that a Label Studio, and is it well?{_detail(error)}"
            ) from None
        if type(error).__module__.split(".")[0] in ("httpx", "httpcore", "requests", "urllib3"):
            raise ConnectionError(f"Label Studio is not at {url} ({type(error).__name__}); start it there.") from None
        raise


def _detail(error: Exception) -> str:
    body = getattr(error, "body", None)
    said = body.get("detail") if isinstance(body, dict) else None
    return f" It says: {str(said)[:200]!r}." if said else ""
