"""Images and files of items, requested by the number of the item, never by path."""

from __future__ import annotations

import contextlib
import io
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from pathlib import PurePosixPath

import anyio
import numpy as np
from fastapi import APIRouter, HTTPException, Response
from PIL import Image, ImageOps

from accuacl.base.errors import InputError
from accuacl.experiments.data import BadImage, reading_image
from accuacl.labeling.project import LARGEST_IMAGE
from accuacl.labeling.web.session import Viewer
from accuacl.labeling.web.site import Here, Number, Site

router = APIRouter(prefix="/item")


@router.get("/{item}/image")
async def image(item: Number, site: Here, person: Viewer) -> Response:
    """The image, scaled down if it is large."""
    return await _answer(site, item, SIDE)


@router.get("/{item}/full")
async def full(item: Number, site: Here, person: Viewer) -> Response:
    """The image to zoom into."""
    return await _answer(site, item, FULL)


@router.get("/{item}/thumb")
async def thumb(item: Number, site: Here, person: Viewer) -> Response:
    """A thumbnail of the image."""
    return await _answer(site, item, THUMB)


@router.get("/{item}/file")
def file(item: Number, site: Here, person: Viewer) -> Response:
    """The file, for the browser to play or show if it can, and else to download."""
    try:
        data, name = site.project.file_bytes(item), site.project.item(item).name
    except InputError as error:  # no such item, not a file, missing, outside of the data, too large
        raise HTTPException(404, "There is no such file, or it cannot be read.") from error
    kind = media_type(name)
    headers = {"Cache-Control": "private, max-age=3600"}
    headers["Content-Disposition"] = "inline" if kind != UNKNOWN else "attachment"
    return Response(data, media_type=kind, headers=headers)


UNKNOWN = "application/octet-stream"
MEDIA = {  # what browsers play or show; nothing that can hold a script
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".mp4": "video/mp4",
    ".webm": "video/webm",
    ".pdf": "application/pdf",
    ".txt": "text/plain; charset=utf-8",
    ".csv": "text/plain; charset=utf-8",
}


def media_type(name: str) -> str:
    """The type under which a file is sent.

    >>> media_type("a/B.WAV"), media_type("page.html")
    ('audio/wav', 'application/octet-stream')
    """
    return MEDIA.get(PurePosixPath(name).suffix.lower(), UNKNOWN)


async def _answer(site: Site, item: int, side: int) -> Response:
    try:
        data, kind = await site.decoder.get(item, side)
    except InputError as error:  # no such item, not an image, missing, outside of the data, too large
        raise HTTPException(404, "There is no such image, or it cannot be shown.") from error
    # The image never changes, but who may see it does, so only the browser may cache it.
    headers = {"Cache-Control": "private, max-age=3600", "Content-Disposition": "inline"}
    return Response(data, media_type=kind, headers=headers)


AT_ONCE = 2
LARGE = 24_000_000  # pixels: of larger images one is decoded at a time
KEPT = 96 * 2**20  # bytes

Made = tuple[bytes, str]


class Decoder:
    """`await decoder.get(item, side)` is the image as `picture` makes it; the last ones stay in memory.

    Requests that wait hold no thread, so that labels are saved however many images are asked for.
    """

    def __init__(
        self,
        read: Callable[[int], bytes],
        stamp: Callable[[int], Hashable] = lambda item: None,
        kept: int = KEPT,
        large: int = LARGE,
    ) -> None:
        """read: the bytes of an item's image file; stamp: something that changes with the file."""
        self._read, self._stamp, self._kept, self._large = read, stamp, kept, large
        self._made: OrderedDict[Hashable, Made] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()  # of the kept ones
        self._one_large = threading.Lock()
        self._threads: anyio.CapacityLimiter | None = None

    async def get(self, item: int, side: int) -> Made:
        """InputError: there is no such image, or it cannot be shown."""
        key = (item, side, self._stamp(item))
        kept = self._find(key)
        if kept is not None:
            return kept
        if self._threads is None:  # it belongs to the event loop that first uses it
            self._threads = anyio.CapacityLimiter(AT_ONCE)
        return await anyio.to_thread.run_sync(self._make, item, side, key, limiter=self._threads)

    def _make(self, item: int, side: int, key: Hashable) -> Made:
        kept = self._find(key)  # somebody else may have asked for it meanwhile
        if kept is not None:
            return kept
        data = self._read(item)
        if pixels(data) > self._large:
            with self._one_large:
                made = picture(data, side)
        else:
            made = picture(data, side)
        with self._turn:
            self._made[key] = made
            self._bytes += len(made[0])
            while self._bytes > self._kept and self._made:
                self._bytes -= len(self._made.popitem(last=False)[1][0])
        return made

    def _find(self, key: Hashable) -> Made | None:
        with self._turn:
            made = self._made.get(key)
            if made is not None:
                self._made.move_to_end(key)
            return made


SHOWN = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
SIDE = 1600  # pixels: larger images are made smaller
FULL = 4096  # when people zoom in
THUMB, THUMB_BYTES = 224, 100_000


def picture(data: bytes, side: int = SIDE) -> tuple[bytes, str]:
    """The image as bytes and MIME type, at most `side` pixels wide and high; unchanged where that is possible.

    The type is that of the bytes, whatever the file is called. BadImage: they are not an image that can be shown.
    """
    with _opened(data) as image:
        if image.width * image.height > LARGEST_IMAGE:
            raise BadImage("this", f"more than {LARGEST_IMAGE} pixels")
        small = side > THUMB or len(data) <= THUMB_BYTES  # an animated thumbnail may have megabytes
        if image.format in SHOWN and max(image.size) <= side and small and not deep(image):
            image.load()  # finds a damaged image here, not in the browser
            return data, SHOWN[image.format]
        return _encode(image, side)


def pixels(data: bytes) -> int:
    """How many pixels an image has, by its header; 0 if it is not an image."""
    try:
        with _opened(data) as image:
            return image.width * image.height
    except BadImage:
        return 0


def deep(image: Image.Image) -> bool:
    """Whether it has more than 8 bits per channel, which browsers show as nearly black if few of them are used."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


@contextlib.contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    """The image with only its header read; reading a damaged one in the block also raises BadImage."""
    with reading_image("this"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns at a limit of its own; ours is checked by `picture`
        with Image.open(io.BytesIO(data)) as image:
            yield image


def _encode(image: Image.Image, side: int) -> tuple[bytes, str]:
    photo = image.format == "JPEG"
    image.draft("RGB", (side, side))  # a large JPEG need not be decoded in full
    if deep(image):
        image = _stretched(image)
    ImageOps.exif_transpose(image, in_place=True)  # in place: a copy of a large image would take as much memory again
    image.thumbnail((side, side))
    small = image.convert("RGB" if photo else "RGBA")
    out = io.BytesIO()
    if photo:
        small.save(out, "JPEG", quality=88)
        return out.getvalue(), "image/jpeg"
    small.save(out, "PNG", compress_level=1)
    return out.getvalue(), "image/png"


def _stretched(image: Image.Image) -> Image.Image:
    """With 8 bits, from black for the darkest value to white for the brightest."""
    values = np.nan_to_num(np.asarray(image, dtype=np.float32))
    low, high = float(values.min()), float(values.max())
    return Image.fromarray(((values - low) * (255.0 / max(high - low, 1e-12))).astype(np.uint8))
