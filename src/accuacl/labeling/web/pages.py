"""The pages that are HTML alone or have little beside it: log in, label, one item; and how all pages are rendered."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path
from typing import Any

import jinja2
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

from accuacl.labeling.project import Item
from accuacl.labeling.store import LabelEvent, Person, living
from accuacl.labeling.web import api
from accuacl.labeling.web.charts import strip, with_interval
from accuacl.labeling.web.session import Limited, logged_in, page_after_login
from accuacl.labeling.web.site import Entrance, Here, Number, capital

router = APIRouter(default_response_class=HTMLResponse)
entrance = APIRouter(default_response_class=HTMLResponse)  # of a project, and of the index of several
LATEST = 200  # events of an item that are shown
SNIP = 200  # characters of a text that are shown in a list
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


@entrance.get("/login")
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
    shown = site.item(item)
    hidden = item in api.hidden(site, person)
    answer = None if hidden else next(iter(site.store.answers([item])), None)
    return render(
        request,
        "item.html",
        person,
        item=shown,
        fields=api.fields(shown),
        history=[] if hidden else [(event, _done(event)) for event in site.store.history(item) if event.kind in DONE],
        answer=answer,
        hidden=hidden,
        may_correct=answer is not None and answer.class_id is not None and (person.lead or answer.person == person.id),
        latest=LATEST,
        names=site.class_names(),
        people=site.people_names(),
        living=living(site.store.classes()),
        request_id=secrets.token_hex(16),
    )


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
    site: Entrance = request.app.state.site
    lead = bool(person and person.lead)
    values = {
        "here": "",
        **values,
        "person": person.name if person else None,
        "lead": lead,
        "to_settle": len(site.store.unsettled()) if lead else 0,
        "project": site.title,
        "root": site.root,
    }
    return rooted(templates.get_template(template).render(values), site.root)


def rooted(page: str, root: str) -> str:
    """A page whose addresses are below a path; those of static files, and of forms, which scripts send, stay,
    and so does the link to the index.

    >>> rooted('<html lang="en"><a href="/review">', "/p/a")
    '<html lang="en" data-root="/p/a"><a href="/p/a/review">'
    """
    if not root:
        return page
    page = page.replace('<html lang="en">', f'<html lang="en" data-root="{root}">', 1)
    return re.sub(r'((?:href|src|data-next)=")/(?!static/|/|\?all")', rf"\g<1>{root}/", page)


def moment(when: float, form: str = "%d %b %H:%M") -> str:
    """A time as text."""
    return time.strftime(form, time.localtime(when))


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


def snip(item: Item, most: int = SNIP) -> str:
    """The beginning of a text, or of the fields of a record."""
    return (item.text or ", ".join(f"{name} {value}" for name, value in item.fields))[:most]


templates.filters |= {
    "options": mark_options,
    "capital": capital,
    "interval": with_interval,
    "moment": moment,
    "snip": snip,
}
templates.globals |= {"mark": mark, "strip": strip}
