"""Encoded images to pixels, in parallel and in order."""

from __future__ import annotations

import io
import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from accuacl.base.errors import InputError
from accuacl.data.source import Item, Pixels

CHUNK = 64  # images a thread is given at a time


class Decoded(NamedTuple):
    """An image's pixels, or why there are none."""

    place: str
    pixels: Pixels | None
    reason: str = ""


def decode(data: bytes | Pixels, size: int | None = None) -> Pixels:
    """RGB pixels (H, W, 3). With `size`, the shorter side is made that long and the centre square kept."""
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


def decode_all(images: Iterable[Item], size: int | None = None) -> Iterator[list[Decoded]]:
    """All of `images` in their order, some at a time; only so many are in memory as the threads need."""
    workers = min(os.cpu_count() or 1, 16)
    pool = ThreadPoolExecutor(workers)  # Pillow lets go of the interpreter lock while it decodes
    waiting: deque[Future[list[Decoded]]] = deque()
    rest = iter(images)
    try:
        while chunk := list(itertools.islice(rest, CHUNK)):
            waiting.append(pool.submit(_decode_chunk, chunk, size))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _decode_chunk(chunk: list[Item], size: int | None) -> list[Decoded]:
    return [_decode_item(item, size) for item in chunk]


def _decode_item(item: Item, size: int | None) -> Decoded:
    place, read = item
    try:
        return Decoded(place, decode(read(), size))
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        return Decoded(place, None, str(error) or type(error).__name__)
