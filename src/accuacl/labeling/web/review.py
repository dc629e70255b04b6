"""The page on which every answer ever given can be found, and many of them changed at once."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field
from starlette.datastructures import State

from accuacl.base.errors import counted
from accuacl.labeling.project import last_predictions, likely_mistakes, measure_quality
from accuacl.labeling.store import Person, Reviewed, counts_as, living
from accuacl.labeling.web import api
from accuacl.labeling.web.api import Number, RequestId
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead, Limited

router = APIRouter()
SHEET = 60  # items on a page
SNIP = 200  # characters of a text that are shown
SHOW = {
    "all": "everything",
    "labelled": "labelled",
    "skipped": "skipped",
    "open": "without an answer",
    "commented": "commented",
    "model": "the model disagrees",
    "people": "people disagree",
    "settle": "people disagree, to settle",
    "mistakes": "likely mistakes",
    "gold": "gold",
    "guessed": "the guess was shown",
    "flagged": "flagged",
}


class RelabelRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]
    class_id: Number
    request: RequestId


class UndoRelabelRequest(BaseModel):
    batch: RequestId  # the request that is undone
    request: RequestId


class ReviewItemsRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]


class CommentRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    request: RequestId


class GoldRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=500)]
    gold: bool


class Wanted(BaseModel):
    """What to show: the fields of the form, as they are in the page's address; "" is any."""

    label: str = ""
    guess: str = ""
    person: str = ""
    task: str = ""
    round: str = ""
    show: Literal[
        "all",
        "labelled",
        "skipped",
        "open",
        "commented",
        "model",
        "people",
        "settle",
        "mistakes",
        "gold",
        "guessed",
        "flagged",
    ] = "all"
    held: Literal["", "1"] = ""
    page: Annotated[int, Field(ge=1, le=10**6)] = 1

    def address(self, page: int) -> str:
        """The address of another page of the same."""
        fields = {name: value for name, value in self.model_dump(exclude={"page"}).items() if value not in ("", "all")}
        return "/review?" + urlencode(fields | {"page": page})


@dataclass(frozen=True)
class Opinion:
    """An item with what the model takes it for: held-out ones after the last training, others when they were picked."""

    row: Reviewed
    guess: int | None
    held: bool
    doubt: tuple[float, int] | None = None  # how doubtful its label is, and the class that it probably is


def opinions(app: State, doubts: dict[int, tuple[float, int]]) -> list[Opinion]:
    """All items that were ever offered: the most doubtful first, then those answered last, those without an answer at
    the end.
    """
    store, now = app.project.store, last_predictions(app.project.journal)
    final = counts_as(store.classes())
    places = {item: i for i, item in enumerate(doubts)}
    rows = sorted(store.everything(), key=lambda row: (places.get(row.item, len(places)), -(row.time or 0.0)))
    guesses = {row.item: final[now[row.item]] if row.item in now else row.guess for row in rows}
    return [Opinion(row, guesses[row.item], row.item in now, doubts.get(row.item)) for row in rows]


def _doubts(app: State) -> dict[int, tuple[float, int]]:
    """The likely mistakes, found again only when labels have changed."""
    labels = app.project.store.labels()
    if app.doubts[0] != labels:
        app.doubts = (labels, likely_mistakes(app.project))
    found: dict[int, tuple[float, int]] = app.doubts[1]
    return found


def matches(opinion: Opinion, wanted: Wanted) -> bool:
    """Whether the item is one of those that are wanted."""
    row, guess = opinion.row, opinion.guess
    tests: dict[str, Callable[[], bool]] = {
        "all": lambda: True,
        "labelled": lambda: row.class_id is not None,
        "skipped": lambda: row.skipped,
        "open": lambda: not row.answered,
        "commented": lambda: bool(row.comments),
        "model": lambda: None not in (guess, row.class_id) and guess != row.class_id,
        "people": lambda: row.disputed,
        "settle": lambda: row.unsettled,
        "mistakes": lambda: opinion.doubt is not None,
        "gold": lambda: row.gold,
        "guessed": lambda: row.shown is not None,
        "flagged": lambda: row.flagged,
    }
    same = [
        (wanted.label, row.class_id),
        (wanted.guess, guess),
        (wanted.person, row.person),
        (wanted.task, row.task),
        (wanted.round, row.round),
    ]
    if any(given and given != str(value) for given, value in same) or (wanted.held and not opinion.held):
        return False
    return tests[wanted.show]()


