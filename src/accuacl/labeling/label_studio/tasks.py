"""What Label Studio shows: picks as its tasks, and a page with a button for each class."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from PIL import Image, ImageDraw

from accuacl.base.errors import InputError
from accuacl.labeling.label_studio.link import Link
from accuacl.labeling.project import Project
from accuacl.labeling.store import Pick

TAGS = {"images": "Image", "texts": "Text", "vectors": "Table", "tables": "Table"}
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
    """A PNG that shows a sentence."""
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
