"""Decoded images on disk: one memory-mapped array a split, written aside, checked and used again.

A data set has a folder. `index.json` says which array files belong to it and what they were made from; it is put in
place last, so it only ever names whole files. Array files carry the hash of their pixels in their names, so two
processes that build the same cache at once write the same names with the same bytes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.progress import OnProgress, Progress
from accuacl.data.arrayfile import aside, finish, open_rows, write_rows
from accuacl.data.dataset import Split
from accuacl.data.source import Contents, Part, Pixels

VERSION = 1
INDEX = "index.json"


@dataclass(frozen=True, eq=False)
class Cached:
    """What the cache holds of a data set, and how many bad images were left out when it was made."""

    train: Split
    test: Split
    classes: tuple[str, ...]
    skipped: int


@dataclass(frozen=True)
class Decoding:
    """How images are decoded. size: they are made so large; side: they must be so large as they come."""

    size: int | None = None
    side: int | None = None
    skip_bad: bool = False
    progress: OnProgress | None = None


def read_cache(home: Path, fingerprint: str) -> Cached | None:
    """What is in the cache, if it was made from these very files and is whole; else None."""
    try:
        index = json.loads((home / INDEX).read_text(encoding="utf-8"))
        if index["version"] != VERSION or index["fingerprint"] != fingerprint:
            return None
        train, test = (_read_split(home, index[split]) for split in ("train", "test"))
        return Cached(train, test, tuple(index["classes"]), int(index["skipped"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # not whole, whatever ails it
        return None


def build_cache(home: Path, contents: Contents, fingerprint: str, how: Decoding) -> Cached:
    """Decode all images into `home`."""
    old = _array_files(home)
    index: dict[str, Any] = {"version": VERSION, "fingerprint": fingerprint, "classes": contents.classes, "skipped": 0}
    shape = (how.side, how.side, 3) if how.side else None
    for split, part in (("train", contents.train), ("test", contents.test)):
        entry = _write_split(home, split, part, shape, how)
        index[split], shape = entry, tuple(entry["shape"][1:])
        index["skipped"] += len(part.labels) - len(entry["labels"])
    with aside(home) as file:
        file.write(json.dumps(index).encode())
        finish(file, home / INDEX)
    for stale in old - {index["train"]["file"], index["test"]["file"]}:
        with suppress(OSError):  # somebody else was faster
            (home / stale).unlink()
    found = read_cache(home, fingerprint)
    if found is None:
        raise InputError(f"the cache {home} does not hold what was just written to it; check that disk.")
    return found


def _write_split(home: Path, split: str, part: Part, shape: tuple[int, ...] | None, how: Decoding) -> dict[str, Any]:
    kept: list[int] = []
    rows = _rows(part, split, kept, shape, how)
    first = next(rows, None)
    if first is None:
        raise InputError(f"the {split} split has no image that can be read; give at least one.")
    entry = write_rows(home, split, itertools.chain([first], rows))
    return {**entry, "labels": part.labels[kept].tolist()}


def _rows(part: Part, split: str, kept: list[int], shape: tuple[int, ...] | None, how: Decoding) -> Iterator[Pixels]:
    """The decoded images; the row numbers of those not left out are appended to `kept`."""
    from accuacl.data.decode import decode_all  # only here: a start from the cache does without Pillow

    row = 0
    for chunk in decode_all(part.images(), how.size):
        for place, pixels, reason in chunk:
            if pixels is not None:
                shape = shape or pixels.shape
                if pixels.shape != shape:
                    raise InputError(
                        f"{place} is {pixels.shape[1]} x {pixels.shape[0]} pixels where {shape[1]} x {shape[0]} were "
                        "expected; bring all images to one size with --image-size (in Python: image_size)."
                    )
                kept.append(row)
                yield pixels
            elif not how.skip_bad:
                raise InputError(
                    f"{place} is not a readable image ({reason}); replace it, or leave such images out with "
                    "--skip-bad (in Python: skip_bad=True)."
                )
            row += 1
        if how.progress:
            how.progress(Progress(row, len(part.labels), f"decoding {split}", "decoding"))


def _read_split(home: Path, entry: dict[str, Any]) -> Split:
    labels = np.array(entry["labels"], np.int64)
    inputs = open_rows(home, entry)
    if labels.shape != (len(inputs),):
        raise InputError(f"{home} has {len(labels)} labels for {len(inputs)} images.")
    return Split(inputs, labels)


def _array_files(home: Path) -> set[str]:
    """The array files that the index in place names, whatever else may be wrong with it."""
    try:
        index = json.loads((home / INDEX).read_text(encoding="utf-8"))
        return {Path(index[split]["file"]).name for split in ("train", "test")}
    except (OSError, ValueError, KeyError, TypeError):
        return set()
