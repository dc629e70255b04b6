"""Images of items, by the item's number and in no other way."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response

from accuacl.labeling.web.pictures import SIDE, THUMB, picture
from accuacl.labeling.web.session import Someone

router = APIRouter(prefix="/item")
Number = Annotated[int, Path(ge=0, le=2**62)]


@router.get("/{item}/image")
def image(item: Number, request: Request, person: Someone) -> Response:
    """As large as it is, within reason."""
    return _answer(request, item, SIDE)


@router.get("/{item}/thumb")
def thumb(item: Number, request: Request, person: Someone) -> Response:
    """Small."""
    return _answer(request, item, THUMB)


def _answer(request: Request, item: int, side: int) -> Response:
    try:
        data, kind = picture(request.app.state.project.image_bytes(item)[0], side)
    except (ValueError, OSError) as error:  # no such item, no image, vanished, outside of the data, too large
        raise HTTPException(404, "There is no such image, or it cannot be shown.") from error
    # An item's image never changes, but who may see it does: a shared cache must not keep it.
    headers = {"Cache-Control": "private, max-age=3600", "Content-Disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)
