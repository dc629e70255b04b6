"""The page that finds every answer ever given and changes many at once."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from accuacl.base.errors import counted
from accuacl.labeling.project import last_predictions, likely_mistakes, measure_quality
from accuacl.labeling.store import Person, Pick, Reviewed, counts_as, living
from accuacl.labeling.web import api
from accuacl.labeling.web.api import RequestId
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead, Limited
from accuacl.labeling.web.site import Here, Number, Site, View

router = APIRouter()
SHEET = 60  # items on a page
SNIP = 200  # characters of a text or a comment that are shown
COMMENTS = 3  # of an item that are shown; its history has all
LARGE = 50  # comments of an item that are shown when it is enlarged
REASONS = 30  # reasons for skipping that can be chosen; the search finds all
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
SORT = {
    "new": "answered last",
    "old": "answered first",
    "unsure": "model least confident",
    "sure": "model most confident",
    "disagree": "most disagreement",
}
Many = Annotated[list[Number], Field(min_length=1, max_length=500)]


class RelabelRequest(BaseModel):
    items: Many
    class_id: Number
    request: RequestId


class UndoRelabelRequest(BaseModel):
    batch: RequestId  # the request that is undone
    request: RequestId


class ReviewItemsRequest(BaseModel):
    items: Many


class CommentRequest(BaseModel):
    items: Many
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    request: RequestId


class GoldRequest(BaseModel):
    items: Many
    gold: bool


class Wanted(BaseModel):
    """What to show: the fields of the form, as they are in the page's address; "" is any."""

    q: Annotated[str, Field(max_length=200)] = ""  # words that must all be in the text, the name or the comments
    sort: Literal["new", "old", "unsure", "sure", "disagree"] = "new"
    reason: Annotated[str, Field(max_length=1000)] = ""
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
        """The address of another page of the same results."""
        given = self.model_dump(exclude={"page"})
        fields = {name: value for name, value in given.items() if value not in ("", "all", "new")}
        return "/review?" + urlencode(fields | {"page": page})


@dataclass(frozen=True)
class Opinion:
    """An item with what the model takes it for: held-out ones after the last training, others when they were picked."""

    row: Reviewed
    guess: int | None
    held: bool
    doubt: tuple[float, int] | None = None  # how doubtful its label is, and the class that it probably is


