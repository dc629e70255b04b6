"""Label Studio as the page: push a round's picks as tasks, pull people's annotations. Needs the extra `labelstudio`.

    push(project, "http://127.0.0.1:8080", token)
    pull(project, "http://127.0.0.1:8080", token, wait=True)

Both can be repeated at any time: push adds the tasks that are missing, pull takes each annotation once. In the
project's directory `label_studio.json` remembers which Label Studio project it is, and which choice is which class.
"""

from __future__ import annotations

import base64
import io
import json
import secrets
import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

from PIL import Image, ImageDraw

from accuacl.base.errors import InputError, install
from accuacl.labeling.label_studio.annotations import Intake, Pulled
from accuacl.labeling.label_studio.link import (
    FILE,
    TOKEN,
    Link,
    Unreachable,
    address,
    alone,
    clear_errors,
    load,
    offer,
    save,
)
from accuacl.labeling.project import Project
from accuacl.labeling.store import Pick

# The fields to fetch of tasks and, since the server takes names for both, of annotations; not the large data.
FIELDS = "id,meta,annotations,result,was_cancelled,completed_by"


@dataclass(frozen=True)
class Pushed:
    """The Label Studio project, how many tasks were added, and how many of the round it had before."""

    project: int
    added: int
    there: int


def push(project: Project, url: str, token: str, *, client: Any = None) -> Pushed:
    """Create the Label Studio project if needed, and a task for each pick of the open round without an answer."""
    url = address(url)
    client = client or connect(url, token)
    status = project.store.status()
    if status is None or not status.open:
        typed = shlex.quote(str(project.directory))
        raise InputError(f"there is nothing to push; {project.state().text} Next: `accuacl project train {typed}`.")
    with alone(project), clear_errors(url):
        link = load(project, url) or Link(url, secrets.token_hex(8))
        offer(link, project.store.classes())
        if not link.choices:
            raise InputError("the project has no classes to choose from yet; name some with `accuacl project new`.")
        save(project, link)  # before the project is made, so that it is found if this process is killed meanwhile
        _settle(client, project, link)
        there = {item for _, item, _ in _tasks(client, link)}
        answered = {answer.item for answer in project.store.answers()}
        picks = project.store.picks(status.task, status.round)
        missing = [pick for pick in picks if pick.item not in there | answered]
        names = {id: choice for choice, id in link.choices.items()}
        made = (task_of(project, link, pick, (status.task, status.round, len(picks)), names) for pick in missing)
        for batch in batches(made):
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
    """Take the annotations made since; wait: repeat at this interval, in seconds, until the round is complete.

    new_classes: an unknown choice becomes a class; otherwise its annotation is refused until the class is added.
    """
    url = address(url)
    client = client or connect(url, token)
    answered, total = False, Pulled()
    while True:
        link = load(project, url)
        if link is None or link.project is None:
            raise InputError(f"this project has not been pushed to {url} yet; push it first.")
        try:
            now = _pull(client, project, link, new_classes)
        except Unreachable as error:
            if not answered:
                raise
            warnings.warn(f"{error} Trying again.", stacklevel=2)  # it has answered before, so it may come back
        else:
            answered = True
            total = replace(total + now, refused=now.refused, left=now.left)  # the last pull lists all that remain
            tell(now)
        if not wait or project.state().waiting != "labels":
            return total
        time.sleep(every)


