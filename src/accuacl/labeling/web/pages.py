"""The pages that are HTML alone or have little beside it: log in, label, one item; and how all pages are rendered."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path
from typing import Any

import jinja2
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from accuacl.base.errors import InputError
from accuacl.labeling.store import LabelEvent, Person, living
from accuacl.labeling.web import api
from accuacl.labeling.web.session import Limited, logged_in, page_after_login
from accuacl.labeling.web.site import Here, Number, Site, rooted

router = APIRouter(default_response_class=HTMLResponse)
LATEST = 200  # events of an item that are shown
REASONS = ("I cannot tell", "None of the classes", "Several classes at once", "Damaged or empty")  # to skip an example
DONE = {
    "label": "labelled it",
    "skip": "skipped it",
    "opinion": "was asked too, and labelled it",
    "undo": "undid that",
    "correct": "labelled it again",
    "comment": "wrote",
    "guess": "was shown the model's guess",
    "flag": "flagged it",
    "unflag": "removed the flag",
}
templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


@router.get("/login")
def login(request: Request, next: str = "/") -> str:
    """Where login links lead, and everyone who is not logged in; `next` is the page that they wanted."""
    return render(request, "login.html", logged_in(request), next=page_after_login(next))


@router.get("/")
def label(request: Request, person: Limited) -> str:
    """The page on which people label."""
    return render(request, "label.html", person, here="label", reasons=REASONS)


@router.get("/item/{item}")
def item(item: Number, request: Request, site: Here, person: Limited) -> str:
    """One item, the history of its labels, and a form to correct it."""
    try:
        shown = site.project.item(item)
    except InputError as error:
        raise HTTPException(404, "There is no such item.") from error
    hidden = item in api.hidden(site, person)
    answer = None if hidden else next(iter(site.store.answers([item])), None)
    classes = site.store.classes()
    return render(
        request,
        "item.html",
        person,
        item=shown,
        fields=api.fields(shown),
        history=[] if hidden else _history(site, item),
        answer=answer,
        hidden=hidden,
        may_correct=answer is not None and answer.class_id is not None and (person.lead or answer.person == person.id),
        names={c.id: c.name for c in classes},
        living=living(classes),
        request_id=secrets.token_hex(16),
    )


def _history(site: Site, item: int) -> list[tuple[str, str, str, str]]:
    """The latest events of an item: when, what was done, the class or the text, and who did it."""
    names: dict[int | None, str] = {c.id: c.name for c in site.store.classes()}
    people: dict[int | None, str] = {person.id: person.name for person in site.store.people()}
    events = [event for event in site.store.history(item) if event.kind in DONE][-LATEST:]
    return [
        (
            time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.time)),
            _done(event),
            (event.text or "") if event.class_id is None else names.get(event.class_id, ""),
            people.get(event.person, "someone"),
        )
        for event in events
    ]


def _done(event: LabelEvent) -> str:
    if event.kind == "opinion" and event.class_id is None:
        return "was asked too, and skipped it"
    return "decided what it is" if event.text == "decision" else DONE[event.kind]


def trouble(request: Request, status: int, detail: str) -> str:
    """What is shown when there is no such page, one may not see it, or the server cannot make it."""
    person = logged_in(request) if status < 500 else None
    title, text = "This did not work", detail
    if status == 403:
        title, text = "Only leads may see this page", "A lead of the project can make you one, on the page People."
    if status == 404:
        title = "There is no such page" if detail == "Not Found" else detail.rstrip(".")
        text = "The address may be wrong, or what was there has been removed."
    return render(request, "trouble.html", person, title=title, text=text)


def render(request: Request, template: str, person: Person | None, **values: Any) -> str:
    """A page as HTML. here: which of the links above is this page."""
    values = {
        "here": "",
        **values,
        "person": person.name if person else None,
        "lead": bool(person and person.lead),
        "to_settle": len(request.app.state.site.store.unsettled()) if person and person.lead else 0,
        "project": request.app.state.site.title,
        "root": request.app.state.site.root,
    }
    return rooted(templates.get_template(template).render(values), request.app.state.site.root)


def mark_options(text: str) -> Markup:
    """Options of commands within a sentence are set as code, which no line break divides.

    >>> str(mark_options("a larger --holdout than 0.3 & more"))
    'a larger <code>--holdout</code> than 0.3 &amp; more'
    """
    return Markup(re.sub(r"--[a-z][a-z-]*", r"<code>\g<0></code>", str(escape(text))))


def mark(class_id: int) -> Markup:
    """The mark of a class, a colour and a shape that stay with it: see marks.css and marks.js.

    >>> str(mark(11))
    '<i class="mark k3 m1"></i>'
    """
    return Markup('<i class="mark k{} m{}"></i>').format(class_id % 8, class_id // 8 % 4)


templates.filters["options"] = mark_options
templates.globals["mark"] = mark
