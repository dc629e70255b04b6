"""The gallery: a person's batch grouped by the model's guess. They strike out the wrong ones and confirm the rest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from accuacl.labeling.store import Expected, Person, Pick, counts_as, living
from accuacl.labeling.web import api
from accuacl.labeling.web.pages import render
from accuacl.labeling.web.session import Limited
from accuacl.labeling.web.site import Here, Number, Site, View, capital

router = APIRouter()
BATCH = 60  # items that one person has at a time
MOST = 100  # labels in a request
ABOVE_CHANCE = 0.1  # how much of the way from chance to certainty the model's confidence must have gone
BatchId = Annotated[str, Field(min_length=8, max_length=90, pattern=r"^[\w.-]+$")]  # each label adds its number


class Confirmed(BaseModel):
    item: Number
    class_id: Number


class ConfirmRequest(BaseModel):
    labels: Annotated[list[Confirmed], Field(min_length=1, max_length=MOST)]
    request: BatchId


class UndoBatchRequest(BaseModel):
    batch: BatchId
    request: BatchId


class ItemsRequest(BaseModel):
    items: Annotated[list[Number], Field(min_length=1, max_length=MOST)]


@router.get("/gallery", response_class=HTMLResponse)
def page(request: Request, person: Limited) -> str:
    """The page; its script asks for the batch."""
    return render(request, "gallery.html", person, here="gallery")


@router.post("/api/gallery")
def batch(site: Here, person: Limited) -> View:
    """The person's batch, leased to them, grouped by the model's guess."""
    return _view(site, person)


@router.post("/api/gallery/label")
def confirm(body: ConfirmRequest, site: Here, person: Limited) -> View:
    """Save all labels in one transaction, synced to the disk before this answers; each counts against the limit."""
    site.requests.take(person.id, len(body.labels) - 1)
    labels = {label.item: label.class_id for label in body.labels}
    done = site.store.label_batch(person, labels, body.request)
    refused = [capital(text) for text in done.refused.values()]
    return {"saved": done.saved, "refused": refused, **api.round_state(site, person)}


@router.post("/api/gallery/undo")
def undo(body: UndoBatchRequest, site: Here, person: Limited) -> View:
    """Undo the labels of a request, as far as they still stand."""
    undone = site.store.undo_batch(person, body.batch, body.request)
    return {"undone": undone, **_view(site, person)}


@router.post("/api/gallery/seen")
def seen(body: ItemsRequest, site: Here, person: Limited) -> View:
    """Record that items have been on the screen, with the model's guesses."""
    site.store.show_guesses(person, body.items)
    return {}


@router.post("/api/gallery/renew")
def renew(body: ItemsRequest, site: Here, person: Limited) -> View:
    """Extend the leases. Returns the items that others hold now. The first item is the one being worked on."""
    return {"lost": site.store.renew_batch(person, body.items)}


@router.post("/api/gallery/release")
def release(body: ItemsRequest, site: Here, person: Limited) -> View:
    """Release items, so that others can have them."""
    site.store.release_batch(person, body.items)
    return {}


def least_confidence(classes: int) -> float:
    """The confidence from which on a guess is worth confirming: that of a model which guesses at random is 1 in so many
    classes.

    >>> [round(least_confidence(classes), 3) for classes in (1, 2, 4, 62)]
    [0.55, 0.55, 0.325, 0.115]
    """
    chance = 1 / max(2, classes)
    return chance + ABOVE_CHANCE * (1 - chance)


def _view(site: Site, person: Person) -> View:
    """The state of the round, and the batch in groups; items that other people's pages expect come last.

    guesses: whether there are any in this round that are worth confirming.
    """
    least = least_confidence(len(living(site.store.classes())))
    expected = Expected((), site.expected_by_others(person.id))
    picks = site.store.lease_batch(person, BATCH, expected, least=least)
    view = api.round_state(site, person)
    if not picks and view["state"]["phase"] == "waiting":
        site.trainer.poke()
    return {**view, "guesses": bool(picks) or _has_guesses(site, least), "groups": _groups(site, picks)}


def _has_guesses(site: Site, least: float) -> bool:
    """Whether the model has such guesses for the round: before its first training it has none."""
    status = site.store.status()
    if status is None:
        return False
    picks = site.store.picks(status.task, status.round)
    return any(pick.guess is not None and (pick.confidence is None or pick.confidence >= least) for pick in picks)


def _groups(site: Site, picks: list[Pick]) -> list[View]:
    """By class; in each, what the model is surest of comes first."""
    classes = site.store.classes()
    names, final = {c.id: c.name for c in classes}, counts_as(classes)
    groups: dict[int, list[Pick]] = {}
    for pick in picks:
        assert pick.guess is not None
        groups.setdefault(final[pick.guess], []).append(pick)
    return [
        {
            "class_id": id,
            "name": names[id],
            "items": [_cell(site, pick) for pick in sorted(groups[id], key=lambda pick: -(pick.confidence or 0.0))],
        }
        for id in sorted(groups)
    ]


def _cell(site: Site, pick: Pick) -> View:
    cell = api.example(site, pick) | {"confidence": pick.confidence}
    return cell | {"image": f"{site.root}/item/{pick.item}/thumb"} if cell["kind"] == "image" else cell