@router.get("/review", response_class=HTMLResponse)
def show(request: Request, site: Here, person: Limited, wanted: Annotated[Wanted, Query()]) -> str:
    """A grid of answers, without those that the person is still to be asked about."""
    hidden = api.hidden(site, person)
    doubts = _doubts(site) if wanted.show == "mistakes" else {}
    every = [opinion for opinion in _opinions(site, doubts) if opinion.row.item not in hidden]
    matching = [opinion for opinion in every if matches(opinion, wanted)]
    if wanted.q:
        matching = [opinion for opinion in matching if contains(_words(site, opinion.row), wanted.q)]
    matching.sort(key=lambda opinion: place(opinion, wanted.sort))
    pages = max(1, -(-len(matching) // SHEET))
    page = min(wanted.page, pages)
    classes, people, tasks = site.store.classes(), site.store.people(), site.project.tasks.all()
    names, who = {c.id: c.name for c in classes}, {each.id: each.name for each in people}
    cells = [_cell(site, opinion, names, who, person) for opinion in matching[(page - 1) * SHEET : page * SHEET]]
    return render(
        request,
        "review.html",
        person,
        here="review",
        wanted=wanted,
        choices=SHOW,
        orders=SORT,
        reasons=_reasons(every, wanted.reason),
        classes=living(classes),
        people=people,
        tasks=range(len(tasks)),
        rounds=range(max((site.project.rounds(t) for t in range(len(tasks))), default=0)),
        cells=cells,
        undo=_undo(site, person, names),
        may_relabel=person.lead or any(cell["may_change"] for cell in cells),
        agreement=measure_quality(site.store).text,
        count=len(matching),
        first=(page - 1) * SHEET + 1,
        last=(page - 1) * SHEET + len(cells),
        before=wanted.address(page - 1) if page > 1 else "",
        after=wanted.address(page + 1) if page < pages else "",
    )


def _opinions(site: Site, doubts: dict[int, tuple[float, int]]) -> list[Opinion]:
    """All items that were ever offered: the most doubtful first, then those answered last, those without an answer at
    the end.
    """
    predictions, final = last_predictions(site.project.journal), counts_as(site.store.classes())
    order = {item: i for i, item in enumerate(doubts)}
    rows = sorted(site.store.everything(), key=lambda row: (order.get(row.item, len(order)), -(row.time or 0.0)))
    guesses = {row.item: final[predictions[row.item]] if row.item in predictions else row.guess for row in rows}
    return [Opinion(row, guesses[row.item], row.item in predictions, doubts.get(row.item)) for row in rows]


def _doubts(site: Site) -> dict[int, tuple[float, int]]:
    """The likely mistakes, found again only when labels have changed."""
    labels = site.store.labels()
    if site.doubts[0] != labels:
        site.doubts = (labels, likely_mistakes(site.project))
    return site.doubts[1]


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
    if wanted.reason and wanted.reason not in row.reasons:
        return False
    return tests[wanted.show]()


def place(opinion: Opinion, sort: str) -> tuple[float, ...]:
    """What items are sorted by, smallest first; of equal ones the most doubtful and those answered last come first."""
    row = opinion.row
    without = row.confidence is None
    differs = None not in (opinion.guess, row.class_id) and opinion.guess != row.class_id
    keys: dict[str, tuple[float, ...]] = {
        "new": (),
        "old": (row.time is None, row.time or 0.0),
        "unsure": (without, row.confidence or 0.0),
        "sure": (without, -(row.confidence or 0.0)),
        "disagree": (not row.unsettled, -row.disagreement, not differs, -(row.confidence or 0.0) if differs else 0.0),
    }
    return keys[sort]


def contains(texts: Iterable[str], typed: str) -> bool:
    """Whether every word that was typed is in one of the texts, in any case.

    >>> contains(["IMG_0042.jpg", "too dark"], "DARK img"), contains(["too dark"], "dark light")
    (True, False)
    """
    whole = "\n".join(texts).casefold()
    return all(word in whole for word in typed.casefold().split())


def _words(site: Site, row: Reviewed) -> Iterator[str]:
    """What the search looks at: the text of an item or its fields, its name, and what people have said of it."""
    item = site.project.item(row.item)
    yield from (item.name, item.text or "", *(f"{name} {value}" for name, value in item.fields))
    yield from (*row.comments, *row.reasons)


def _reasons(opinions: Iterable[Opinion], chosen: str) -> list[str]:
    """The most frequent reasons for skipping, and the one that is chosen."""
    counts = Counter(reason for opinion in opinions for reason in opinion.row.reasons)
    reasons = [reason for reason, _ in counts.most_common(REASONS)]
    return reasons if not chosen or chosen in reasons else [*reasons, chosen]


def _undo(site: Site, person: Person, names: dict[int, str]) -> dict[str, str] | None:
    """What the person can undo: the request, an id for that of undoing it, and what it means."""
    last = site.store.last_relabel(person)
    if last is None:
        return None
    text = f"You gave {counted(len(last.undone), 'example')} the label “{names[last.class_id]}”."
    if last.kept:
        text += f" {last.kept} more had none before, and would keep it, as their round is closed."
    return {"batch": last.request, "request": secrets.token_hex(16), "text": text}


def _cell(site: Site, opinion: Opinion, names: dict[int, str], who: dict[int, str], person: Person) -> View:
    row = opinion.row
    item = site.project.item(row.item)
    snip = item.text or ", ".join(f"{name} {value}" for name, value in item.fields)
    label = names[row.class_id] if row.class_id is not None else "skipped" if row.skipped else "no answer"
    disagrees = None not in (opinion.guess, row.class_id) and opinion.guess != row.class_id
    return {
        "item": row.item,
        "may_change": person.lead or row.person == person.id,
        "kind": item.kind,
        "snip": snip[:SNIP],
        "label": label,
        "class_id": row.class_id,
        "name": item.name,
        "confidence": None if row.confidence is None else round(100 * row.confidence),
        "reasons": row.reasons,
        "who": who.get(row.person, "") if row.person is not None else "",
        "guess": names[opinion.guess] if disagrees and opinion.guess is not None else "",
        "guess_id": opinion.guess,
        "comments": [shorten(text) for text in row.comments[-COMMENTS:]],
        "more_comments": max(0, len(row.comments) - COMMENTS),
        "disputed": row.disputed,
        "shown": row.shown is not None,
        "gold": row.gold,
        "probably": names[opinion.doubt[1]] if opinion.doubt else "",
        "flagged": row.flagged,
    }


def shorten(text: str, most: int = SNIP) -> str:
    """A text of at most this many characters."""
    return text if len(text) <= most else f"{text[:most]} …"


@router.get("/api/review/{item}")
def enlarged(item: Number, site: Here, person: Limited) -> View:
    """One example as Review shows it when it is enlarged: all of it, with its answer and what people have said."""
    row = next((row for row in site.store.everything() if row.item == item), None)
    if row is None or item in api.hidden(site, person):
        raise HTTPException(404, "There is no such example.")
    names = {c.id: c.name for c in site.store.classes()}
    who = {each.id: each.name for each in site.store.people()}
    return {
        **api.example(site, Pick(item, 0)),
        "name": site.project.item(item).name,
        "class_id": row.class_id,
        "label": names[row.class_id] if row.class_id is not None else "skipped" if row.skipped else "no answer",
        "person": None if row.person is None else who.get(row.person),
        "time": row.time,
        "guess": None if row.guess is None else names[row.guess],
        "confidence": row.confidence,
        "comments": [*row.reasons, *row.comments][-LARGE:],
    }


@router.post("/api/relabel")
def relabel(body: RelabelRequest, site: Here, person: Limited) -> View:
    """Give items another label. Annotators may change only what they have answered themselves."""
    changed = site.store.relabel(person, body.items, body.class_id, body.request, own=not person.lead)
    return {"changed": changed}


@router.post("/api/relabel/undo")
def undo_relabel(body: UndoRelabelRequest, site: Here, person: Limited) -> View:
    """Undo one's own last relabelling, unless somebody has changed one of the labels since."""
    return {"changed": site.store.undo_relabel(person, body.batch, body.request)}


@router.post("/api/unflag")
def unflag(body: ReviewItemsRequest, site: Here, person: Lead) -> View:
    """Remove the flags of items."""
    return {"changed": site.store.unflag(person, body.items)}


@router.post("/api/comment")
def comment(body: CommentRequest, site: Here, person: Limited) -> View:
    """Comment on items; the bytes of the text count for each of them."""
    site.comment_bytes.take(person.id, len(body.text.encode()) * len(body.items))
    site.store.comment(person, body.items, body.text, body.request)
    return {}


@router.post("/api/gold")
def mark_gold(body: GoldRequest, site: Here, person: Lead) -> View:
    """Make items gold, with the labels that they have, or ordinary again."""
    return {"changed": site.store.mark_gold(person, body.items, body.gold)}
