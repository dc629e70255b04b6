"""Images of items, by the item's number and in no other way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response

from accuacl.labeling.web.session import Someone

router = APIRouter(prefix="/item")
Number = Annotated[int, Path(ge=0, le=2**62)]


@router.get("/{item}/image")
def image(item: Number, request: Request, person: Someone) -> Response:
    """As large as it is, within reason."""
    return _answer(request.app.state.picture, item)


@router.get("/{item}/thumb")
def thumb(item: Number, request: Request, person: Someone) -> Response:
    """Small."""
    return _answer(request.app.state.thumb, item)


def _answer(draw: Callable[[int], tuple[bytes, str]], item: int) -> Response:
    try:
        data, kind = draw(item)
    except (ValueError, OSError) as error:  # no such item, no image, vanished, outside of the data, too large
        raise HTTPException(404, "There is no such image, or it cannot be shown.") from error
    # An item's image never changes, but who may see it does: a shared cache must not keep it.
    headers = {"Cache-Control": "private, max-age=3600", "Content-Disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)
