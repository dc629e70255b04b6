"""Items that a project was asked to forget are not taken in again: it knows them by salted hashes alone."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accuacl.base.files import reading, write_text

FILE = "forgotten.json"  # in the folder `tasks`


def suppress(folder: Path, items: Iterable[str]) -> None:
    """Remember the hashes of these items, as `images` or `texts` call them. folder: the project's `tasks`."""
    known = _read(folder) or {"salt": secrets.token_hex(16), "hashes": []}
    hashes = sorted(set(known["hashes"]) | {_hash(known["salt"], item) for item in items})
    if hashes != known["hashes"]:
        write_text(folder / FILE, json.dumps(known | {"hashes": hashes}) + "\n")


def suppressed(folder: Path, items: list[str]) -> list[bool]:
    """Which of these were forgotten."""
    known = _read(folder)
    if known is None:
        return [False] * len(items)
    hashes = set(known["hashes"])
    return [_hash(known["salt"], item) in hashes for item in items]


def identities(kind: str, place: str, names: list[str], texts: list[str] | None) -> list[str]:
    """What an item is known by when it is added again: an image by its path, a text by its name and itself."""
    if kind == "texts":
        return [json.dumps(pair) for pair in zip(names, texts or (), strict=True)]
    return [os.path.join(place, name) for name in names]


def _hash(salt: str, item: str) -> str:
    return hashlib.sha256(f"{salt}\0{item}".encode("utf-8", "surrogatepass")).hexdigest()


def _read(folder: Path) -> dict[str, Any] | None:
    path = folder / FILE
    if not path.exists():
        return None
    with reading(path):
        return dict(json.loads(path.read_text()))
