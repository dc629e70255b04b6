"""Images as files: train/<class>/* and test/<class>/*, and tiny-imagenet-200 as folder or zip."""

from __future__ import annotations

import functools
import os
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.experiments.data.dataset import TESTS, RawDataset, RawSplit, Source
from accuacl.experiments.data.splits import HELD_OUT, in_two

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
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
    splits = (train, test) if test else (train,)
    files = [file for split in splits for file in _walk(folder, split)]
    return _source(folder, files, functools.partial(_open_folder, splits), "" if test else HELD_OUT)


def find_tiny(folder: Path) -> Source | None:
    """tiny-imagenet-200 as published, in `folder` or being it."""
    for unpacked in (folder / TINY, folder):
        if (unpacked / ANNOTATIONS).is_file():
            return _source(unpacked, _walk(unpacked, ""), _open_tiny, READING)
    archive = folder / f"{TINY}.zip"
    if archive.is_file():
        return Source(archive, (os.path.abspath(archive),), functools.partial(_open_zip, archive), READING)
    return None


def _source(folder: Path, files: list[str], open_: Callable[[str, list[str], Read], RawDataset], how: str) -> Source:
    root = os.path.abspath(folder)
    read = functools.partial(_read_file, folder)
    return Source(folder, tuple(f"{root}/{file}" for file in files), lambda: open_(str(folder), files, read), how)


def _open_folder(splits: Sequence[str], root: str, files: list[str], read: Read) -> RawDataset:
    """splits: where the folders of the classes are, such as train/ and test/; only one: a fifth is held out."""
    inside: list[list[tuple[str, str]]] = []  # by split: files directly in folders of classes, and these
    for split in splits:
        parts = [(file, file.removeprefix(split).split("/")) for file in files if file.startswith(split)]
        inside.append([(file, names[0]) for file, names in parts if len(names) == 2])
    classes = sorted({name for _, name in inside[0]})
    images = [[(file, name) for file, name in named if file.lower().endswith(IMAGE_SUFFIXES)] for named in inside]
    expected = f"the classes are the folders in {root}/train"
    return RawDataset(*in_two([_split(root, n, classes, expected, read) for n in images]), tuple(classes))


def _holds_images(entry: Path) -> bool:
    return entry.is_dir() and any(path.suffix.lower() in IMAGE_SUFFIXES for path in _entries(entry))


def _open_tiny(root: str, files: list[str], read: Read) -> RawDataset:
    """Classes in order of their WordNet ids, as in the Parquet edition; named by words.txt where it is there."""
    present = set(files)
    images = [f for f in files if f.startswith("train/") and "/images/" in f and f.lower().endswith(IMAGE_SUFFIXES)]
    train = [(file, file.split("/")[1]) for file in images]
    test = []
    for line in _text(root, ANNOTATIONS, read).splitlines():
        file, wnid, *_ = [*line.split("\t"), ""]
        if f"val/images/{file}" not in present:
            raise InputError(f"{root} has no val/images/{file}, which {ANNOTATIONS} names; unpack it again.")
        test.append((f"val/images/{file}", wnid))
    listed = _text(root, "wnids.txt", read).split() if "wnids.txt" in present else {wnid for _, wnid in train}
    wnids = sorted(listed)
    words = _text(root, "words.txt", read).splitlines() if "words.txt" in present else []
    names = dict(line.split("\t", 1) for line in words if "\t" in line)
    called = [names.get(wnid, wnid) for wnid in wnids]
    expected = "wnids.txt must name every class"
    return RawDataset(
        _split(root, train, wnids, expected, read),
        _split(root, test, wnids, expected, read),
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


def _split(root: str, files: list[tuple[str, str]], classes: list[str], expected: str, read: Read) -> RawSplit:
    """files: with their classes. expected: what to say of a file whose class is not one of `classes`."""
    ids = {name: i for i, name in enumerate(classes)}
    for file, name in files:
        if name not in ids:
            raise InputError(f"{root}/{file} is of the unknown class {name}; {expected}.")
    images = [(f"{root}/{file}", functools.partial(read, file)) for file, _ in files]
    return RawSplit(np.array([ids[name] for _, name in files], np.int64), lambda: images)


def _walk(folder: Path, below: str) -> list[str]:
    """All files under a subfolder ("": all there are), relative to `folder`, sorted; hidden ones are left out."""
    paths: list[str] = []
    for root, folders, files in os.walk(folder / below, followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(root, folder).replace(os.sep, "/")
        prefix = "" if inside == "." else f"{inside}/"
        paths += [prefix + name for name in files if not name.startswith(".")]
    return sorted(paths)


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if not entry.name.startswith(".")] if folder.is_dir() else []


def _read_file(folder: Path, file: str) -> bytes:
    return (folder / file).read_bytes()
