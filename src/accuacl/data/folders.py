"""Images as files: train/<class>/* and test/<class>/*, and tiny-imagenet-200 as folder or zip."""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from accuacl.base.errors import InputError
from accuacl.data.source import Contents, Item, Part, Source

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
TESTS = ("test", "val", "valid", "validation")
TINY = "tiny-imagenet-200"
ANNOTATIONS = "val/val_annotations.txt"
READING = "classes in order of wnid"

Read = Callable[[str], bytes]


def find(folder: Path) -> Source | None:
    """An image folder, if `folder` has a train folder with folders in it."""
    if not any(entry.is_dir() for entry in _entries(folder / "train")):
        return None
    test = next((name for name in TESTS if (folder / name).is_dir()), None)
    if test is None:
        raise InputError(f"{folder} has train but no test folder; put test/<class>/ with images beside it.")
    files = _walk(folder, ("train", test))
    read = functools.partial(_read_file, folder)
    return Source(
        folder, _absolute(folder, files), functools.partial(_open_folder, str(folder), files, f"{test}/", read)
    )


def find_tiny(folder: Path) -> Source | None:
    """tiny-imagenet-200 as published, in `folder` or being it."""
    for place in (folder / TINY, folder):
        if (place / ANNOTATIONS).is_file():
            files = _walk(place, ("",))
            read = functools.partial(_read_file, place)
            open_ = functools.partial(_open_tiny, str(place), files, read)
            return Source(place, _absolute(place, files), open_, READING)
    archive = folder / f"{TINY}.zip"
    if archive.is_file():
        return Source(archive, (os.path.abspath(archive),), functools.partial(_open_zip, archive), READING)
    return None


def _open_folder(place: str, files: list[str], test: str, read: Read) -> Contents:
    images = [file for file in files if file.count("/") == 2 and file.lower().endswith(SUFFIXES)]
    classes = sorted({file.split("/")[1] for file in files if file.startswith("train/") and file.count("/") == 2})
    ids = {name: i for i, name in enumerate(classes)}
    for file in images:
        if file.split("/")[1] not in ids:
            raise InputError(f"{place}/{file} is of an unknown class; the classes are the folders in {place}/train.")
    train, tests = (
        [(file, ids[file.split("/")[1]]) for file in images if file.startswith(split)] for split in ("train/", test)
    )
    return Contents(_part(place, train, read), _part(place, tests, read), tuple(classes))


def _open_tiny(place: str, files: list[str], read: Read) -> Contents:
    """Classes in order of their WordNet ids, as in the Parquet edition; named by words.txt where it is there."""
    present = set(files)
    train = [f for f in files if f.startswith("train/") and "/images/" in f and f.lower().endswith(SUFFIXES)]
    found = sorted({file.split("/")[1] for file in train})
    wnids = sorted(read("wnids.txt").decode().split()) if "wnids.txt" in present else found
    ids = {wnid: i for i, wnid in enumerate(wnids)}
    words = read("words.txt").decode().splitlines() if "words.txt" in present else []
    names = dict(line.split("\t", 1) for line in words if "\t" in line)
    test = []
    for line in read(ANNOTATIONS).decode().splitlines():
        file, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if f"val/images/{file}" not in present:
            raise InputError(f"{place} has no val/images/{file}, which {ANNOTATIONS} names; unpack it again.")
        test.append((f"val/images/{file}", wnid))
    for file, wnid in [*((file, file.split("/")[1]) for file in train), *test]:
        if wnid not in ids:
            raise InputError(f"{place}/{file} is of the unknown class {wnid}; wnids.txt must name every class.")
    called = [names.get(wnid, wnid) for wnid in wnids]
    return Contents(
        _part(place, [(file, ids[file.split("/")[1]]) for file in train], read),
        _part(place, [(file, ids[wnid]) for file, wnid in test], read),
        # two kinds of crane are two classes
        tuple(c if called.count(c) == 1 else f"{c} ({wnid})" for c, wnid in zip(called, wnids, strict=True)),
    )


def _open_zip(archive: Path) -> Contents:
    try:
        opened = zipfile.ZipFile(archive)  # stays open as long as an image may be asked for
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{archive} is damaged ({error}); download it again.") from error
    inside = sorted(name for name in opened.namelist() if not name.endswith("/"))
    root = next((name.removesuffix(ANNOTATIONS) for name in inside if name.endswith(ANNOTATIONS)), None)
    if root is None:
        raise InputError(f"{archive} has no {ANNOTATIONS} in it; download it again.")
    files = [name.removeprefix(root) for name in inside if name.startswith(root)]
    return _open_tiny(str(archive), files, lambda file: opened.read(root + file))


def _part(place: str, files: list[tuple[str, int]], read: Read) -> Part:
    def images() -> Iterator[Item]:
        for file, _ in files:
            yield f"{place}/{file}", functools.partial(read, file)

    return Part(np.array([label for _, label in files], np.int64), images)


def _walk(folder: Path, below: tuple[str, ...]) -> list[str]:
    """All files under these subfolders, relative to `folder`, sorted; hidden ones are no data."""
    found = []
    for start in below:
        for root, folders, files in os.walk(folder / start, followlinks=True):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = os.path.relpath(root, folder).replace(os.sep, "/")
            prefix = "" if inside == "." else f"{inside}/"
            found += [prefix + name for name in files if not name.startswith(".")]
    return sorted(found)


def _absolute(folder: Path, files: list[str]) -> tuple[str, ...]:
    root = os.path.abspath(folder)
    return tuple(f"{root}/{file}" for file in files)


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if not entry.name.startswith(".")] if folder.is_dir() else []


def _read_file(folder: Path, file: str) -> bytes:
    return (folder / file).read_bytes()