@router.get("/review", response_class=HTMLResponse)
def show(request: Request, person: Limited, wanted: Annotated[Wanted, Query()]) -> str:
    """A grid of answers."""
    app = request.app.state
    doubts = _doubts(app) if wanted.show == "mistakes" else {}
    hidden = api.hidden(app, person)
    every = [opinion for opinion in opinions(app, doubts) if opinion.row.item not in hidden]
    found = [opinion for opinion in every if matches(opinion, wanted)]
    pages = max(1, -(-len(found) // SHEET))
    page = min(wanted.page, pages)
    classes, people = app.project.store.classes(), app.project.store.people()
    names, who = {c.id: c.name for c in classes}, {one.id: one.name for one in people}
    shown = [_cell(app, one, names, who, person) for one in found[(page - 1) * SHEET : page * SHEET]]
    tasks = app.project.tasks.all()
    return render(
        request,
        "review.html",
        person,
        here="review",
        wanted=wanted,
        choices=SHOW,
        classes=living(classes),
        people=people,
        tasks=range(len(tasks)),
        rounds=range(max((app.project.rounds(t) for t in range(len(tasks))), default=0)),
        cells=shown,
        undo=_undo(app, person, names),
        may_relabel=person.lead or any(cell["may_change"] for cell in shown),
        agreement=measure_quality(app.project.store).text,
        count=len(found),
        first=(page - 1) * SHEET + 1,
        last=(page - 1) * SHEET + len(shown),
        before=wanted.address(page - 1) if page > 1 else "",
        after=wanted.address(page + 1) if page < pages else "",
    )


def _undo(app: State, person: Person, names: dict[int, str]) -> dict[str, str] | None:
    """What the person can undo: the request, an id for that of undoing it, and what it means."""
    last = app.project.store.last_relabel(person)
    if last is None:
        return None
    text = f"You gave {counted(len(last.undone), 'example')} the label “{names[last.class_id]}”."
    if last.kept:
        text += f" {last.kept} more had none before, and would keep it, as their round is closed."
    return {"batch": last.request, "request": secrets.token_hex(16), "text": text}


def _cell(app: State, opinion: Opinion, names: dict[int, str], who: dict[int, str], person: Person) -> dict[str, Any]:
    row = opinion.row
    item = app.project.item(row.item)
    snip = item.text or ", ".join(f"{name} {value}" for name, value in item.fields)
    label = names[row.class_id] if row.class_id is not None else "skipped" if row.skipped else "no answer"
    disagrees = None not in (opinion.guess, row.class_id) and opinion.guess != row.class_id
    return {
        "item": row.item,
        "may_change": person.lead or row.person == person.id,
        "kind": item.kind,
        "snip": snip[:SNIP],
        "label": label,
        "who": who.get(row.person, "") if row.person is not None else "",
        "guess": names[opinion.guess] if disagrees and opinion.guess is not None else "",
        "comments": row.comments,
        "disputed": row.disputed,
        "shown": row.shown is not None,
        "gold": row.gold,
        "probably": names[opinion.doubt[1]] if opinion.doubt else "",
        "flagged": row.flagged,
    }


@router.post("/api/relabel")
def relabel(body: RelabelRequest, request: Request, person: Limited) -> dict[str, int]:
    """Give items another label; annotators only those that they have answered themselves."""
    store, own = request.app.state.project.store, not person.lead
    return {"changed": store.relabel(person, body.items, body.class_id, body.request, own)}


@router.post("/api/relabel/undo")
def undo_relabel(body: UndoRelabelRequest, request: Request, person: Limited) -> dict[str, int]:
    """Undo one's own last relabelling, unless somebody has changed one of the labels since."""
    return {"changed": request.app.state.project.store.undo_relabel(person, body.batch, body.request)}


@router.post("/api/unflag")
def unflag(body: ReviewItemsRequest, request: Request, person: Lead) -> dict[str, int]:
    """Remove the flags of items."""
    return {"changed": request.app.state.project.store.unflag(person, body.items)}


@router.post("/api/comment")
def comment(body: CommentRequest, request: Request, person: Limited) -> dict[str, Any]:
    """Write a comment to items."""
    request.app.state.project.store.comment(person, body.items, body.text, body.request)
    return {}


@router.post("/api/gold")
def mark_gold(body: GoldRequest, request: Request, person: Lead) -> dict[str, int]:
    """Make items gold, with the labels that they have, or ordinary again."""
    return {"changed": request.app.state.project.store.mark_gold(person, body.items, body.gold)}
