"""Answers that people have given: Review finds all and changes many at once; Settle shows disputes one by one."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from accuacl.base.errors import counted
from accuacl.labeling.project import last_predictions, likely_mistakes, measure_quality
from accuacl.labeling.store import Class, Dispute, Person, Pick, Reviewed, counts_as, living
from accuacl.labeling.web import api
from accuacl.labeling.web.api import LabelRequest, ManyRequest, RequestId
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Lead, Limited
from accuacl.labeling.web.site import Here, Number, Site, View

router = APIRouter()
SHEET = 60  # items on a page
SNIP = 200  # characters of a comment that are shown
COMMENTS = 3  # of an item that are shown; its history has all
LARGE = 50  # comments of an item that are shown when it is enlarged
REASONS = 30  # reasons for skipping that can be chosen; the search finds all
DISPUTES = 20  # that Settle loads at a time; it loads more before it has shown all of them
SAID = 5  # comments of a disputed item that are shown, and how many characters of each
SAID_LENGTH = 300


@dataclass(frozen=True)
class Opinion:
    """An item and the model's guess: of the last training for held-out items, for others the one from when they were
    picked."""

    row: Reviewed
    guess: int | None
    held: bool
    doubt: tuple[float, int] | None = None  # how doubtful its label is, and the class that it probably is

    @property
    def differs(self) -> bool:
        """Whether the model's guess differs from the people's label."""
        return None not in (self.guess, self.row.class_id) and self.guess != self.row.class_id

    @property
    def confidence(self) -> float:
        """The model's, when the item was picked; 0 if it had none."""
        return self.row.confidence or 0.0


SHOW: dict[str, tuple[str, Callable[[Opinion], bool]]] = {  # which items: what the form says, and the test
    "all": ("everything", lambda opinion: True),
    "labelled": ("labelled", lambda opinion: opinion.row.class_id is not None),
    "skipped": ("skipped", lambda opinion: opinion.row.skipped),
    "open": ("without an answer", lambda opinion: not opinion.row.answered),
    "commented": ("commented", lambda opinion: bool(opinion.row.comments)),
    "model": ("the model disagrees", lambda opinion: opinion.differs),
    "people": ("people disagree", lambda opinion: opinion.row.disputed),
    "settle": ("people disagree, to settle", lambda opinion: opinion.row.unsettled),
    "mistakes": ("likely mistakes", lambda opinion: opinion.doubt is not None),
    "gold": ("gold", lambda opinion: opinion.row.gold),
    "guessed": ("the guess was shown", lambda opinion: opinion.row.shown is not None),
    "flagged": ("flagged", lambda opinion: opinion.row.flagged),
}
# What items are sorted by, smallest first; of equal ones the most doubtful and those answered last come first.
SORT: dict[str, tuple[str, Callable[[Opinion], tuple[float, ...]]]] = {
    "new": ("answered last", lambda opinion: ()),
    "old": ("answered first", lambda opinion: (opinion.row.time is None, opinion.row.time or 0.0)),
    "unsure": ("model least confident", lambda opinion: (opinion.row.confidence is None, opinion.confidence)),
    "sure": ("model most confident", lambda opinion: (opinion.row.confidence is None, -opinion.confidence)),
    "disagree": (
        "most disagreement",
        lambda opinion: (
            not opinion.row.unsettled,
            -opinion.row.disagreement,
            not opinion.differs,
            -opinion.confidence if opinion.differs else 0.0,
        ),
    ),
}


class RelabelRequest(ManyRequest):
    class_id: Number
    request: RequestId


class UndoRelabelRequest(BaseModel):
    batch: RequestId  # the request that is undone
    request: RequestId


class CommentRequest(ManyRequest):
    text: Annotated[str, Field(min_length=1, max_length=2000)]
    request: RequestId


class GoldRequest(ManyRequest):
    gold: bool


def _one_of(names: Iterable[str]) -> Any:
    return Field(pattern=f"^({'|'.join(names)})$")


