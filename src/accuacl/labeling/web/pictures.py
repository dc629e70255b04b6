"""Images for the browser: only real images, in a format that browsers show, and not too large."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps

from accuacl.data import BadImage, reading_image
from accuacl.labeling.project import LARGEST_IMAGE

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
    """Whether it has more than 8 bits a channel, which browsers show as nearly black if few of them are used."""
    return image.mode in ("I", "F") or image.mode.startswith("I;16")


@contextlib.contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    """The image, of which only the header has been read; a damaged one is a BadImage in the block, too."""
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