def connect(url: str, token: str) -> Any:
    """The SDK's client."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise InputError(f"no access token is set; set {TOKEN} to the access token of your account in Label Studio.")
    try:
        from label_studio_sdk import LabelStudio
    except ModuleNotFoundError:
        raise InputError(f"Label Studio needs the extra `labelstudio`; {install('labelstudio')}.") from None
    with clear_errors(url):
        client = LabelStudio(base_url=url, api_key=token)
        version = client.versions.get()
    if not isinstance(getattr(version, "release", None), str):
        raise InputError(f"{url} answers, but not as Label Studio does; check the address.")
    return client


def _pull(client: Any, project: Project, link: Link, new_classes: bool) -> Pulled:
    with clear_errors(link.url):
        _fetch_project(client, project, link)
        tasks = _tasks(client, link)
        emails = {user.id: user.email for user in client.users.list()} if any(said for *_, said in tasks) else {}
    before = dict(link.choices)
    intake = Intake(project.store, f"label-studio {link.key}", link.choices, emails, new_classes)
    try:
        for id, item, annotations in tasks:
            intake.take(id, item, annotations)
    finally:
        if link.choices != before:
            with alone(project):  # a push may have added choices meanwhile
                latest = load(project, link.url) or link
                latest.choices |= link.choices
                save(project, latest)
    return intake.pulled


def _tasks(client: Any, link: Link) -> list[tuple[int, int, list[Any]]]:
    """Our tasks as (task, item, annotations), by task id. Tasks that others have added are ignored."""
    ours = []
    for task in client.tasks.list(project=link.project, fields="all", include=FIELDS):
        meta = task.meta if isinstance(task.meta, dict) else {}
        if meta.get("accuacl") == link.key and isinstance(meta.get("item"), int):
            ours.append((int(task.id), int(meta["item"]), list(task.annotations or [])))
    return sorted(ours, key=lambda task: task[0])


def _settle(client: Any, project: Project, link: Link) -> None:
    """Create the Label Studio project if needed, and make it offer all choices."""
    if link.project is None:  # it may exist already, if an earlier push was killed before it knew the number
        made = next((there.id for there in client.projects.list() if there.description == _mark(link)), None)
        if made is None:
            made = client.projects.create(
                title=f"accuacl {project.directory.resolve().name}"[:50],
                description=_mark(link),
                label_config=config_of(project, link),
                show_collab_predictions=False,  # the model's guess shall influence nobody
                skip_queue="IGNORE_SKIPPED",  # skipped tasks are not shown again
                sampling="Sequential sampling",  # by rank
            ).id
        link.project = int(made)
        save(project, link)
    config = str(_fetch_project(client, project, link).label_config)
    view = ElementTree.fromstring(config)
    choices = view.find(".//Choices[@name='class']")
    if choices is None:
        raise InputError(f'project {link.project} at {link.url} has no <Choices name="class"> any more; add it again.')
    missing = [name for name in link.choices if name not in {choice.get("value") for choice in choices}]
    for name in missing:
        ElementTree.SubElement(choices, "Choice", value=name)
    if missing:
        client.projects.update(id=link.project, label_config=ElementTree.tostring(view, encoding="unicode"))


def _fetch_project(client: Any, project: Project, link: Link) -> Any:
    try:
        return client.projects.get(id=link.project)
    except Exception as error:
        if getattr(error, "status_code", None) != 404:
            raise
        raise InputError(
            f"{link.url} no longer has project {link.project}; remove {project.directory / FILE} and push again "
            "to make a new one. Labels that were pulled stay."
        ) from None


def _mark(link: Link) -> str:
    return f"accuacl {link.key}"


# --- What Label Studio shows

TAGS = {"images": "Image", "texts": "Text", "vectors": "Table", "tables": "Table", "files": "Table"}
MOST = 8 * 2**20  # characters of tasks in one request; a longer task is sent alone


def task_of(
    project: Project, link: Link, pick: Pick, place: tuple[int, int, int], names: dict[int, str]
) -> dict[str, Any]:
    """A pick as a task with a prediction, whose score is 1 for the best-ranked pick and falls with the rank."""
    task, round, count = place
    meta = {"accuacl": link.key, "item": pick.item, "task": task + 1, "round": round + 1}
    guess = []  # empty before there is a model
    if pick.guess is not None and pick.guess in names:
        value = {"choices": [names[pick.guess]]}
        guess = [{"from_name": "class", "to_name": "item", "type": "choices", "value": value}]
    version = f"task {task + 1} round {round + 1}"
    prediction = {"result": guess, "score": 1 - pick.rank / count, "model_version": version}
    return {"data": {project.settings.kind: _shown(project, pick.item)}, "meta": meta, "predictions": [prediction]}


def _shown(project: Project, id: int) -> Any:
    """What people see of an item: an image as a data URI, a text, or a table."""
    item = project.item(id)
    if item.kind == "text":
        return item.text
    if item.kind != "image":
        return {str(name): str(value) for name, value in item.fields}
    try:
        data, kind = project.image_bytes(id)
    except InputError:  # missing or damaged by now; the task must show something, so that people skip it
        data, kind = _notice("This image cannot be shown. Skip it."), "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def _notice(text: str) -> bytes:
    """Render text as a PNG."""
    image = Image.new("RGB", (320, 40), "white")
    ImageDraw.Draw(image).text((10, 12), text, fill="black")
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def batches(tasks: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Tasks in lists that are short enough to send."""
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


def config_of(project: Project, link: Link) -> str:
    """Label Studio's configuration of what people see: the item, and a button for each class."""
    view = ElementTree.Element("View")
    kind = project.settings.kind
    ElementTree.SubElement(view, TAGS[kind], name="item", value=f"${kind}")
    buttons = {"name": "class", "toName": "item", "choice": "single-radio", "showInline": "true", "required": "true"}
    choices = ElementTree.SubElement(view, "Choices", buttons)
    for name in link.choices:
        ElementTree.SubElement(choices, "Choice", value=name)
    return ElementTree.tostring(view, encoding="unicode")
