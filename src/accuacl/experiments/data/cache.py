"""Decoding images, in parallel, and the cache of decoded images: one memory-mapped array for each split.

A data set has a folder in the cache. `index.json` says which array files belong to it and what they were made from; it
is put in place last, so it only ever names whole files. Array files carry the hash of their pixels in their names, so
two processes that build the same cache at once write the same names with the same bytes.
"""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
import math
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pydantic

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite, making, reason, replacing, write_text
from accuacl.base.machine import cores
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments.data.dataset import Dataset, Pixels, RawDataset, RawImage, RawSplit, Split

VERSION = 1
INDEX = "index.json"
SPOTS, SPOT_BYTES = 64, 4096  # blocks of a file that its checksum is made of
ABANDONED = 3600  # seconds without a change after which a half-written file has no writer any more
CHUNK = 64  # images per thread at a time
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
    """Turn whatever Pillow raises about a broken image in this block into a BadImage."""
    from PIL import UnidentifiedImageError  # only here: a start from the cache does without

    try:
        yield
    except BadImage:
        raise
    except UnidentifiedImageError:  # its message names an object in memory
        raise BadImage(place, "unknown format") from None
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        raise BadImage(place, reason(error)) from error


def decode(data: bytes | Pixels, size: int | None = None, place: str = "this") -> Pixels:
    """RGB pixels (H, W, 3). With `size`, the shorter side is made that long and the centre square kept.

    place: what to call the image in a BadImage.
    """
    from PIL import Image, ImageOps

    with reading_image(place):
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
        if image.mode.startswith("I;16"):  # grey of 16 bits; of colours of 16 bits Pillow keeps the upper half too
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        if image.mode[0] in "IF":
            raise InputError(f"its mode is {image.mode}; expected 8 or 16 bits per channel")
        if image.mode == "P":
            image = image.convert("RGBA")  # Pillow warns when a palette with transparency goes to RGB at once
        image = image.convert("RGB")
        if size is not None and image.size != (size, size):
            image = ImageOps.fit(image, (size, size), Image.Resampling.BICUBIC)
        return np.asarray(image)


def decode_all(
    images: Iterable[RawImage],
    size: int | None = None,
    shape: tuple[int, ...] | None = None,
    skip_bad: bool = False,
) -> Iterator[list[Pixels | None]]:
    """The pixels of all images, in order and in chunks; at most as many are in memory as the threads need.

    shape: that of every image; None: that of the first one. skip_bad: give None for an image that cannot be read,
    instead of raising BadImage.
    """
    rest = iter(images)
    chunks = iter(lambda: list(itertools.islice(rest, CHUNK)), [])
    workers = min(cores(), 16)  # Pillow lets go of the interpreter lock while it decodes
    for chunk in ordered_thread_map(functools.partial(_decode_chunk, size, skip_bad), chunks, workers):
        for place, pixels in chunk:
            if pixels is None:
                continue
            shape = shape or pixels.shape
            if pixels.shape != shape:
                raise InputError(
                    f"{place} is {pixels.shape[1]} x {pixels.shape[0]} pixels where {shape[1]} x {shape[0]} were "
                    "expected; give --image-size (in Python: image_size) to bring all images to one size."
                )
        yield [pixels for _, pixels in chunk]


def _decode_chunk(size: int | None, skip_bad: bool, chunk: list[RawImage]) -> list[tuple[str, Pixels | None]]:
    decoded: list[tuple[str, Pixels | None]] = []
    for place, read in chunk:
        try:
            with reading_image(place):  # a damaged archive makes its library raise nearly anything, too
                decoded.append((place, decode(read(), size, place)))
        except BadImage as bad:
            if not skip_bad:
                raise BadImage(bad.place, bad.reason, SKIP) from bad
            decoded.append((place, None))
    return decoded


@dataclass(frozen=True)
class DecodeOptions:
    """How images are decoded. size: the side that they are resized to; side: the one that they must have already."""

    size: int | None = None
    side: int | None = None
    skip_bad: bool = False
    progress: OnProgress | None = None


def read_cache(name: str, home: Path, fingerprint: str) -> tuple[Dataset, int] | None:
    """The cached data set, and how many bad images were left out; None unless made from these very files, and whole."""
    index = _read_index(home)
    if index is None or index.version != VERSION or index.fingerprint != fingerprint:
        return None
    train, test = (_read_split(home, entry) for entry in (index.train, index.test))
    return (Dataset(name, train, test, index.classes), index.skipped) if train and test else None


