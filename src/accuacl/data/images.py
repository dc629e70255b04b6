"""Encoded images to pixels, in parallel and in order."""

from __future__ import annotations

import functools
import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from accuacl.base.ahead import in_order
from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.base.machine import cores
from accuacl.data.source import Pixels, RawImage

CHUNK = 64  # images a thread is given at a time
SKIP = "replace it, or leave such images out with --skip-bad (in Python: skip_bad=True)"


class BadImage(InputError):
    """An image that cannot be read: where it is, why, and what to do."""

    def __init__(self, place: str, reason: str, remedy: str = "replace it") -> None:
        super().__init__(place, reason, remedy)
        self.place, self.reason, self.remedy = place, reason, remedy

    def __str__(self) -> str:
        return f"{self.place} is not a readable image ({self.reason}); {self.remedy}."


@contextmanager
def reading_image(place: str) -> Iterator[None]:
    """Whatever Pillow raises in this block about a broken image is a BadImage."""
    from PIL import UnidentifiedImageError  # only here: a start from the cache does without

    try:
        yield
    except BadImage:
        raise
    except UnidentifiedImageError:  # its message names an object in memory
        raise BadImage(place, "of no known format") from None
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        raise BadImage(place, reason(error)) from error


def decode(data: bytes | Pixels, size: int | None = None, place: str = "this") -> Pixels:
    """RGB pixels (H, W, 3). With `size`, the shorter side is made that long and the centre square kept.

    place: what a BadImage says that the image is.
    """
    with reading_image(place):
        return _decode(data, size)


def decode_all(
    images: Iterable[RawImage],
    size: int | None = None,
    shape: tuple[int, ...] | None = None,
    skip_bad: bool = False,
) -> Iterator[list[Pixels | None]]:
    """The pixels of all images in their order, some at a time; only so many are in memory as the threads need.

    shape: what all must have; else all have that of the first. skip_bad: None for an image that cannot be read, instead
    of a BadImage.
    """
    for chunk in _in_parallel(images, size):
        pixels: list[Pixels | None] = []
        for place, image in chunk:
            if isinstance(image, BadImage):
                if not skip_bad:
                    raise BadImage(image.place, image.reason, SKIP) from image
                pixels.append(None)
                continue
            shape = shape or image.shape
            if image.shape != shape:
                raise InputError(
                    f"{place} is {image.shape[1]} x {image.shape[0]} pixels where {shape[1]} x {shape[0]} were "
                    "expected; give --image-size (in Python: image_size) to bring all images to one size."
                )
            pixels.append(image)
        yield pixels


def _in_parallel(images: Iterable[RawImage], size: int | None) -> Iterator[list[tuple[str, Pixels | BadImage]]]:
    rest = iter(images)
    chunks = iter(lambda: list(itertools.islice(rest, CHUNK)), [])
    workers = min(cores(), 16)  # Pillow lets go of the interpreter lock while it decodes
    return in_order(functools.partial(_decode_chunk, size=size), chunks, workers)


def _decode_chunk(chunk: list[RawImage], size: int | None) -> list[tuple[str, Pixels | BadImage]]:
    return [(place, _read_and_decode(place, read, size)) for place, read in chunk]


def _read_and_decode(place: str, read: Callable[[], bytes | Pixels], size: int | None) -> Pixels | BadImage:
    try:
        with reading_image(place):  # a damaged archive makes its library raise nearly anything, too
            return decode(read(), size, place)
    except BadImage as bad:
        return bad


def _decode(data: bytes | Pixels, size: int | None) -> Pixels:
    from PIL import Image, ImageOps

    image: Image.Image
    if isinstance(data, np.ndarray):
        if size is None:
            return data
        image = Image.fromarray(data)
    else:
        image = Image.open(io.BytesIO(data))
        if size is not None:
            image.draft(None, (2 * size, 2 * size))  # a large JPEG need not be decoded in full
        image = ImageOps.exif_transpose(image)
    if image.mode[0] in "IF":
        raise InputError(f"its mode is {image.mode}; expected 8 bits a channel")
    if image.mode == "P":
        image = image.convert("RGBA")  # Pillow warns when a palette with transparency goes to RGB at once
    image = image.convert("RGB")
    if size is not None and image.size != (size, size):
        image = ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)
    return np.asarray(image)