class Wanted(BaseModel):
    """What to show: the fields of the form, as they are in the page's address; "" is any."""

    q: Annotated[str, Field(max_length=200)] = ""  # words that must all be in the text, the name or the comments
    sort: Annotated[str, _one_of(SORT)] = "new"
    reason: Annotated[str, Field(max_length=1000)] = ""
    label: str = ""
    guess: str = ""
    person: str = ""
    task: str = ""
    round: str = ""
    show: Annotated[str, _one_of(SHOW)] = "all"
    held: Literal["", "1"] = ""
    page: Annotated[int, Field(ge=1, le=10**6)] = 1

    def address(self, page: int) -> str:
        """The address of another page of the same results."""
        return "/review?" + urlencode(self.model_dump(exclude={"page"}, exclude_defaults=True) | {"page": page})


@router.get("/review", response_class=HTMLResponse)
def show(request: Request, site: Here, person: Limited, wanted: Annotated[Wanted, Query()]) -> str:
    """A grid of answers, without those that the person is still to be asked about."""
    hidden = api.hidden(site, person)
    doubts = _doubts(site) if wanted.show == "mistakes" else {}
    every = [opinion for opinion in _opinions(site, doubts) if opinion.row.item not in hidden]
    matching = [opinion for opinion in every if matches(opinion, wanted)]
    if wanted.q:
        matching = [opinion for opinion in matching if contains(_words(site, opinion.row), wanted.q)]
    matching.sort(key=SORT[wanted.sort][1])
    pages = max(1, -(-len(matching) // SHEET))
    page = min(wanted.page, pages)
    first = (page - 1) * SHEET
    names = site.class_names()
    cells = [_cell(site, opinion, names, person) for opinion in matching[first : first + SHEET]]
    return render(
        request,
        "review.html",
        person,
        here="review",
        wanted=wanted,
        choices=SHOW,
        orders=SORT,
        filters=_filters(site, every, wanted.reason),
        names=names,
        classes=living(site.store.classes()),
        people=site.people_names(),
        cells=cells,
        undo=_undo(site, person, names),
        may_relabel=person.lead or any(cell["may_change"] for cell in cells),
        agreement=measure_quality(site.store).text,
        count=len(matching),
        first=first + 1,
        last=first + len(cells),
        before=wanted.address(page - 1) if page > 1 else "",
        after=wanted.address(page + 1) if page < pages else "",
    )


def _filters(site: Site, opinions: Iterable[Opinion], reason: str) -> list[tuple[str, str, list[tuple[Any, Any]]]]:
    """The fields of the form beside the usual ones: name, title, and its options as values and texts."""
    classes = [(c.id, c.name) for c in living(site.store.classes())]
    tasks = range(len(site.project.tasks.all()))
    rounds = range(max((site.project.rounds(task) for task in tasks), default=0))
    counts = Counter(given for opinion in opinions for given in opinion.row.reasons)
    reasons = dict.fromkeys([*(given for given, _ in counts.most_common(REASONS)), *([reason] if reason else [])])
    fields: list[tuple[str, str, list[tuple[Any, Any]]]] = [
        ("label", "Label", classes),
        ("guess", "Model's guess", classes),
        ("person", "Person", list(site.people_names().items())),
        ("task", "Task", [(task, task + 1) for task in tasks]),
        ("round", "Round", [(round, round + 1) for round in rounds]),
        ("held", "Held out", [("1", "yes")]),
    ]
    if reasons:
        fields.append(("reason", "Skipped because", [(given, given[:60]) for given in reasons]))
    return fields


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
    """The likely mistakes."""
    return site.kept("doubts", site.store.labels(), lambda: likely_mistakes(site.project))


def matches(opinion: Opinion, wanted: Wanted) -> bool:
    """Whether the item is one of those that are wanted."""
    row = opinion.row
    same = [
        (wanted.label, row.class_id),
        (wanted.guess, opinion.guess),
        (wanted.person, row.person),
        (wanted.task, row.task),
        (wanted.round, row.round),
    ]
    return (
        all(not given or given == str(value) for given, value in same)
        and (not wanted.held or opinion.held)
        and (not wanted.reason or wanted.reason in row.reasons)
        and SHOW[wanted.show][1](opinion)
    )


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


def _undo(site: Site, person: Person, names: dict[int, str]) -> dict[str, str] | None:
    """What the person can undo: the request, a new id for the request to undo it, and what undoing means."""
    last = site.store.last_relabel(person)
    if last is None:
        return None
    text = f"You gave {counted(len(last.undone), 'example')} the label “{names[last.class_id]}”."
    if last.kept:
        text += f" {last.kept} more had none before, and would keep it, as their round is closed."
    return {"batch": last.request, "request": secrets.token_hex(16), "text": text}


def _cell(site: Site, opinion: Opinion, names: dict[int, str], person: Person) -> View:
    row = opinion.row
    return {
        "row": row,
        "item": site.project.item(row.item),
        "label": _label(row, names),
        "may_change": person.lead or row.person == person.id,
        "guess": opinion.guess if opinion.differs else None,
        "probably": names[opinion.doubt[1]] if opinion.doubt else "",
        "comments": [shorten(text, SNIP) for text in row.comments[-COMMENTS:]],
    }


def _label(row: Reviewed, names: dict[int, str]) -> str:
    return names[row.class_id] if row.class_id is not None else "skipped" if row.skipped else "no answer"


def shorten(text: str, most: int) -> str:
    """A text of at most this many characters."""
    return text if len(text) <= most else f"{text[:most]} …"


@router.get("/api/review/{item}")
def enlarged(item: Number, site: Here, person: Limited) -> View:
    """One example as Review shows it when it is enlarged: all of it, with its answer and what people have said."""
    row = next((row for row in site.store.everything() if row.item == item), None)
    if row is None or item in api.hidden(site, person):
        raise HTTPException(404, "There is no such example.")
    names = site.class_names()
    return {
        **api.example(site, Pick(item, 0)),
        "name": site.project.item(item).name,
        "class_id": row.class_id,
        "label": _label(row, names),
        "person": None if row.person is None else site.people_names().get(row.person),
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
    """Undo the person's last relabelling, unless somebody has changed one of the labels since."""
    return {"changed": site.store.undo_relabel(person, body.batch, body.request)}


@router.post("/api/unflag")
def unflag(body: ManyRequest, site: Here, person: Lead) -> View:
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


# Settle


@router.get("/settle", response_class=HTMLResponse)
def settle_page(request: Request, person: Lead) -> str:
    """The page; its script asks for the disputes."""
    return render(request, "settle.html", person, here="settle")


@router.get("/api/disputes")
def disputes(site: Here, person: Lead, first: Annotated[int | None, Query(ge=0, le=2**62)] = None) -> View:
    """How many examples people disagree about, and the first of them with everybody's answers.

    first: an example to begin with, if it is one of them.
    """
    return _disputes(site, first)


@router.post("/api/settle")
def settle(body: LabelRequest, site: Here, person: Lead) -> View:
    """Decide what an example is that people disagree about; it is synced to the disk before this answers.

    Returns what is left to settle. /api/relabel/undo undoes the decision.
    """
    site.store.decide(person, body.item, body.class_id, body.request)
    return _disputes(site)


def _disputes(site: Site, first: int | None = None) -> View:
    classes = site.store.classes()
    return {
        "count": len(site.store.unsettled()),
        "classes": [{"id": c.id, "name": c.name} for c in living(classes)],
        "disputes": [_dispute(site, each, classes) for each in site.store.disputes(DISPUTES, first)],
    }


def _dispute(site: Site, dispute: Dispute, classes: Sequence[Class]) -> View:
    names, people = {c.id: c.name for c in classes}, site.people_names()
    pick = api.guessed(site, dispute.pick)
    guess = None if pick.guess is None else counts_as(classes)[pick.guess]
    return {
        **api.example(site, pick),
        "name": site.project.item(pick.item).name,
        "guess": None if guess is None else {"id": guess, "name": names[guess], "confidence": pick.confidence},
        "gold": None if dispute.gold is None else names[dispute.gold],
        "comments": [shorten(text, SAID_LENGTH) for text in dispute.comments[-SAID:]],
        "answers": [
            {
                "kind": answer.kind,
                "person": "somebody" if answer.person is None else people[answer.person],
                "id": answer.class_id,
                "name": None if answer.class_id is None else names[answer.class_id],
                "time": answer.time,
                "seconds": answer.seconds,
                "shown": None if answer.shown is None else names[answer.shown],
            }
            for answer in dispute.answers
        ],
    }
