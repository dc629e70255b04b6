"""The map of the pool for the dashboard's script: where items lie, what state each is in, and what one looks like."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request

from accuacl.base.errors import InputError
from accuacl.labeling.store import Reviewed
from accuacl.labeling.web import views
from accuacl.labeling.web.session import Limited

router = APIRouter(prefix="/api")
Number = Annotated[int, Path(ge=0, le=2**62)]
SNIP = 200  # characters of a text that are shown
UNLABELLED, PICKED, LABELLED, SKIPPED = range(4)


@router.get("/map")
def pool_map(request: Request, person: Limited) -> dict[str, Any]:
    """[item, x, y, state, class] of each item shown, x and y from 0 to 1000; class -1: none."""
    app = request.app.state
    hidden = views.hidden(app, person)
    rows = {row.item: row for row in app.project.store.everything() if not row.answered or row.item not in hidden}
    latest = sorted(rows.values(), key=lambda row: (row.answered, -(row.time or 0.0)))
    items, places, total = app.pool_map.shown([row.item for row in latest])
    points = [
        [item, round(1000 * x), round(1000 * y), *_state(rows.get(item))]
        for item, (x, y) in zip(items.tolist(), places.tolist(), strict=True)
    ]
    names = {c.id: c.name for c in app.project.store.classes()}
    return {"points": points, "total": total, "classes": names, "images": app.project.settings.kind == "images"}


@router.get("/item/{item}")
def item(item: Number, request: Request, person: Limited) -> dict[str, Any]:
    """What is shown of an item."""
    try:
        shown = request.app.state.project.item(item)
    except InputError as error:
        raise HTTPException(404, "There is no such item.") from error
    text = shown.text or ", ".join(f"{name} {value}" for name, value in shown.fields)
    return {"item": item, "kind": shown.kind, "snip": text[:SNIP]}


@router.get("/changes")
def changes(request: Request, person: Limited) -> dict[str, Any]:
    """A text that is another one when the dashboard would be."""
    return {"stamp": views.stamp(request.app.state)}


def _state(row: Reviewed | None) -> tuple[int, int]:
    if row is None:
        return UNLABELLED, -1
    if not row.answered:
        return PICKED, -1
    return (SKIPPED, -1) if row.class_id is None else (LABELLED, row.class_id)