def build_cache(
    name: str, home: Path, raw: RawDataset, fingerprint: str, options: DecodeOptions
) -> tuple[Dataset, int]:
    """Decode all images into `home`; what `read_cache` then gives."""
    old = _read_index(home)
    shape = (options.side, options.side, 3) if options.side else None
    with _written(home):
        train = _write_split(home, "train", raw.train, shape, options)
        test = _write_split(home, "test", raw.test, tuple(train.shape[1:]), options)
        skipped = len(raw.train.labels) + len(raw.test.labels) - len(train.labels) - len(test.labels)
        index = Index(
            version=VERSION, fingerprint=fingerprint, classes=raw.classes, skipped=skipped, train=train, test=test
        )
        write_text(home / INDEX, json.dumps(index.model_dump()))
    if old:
        for stale in {Path(entry.file).name for entry in (old.train, old.test)} - {train.file, test.file}:
            with suppress(OSError):  # somebody else was faster
                (home / stale).unlink()
    cached = read_cache(name, home, fingerprint)
    if cached is None:
        raise InputError(f"the cache {home} does not hold what was just written to it; check that disk.")
    return cached


class SplitEntry(pydantic.BaseModel):
    """What the index says of one split."""

    file: str
    shape: list[int]
    spots: int  # checksum
    labels: list[int]
    columns: dict[str, list[int | str]] = {}


class Index(pydantic.BaseModel):
    """What `index.json` holds."""

    version: int
    fingerprint: str
    classes: tuple[Any, ...]  # text, which pydantic would refuse where a folder's name is not UTF-8
    skipped: int
    train: SplitEntry
    test: SplitEntry


@contextmanager
def _written(home: Path) -> Iterator[None]:
    """Make the folder for what is written in this block; errors of its disk say what to do about a cache."""
    try:
        with making(home):
            _clear_abandoned(home)
            yield
    except (OSError, CannotWrite) as error:
        why = error.reason if isinstance(error, CannotWrite) else reason(error)
        raise InputError(
            f"the cache {home} cannot be written ({why}); make room there, or set ACCUACL_CACHE to another folder."
        ) from error


def _write_split(
    home: Path, split: str, raw: RawSplit, shape: tuple[int, ...] | None, options: DecodeOptions
) -> SplitEntry:
    """Decode the images of a split into a file; what the index says of it."""
    row, start, kept, content = 0, 0, [], hashlib.sha256()

    def name() -> str:
        return f"{split}-{content.hexdigest()[:32]}.npy"

    with replacing(home / f"{split}.npy", name) as file:
        for chunk in decode_all(raw.images(), options.size, shape, options.skip_bad):
            for pixels in chunk:
                if pixels is not None:
                    shape = pixels.shape
                    start = start or _write_header(file, (0, *shape))
                    data = pixels.tobytes()
                    content.update(data)
                    file.write(data)
                    kept.append(row)
                row += 1
            if options.progress:
                options.progress(Progress(row, len(raw.labels), f"decoding {split}", "decoding"))
        if not kept or shape is None:
            raise InputError(f"the {split} split has no image that can be read; give at least one.")
        shape = (len(kept), *shape)
        file.seek(0)
        if _write_header(file, shape) != start:
            raise AssertionError("NumPy leaves room in the header for a longer first axis")
        spots = _spots(file, start, math.prod(shape))
    columns = {column: values[kept].tolist() for column, values in raw.columns.items()}
    labels = raw.labels[kept].tolist()
    return SplitEntry(file=name(), shape=list(shape), spots=spots, labels=labels, columns=columns)


def _read_index(home: Path) -> Index | None:
    try:
        return Index.model_validate(json.loads((home / INDEX).read_bytes()))
    except (OSError, ValueError):  # not there, not JSON, or not an index
        return None


def _read_split(home: Path, entry: SplitEntry) -> Split | None:
    """The split, its images memory-mapped; None if the file is not as it was written."""
    path = home / entry.file
    try:
        # "c" is copy on write: torch wants writable arrays, and the file stays as it is
        images: np.memmap[Any, np.dtype[np.uint8]] = np.load(path, mmap_mode="c", allow_pickle=False)
        with open(path, "rb") as file:
            same = _spots(file, images.offset, images.nbytes) == entry.spots
            same = same and path.stat().st_size == images.offset + images.nbytes
    except (OSError, ValueError, EOFError):  # not there, or not what NumPy writes
        return None
    if not same or images.dtype != np.uint8 or list(images.shape) != entry.shape or len(images) != len(entry.labels):
        return None
    columns = {name: np.array(values) for name, values in entry.columns.items()}
    return Split(images, np.array(entry.labels, np.int64), columns)


def _clear_abandoned(folder: Path) -> None:
    """Delete what a killed process left half-written."""
    for part in folder.glob("*.part"):
        with suppress(OSError):  # its writer may be finishing it at this moment
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()


def _write_header(file: IO[bytes], shape: tuple[int, ...]) -> int:
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.tell()


def _spots(file: IO[bytes], start: int, size: int) -> int:
    """A checksum of some blocks, spread evenly: starting must not read gigabytes."""
    checksum = 0
    for spot in range(SPOTS):
        file.seek(start + max(0, size - SPOT_BYTES) * spot // (SPOTS - 1))
        checksum = zlib.crc32(file.read(SPOT_BYTES), checksum)
    return checksum
