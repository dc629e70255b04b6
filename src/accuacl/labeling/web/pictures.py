"""Images for the browser: what is sent is known to be an image, of a kind browsers show and of a bearable size."""

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
    """The image as bytes and MIME type, at most `side` pixels wide and high; the bytes themselves where they will do.

    The type is that of the bytes, whatever the file is called. ValueError: they are no image that can be shown.
    """
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data)) as image:
            warnings.simplefilter("ignore")  # Pillow's own, smaller limit; ours comes next
            if image.width * image.height > LARGEST_IMAGE:
                raise InputError("too many pixels")
            small = side > THUMB or len(data) <= THUMB_BYTES  # a thumbnail that moves may have megabytes
            if image.format in SHOWN and max(image.size) <= side and small:
                image.load()  # a damaged image is found here, not in the browser
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
