"""Images of items, requested by the number of the item, never by path."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response

from accuacl.base.errors import InputError
from accuacl.labeling.web.pictures import FULL, SIDE, THUMB
from accuacl.labeling.web.session import Viewer

router = APIRouter(prefix="/item")
Number = Annotated[int, Path(ge=0, le=2**62)]


@router.get("/{item}/image")
async def image(item: Number, request: Request, person: Viewer) -> Response:
    """The image, scaled down if it is large."""
    return await _answer(request, item, SIDE)


@router.get("/{item}/full")
async def full(item: Number, request: Request, person: Viewer) -> Response:
    """The image to zoom into."""
    return await _answer(request, item, FULL)


@router.get("/{item}/thumb")
async def thumb(item: Number, request: Request, person: Viewer) -> Response:
    """A thumbnail of the image."""
    return await _answer(request, item, THUMB)


async def _answer(request: Request, item: int, side: int) -> Response:
    try:
        data, kind = await request.app.state.decoder.get(item, side)
    except InputError as error:  # no such item, not an image, missing, outside of the data, too large
        raise HTTPException(404, "There is no such image, or it cannot be shown.") from error
    # The image never changes, but who may see it does, so only the browser may cache it.
    headers = {"Cache-Control": "private, max-age=3600", "Content-Disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)
