"""Images for the browser: only real images, in a format that browsers show, and not too large."""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps

from accuacl.base.errors import InputError
from accuacl.labeling.project import LARGEST_IMAGE

SHOWN = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp", "GIF": "image/gif"}
SIDE = 2048  # pixels: larger images are made smaller
THUMB, THUMB_BYTES = 224, 100_000


def picture(data: bytes, side: int = SIDE) -> tuple[bytes, str]:
    """The image as bytes and MIME type, at most `side` pixels wide and high; unchanged where that is possible.

    The type is that of the bytes, whatever the file is called. InputError: they are not an image that can be shown.
    """
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as image:
            warnings.simplefilter("ignore")  # Pillow warns at a limit of its own; ours is checked next
            if image.width * image.height > LARGEST_IMAGE:
                raise InputError(f"more than {LARGEST_IMAGE} pixels")
            small = side > THUMB or len(data) <= THUMB_BYTES  # an animated thumbnail may have megabytes
            if image.format in SHOWN and max(image.size) <= side and small:
                image.load()  # finds a damaged image here, not in the browser
                return data, SHOWN[image.format]
            return _encode(image, side)
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        raise InputError(f"not an image that can be shown ({str(error) or type(error).__name__})") from error


def _encode(image: Image.Image, side: int) -> tuple[bytes, str]:
    photo = image.format == "JPEG"
    image.draft("RGB", (side, side))  # a large JPEG need not be decoded in full
    small = ImageOps.exif_transpose(image)
    small.thumbnail((side, side))
    small = small.convert("RGB" if photo else "RGBA")
    out = io.BytesIO()
    if photo:
        small.save(out, "JPEG", quality=88)
        return out.getvalue(), "image/jpeg"
    small.save(out, "PNG")
    return out.getvalue(), "image/png"
