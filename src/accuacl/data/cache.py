"""Decoded images on disk: one memory-mapped array a split, written aside, checked and used again.

A data set has a folder. `index.json` says which array files belong to it and what they were made from; it is put in
place last, so it only ever names whole files. Array files carry the hash of their pixels in their names, so two
processes that build the same cache at once write the same names with the same bytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pydantic

from accuacl.base.errors import InputError
from accuacl.base.files import CannotWrite, making, reason, write_text
from accuacl.base.progress import OnProgress, Progress
from accuacl.data.arrayfile import clear_forgotten, open_rows, write_rows
from accuacl.data.dataset import Split
from accuacl.data.images import decode_all
from accuacl.data.source import Pixels, RawDataset, RawSplit

VERSION = 1
INDEX = "index.json"


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


@dataclass(frozen=True, eq=False)
class Cached:
    """What the cache holds of a data set, and how many bad images were left out when it was made."""

    train: Split
    test: Split
    classes: tuple[str, ...]
    skipped: int


@dataclass(frozen=True)
class DecodeOptions:
    """How images are decoded. size: they are made so large; side: they must be so large as they come."""

    size: int | None = None
    side: int | None = None
    skip_bad: bool = False
    progress: OnProgress | None = None


def read_cache(home: Path, fingerprint: str) -> Cached | None:
    """What is in the cache, if it was made from these very files and is whole; else None."""
    index = _read_index(home)
    if index is None or index.version != VERSION or index.fingerprint != fingerprint:
        return None
    train, test = (_read_split(home, entry) for entry in (index.train, index.test))
    return Cached(train, test, index.classes, index.skipped) if train and test else None


def build_cache(home: Path, raw: RawDataset, fingerprint: str, options: DecodeOptions) -> Cached:
    """Decode all images into `home`."""
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
    cached = read_cache(home, fingerprint)
    if cached is None:
        raise InputError(f"the cache {home} does not hold what was just written to it; check that disk.")
    return cached


@contextmanager
def _written(home: Path) -> Iterator[None]:
    """Make the folder for what is written in this block; trouble with its disk says what to do about a cache."""
    try:
        with making(home):
            clear_forgotten(home)
            yield
    except (OSError, CannotWrite) as error:
        why = error.reason if isinstance(error, CannotWrite) else reason(error)
        raise InputError(
            f"the cache {home} cannot be written ({why}); make room there, or set ACCUACL_CACHE to another folder."
        ) from error


def _write_split(
    home: Path, split: str, raw: RawSplit, shape: tuple[int, ...] | None, options: DecodeOptions
) -> SplitEntry:
    kept: list[int] = []
    images = _decoded(raw, split, kept, shape, options)
    first = next(images, None)
    if first is None:
        raise InputError(f"the {split} split has no image that can be read; give at least one.")
    entry = write_rows(home, split, itertools.chain([first], images))
    columns = {name: [values[row] for row in kept] for name, values in raw.columns.items()}
    return SplitEntry(**entry, labels=raw.labels[kept].tolist(), columns=columns)


def _decoded(
    raw: RawSplit, split: str, kept: list[int], shape: tuple[int, ...] | None, options: DecodeOptions
) -> Iterator[Pixels]:
    """The decoded images; the row numbers of those not left out are appended to `kept`."""
    row = 0
    for chunk in decode_all(raw.images(), options.size, shape, options.skip_bad):
        for pixels in chunk:
            if pixels is not None:
                kept.append(row)
                yield pixels
            row += 1
        if options.progress:
            options.progress(Progress(row, len(raw.labels), f"decoding {split}", "decoding"))


def _read_index(home: Path) -> Index | None:
    try:
        return Index.model_validate(json.loads((home / INDEX).read_bytes()))
    except (OSError, ValueError):  # not there, not JSON, or not an index
        return None


def _read_split(home: Path, entry: SplitEntry) -> Split | None:
    inputs = open_rows(home, entry.file, entry.shape, entry.spots)
    if inputs is None or len(inputs) != len(entry.labels):
        return None
    columns = {name: np.array(values) for name, values in entry.columns.items()}
    return Split(inputs, np.array(entry.labels, np.int64), columns)
