"""Images of items, requested by the number of the item, never by path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request, Response

from accuacl.base.errors import InputError
from accuacl.labeling.web.session import Someone

router = APIRouter(prefix="/item")
Number = Annotated[int, Path(ge=0, le=2**62)]


@router.get("/{item}/image")
def image(item: Number, request: Request, person: Someone) -> Response:
    """The image, scaled down if it is very large."""
    return _answer(request.app.state.picture, item)


@router.get("/{item}/thumb")
def thumb(item: Number, request: Request, person: Someone) -> Response:
    """A thumbnail of the image."""
    return _answer(request.app.state.thumb, item)


def _answer(draw: Callable[[int], tuple[bytes, str]], item: int) -> Response:
    try:
        data, kind = draw(item)
    except InputError as error:  # no such item, not an image, missing, outside of the data, too large
        raise HTTPException(404, "There is no such image, or it cannot be shown.") from error
    # The image never changes, but who may see it does, so only the browser may cache it.
    headers = {"Cache-Control": "private, max-age=3600", "Content-Disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)
