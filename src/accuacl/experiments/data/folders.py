"""Images as files: train/<class>/* and test/<class>/*, and tiny-imagenet-200 as folder or zip."""

from __future__ import annotations

import functools
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.experiments.data.dataset import RawDataset, RawImage, RawSplit, Source
from accuacl.experiments.data.splits import READING as HELD_OUT, split_raw

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
TESTS = ("test", "val", "valid", "validation")
TINY = "tiny-imagenet-200"
ANNOTATIONS = "val/val_annotations.txt"
READING = "classes in order of wnid"

Read = Callable[[str], bytes]


def find(folder: Path) -> Source | None:
    """train/<class>/* with or without test/<class>/*, or <class>/* alone; without a test folder a fifth is held out."""
    train = "train/" if any(entry.is_dir() for entry in _entries(folder / "train")) else ""
    if not train and not any(map(_holds_images, _entries(folder))):
        return None
    test = next((f"{name}/" for name in TESTS if train and (folder / name).is_dir()), "")
    files = _walk(folder, (train, test) if test else (train,))
    read = functools.partial(_read_file, folder)
    open_ = functools.partial(_open_folder, str(folder), files, (train, test), read)
    return Source(folder, _absolute(folder, files), open_, "" if test else HELD_OUT)


def find_tiny(folder: Path) -> Source | None:
    """tiny-imagenet-200 as published, in `folder` or being it."""
    for unpacked in (folder / TINY, folder):
        if (unpacked / ANNOTATIONS).is_file():
            files = _walk(unpacked, ("",))
            read = functools.partial(_read_file, unpacked)
            open_ = functools.partial(_open_tiny, str(unpacked), files, read)
            return Source(unpacked, _absolute(unpacked, files), open_, READING)
    archive = folder / f"{TINY}.zip"
    if archive.is_file():
        return Source(archive, (os.path.abspath(archive),), functools.partial(_open_zip, archive), READING)
    return None


def _open_folder(root: str, files: list[str], splits: tuple[str, str], read: Read) -> RawDataset:
    """splits: where the folders of the classes are, such as train/ and test/; no test folder: a fifth is held out."""
    train, test = splits
    inside = [(file, test if test and file.startswith(test) else train) for file in files]
    named = [(file, file.removeprefix(split).split("/")[0], split) for file, split in inside if _in_class(file, split)]
    classes = sorted({name for _, name, split in named if split == train})
    ids = {name: i for i, name in enumerate(classes)}
    images = [entry for entry in named if entry[0].lower().endswith(IMAGE_SUFFIXES)]
    for file, name, _ in images:
        if name not in ids:
            raise InputError(f"{root}/{file} is of an unknown class; the classes are the folders in {root}/train.")
    raw = [_split(root, [(file, ids[name]) for file, name, split in images if split == s], read) for s in splits]
    both = (raw[0], raw[1]) if test else split_raw(raw[0])
    return RawDataset(*both, tuple(classes))


def _in_class(file: str, split: str) -> bool:
    """Whether a file lies in a folder of the split, not deeper."""
    return file.removeprefix(split).count("/") == 1


def _holds_images(entry: Path) -> bool:
    return entry.is_dir() and any(path.suffix.lower() in IMAGE_SUFFIXES for path in _entries(entry))


def _open_tiny(root: str, files: list[str], read: Read) -> RawDataset:
    """Classes in order of their WordNet ids, as in the Parquet edition; named by words.txt where it is there."""
    present = set(files)
    train = [f for f in files if f.startswith("train/") and "/images/" in f and f.lower().endswith(IMAGE_SUFFIXES)]
    wnids = sorted({file.split("/")[1] for file in train})
    if "wnids.txt" in present:
        wnids = sorted(_text(root, "wnids.txt", read).split())
    ids = {wnid: i for i, wnid in enumerate(wnids)}
    words = _text(root, "words.txt", read).splitlines() if "words.txt" in present else []
    names = dict(line.split("\t", 1) for line in words if "\t" in line)
    test = []
    for line in _text(root, ANNOTATIONS, read).splitlines():
        file, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if f"val/images/{file}" not in present:
            raise InputError(f"{root} has no val/images/{file}, which {ANNOTATIONS} names; unpack it again.")
        test.append((f"val/images/{file}", wnid))
    for file, wnid in [*((file, file.split("/")[1]) for file in train), *test]:
        if wnid not in ids:
            raise InputError(f"{root}/{file} is of the unknown class {wnid}; wnids.txt must name every class.")
    called = [names.get(wnid, wnid) for wnid in wnids]
    return RawDataset(
        _split(root, [(file, ids[file.split("/")[1]]) for file in train], read),
        _split(root, [(file, ids[wnid]) for file, wnid in test], read),
        # two kinds of crane are two classes
        tuple(c if called.count(c) == 1 else f"{c} ({wnid})" for c, wnid in zip(called, wnids, strict=True)),
    )


def _open_zip(archive: Path) -> RawDataset:
    try:
        opened = zipfile.ZipFile(archive)  # stays open as long as an image may be asked for
    except (zipfile.BadZipFile, OSError) as error:
        raise InputError(f"{archive} is damaged ({reason(error)}); download it again.") from error
    inside = sorted(name for name in opened.namelist() if not name.endswith("/"))
    prefix = next((name.removesuffix(ANNOTATIONS) for name in inside if name.endswith(ANNOTATIONS)), None)
    if prefix is None:
        raise InputError(f"{archive} has no {ANNOTATIONS} in it; download it again.")
    files = [name.removeprefix(prefix) for name in inside if name.startswith(prefix)]
    return _open_tiny(str(archive), files, lambda file: opened.read(prefix + file))


def _text(root: str, file: str, read: Read) -> str:
    try:
        return read(file).decode()
    except (OSError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{root}/{file} cannot be read ({reason(error)}); download it again.") from error


def _split(root: str, files: list[tuple[str, int]], read: Read) -> RawSplit:
    def images() -> Iterator[RawImage]:
        for file, _ in files:
            yield f"{root}/{file}", functools.partial(read, file)

    return RawSplit(np.array([label for _, label in files], np.int64), images)


def _walk(folder: Path, below: tuple[str, ...]) -> list[str]:
    """All files under these subfolders ("": all there are), relative to `folder`, sorted; hidden ones are left out."""
    paths: list[str] = []
    for start in below:
        for root, folders, files in os.walk(folder / start, followlinks=True):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = os.path.relpath(root, folder).replace(os.sep, "/")
            prefix = "" if inside == "." else f"{inside}/"
            paths += [prefix + name for name in files if not name.startswith(".")]
    return sorted(paths)


def _absolute(folder: Path, files: list[str]) -> tuple[str, ...]:
    root = os.path.abspath(folder)
    return tuple(f"{root}/{file}" for file in files)


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if not entry.name.startswith(".")] if folder.is_dir() else []


def _read_file(folder: Path, file: str) -> bytes:
    return (folder / file).read_bytes()
