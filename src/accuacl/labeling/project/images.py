"""Images, and files of any kind, in folders: which there are, their bytes and pixels; nothing outside is read."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.base.files import reason
from accuacl.base.machine import cores, open_unlinked
from accuacl.base.progress import OnProgress, Progress
from accuacl.base.threads import ordered_thread_map
from accuacl.experiments.data import IMAGE_SUFFIXES, BadImage, decode, reading_image
from accuacl.labeling.project.new_items import NewItems, check_exists

LARGEST_FILE = 256 * 2**20  # the most bytes that a file may have
DECODED_AT_ONCE = 1000  # up to this many images of a new task are decoded when it is added, in a few seconds
LARGEST_IMAGE = 80_000_000  # pixels: a larger image is refused as a decompression bomb; Pillow's limit is 89 million


def read_images(folder: Path, on_progress: OnProgress, whole: bool = False) -> NewItems:
    """Return all images in the folder and those below; files that cannot be read are left out.

    Every image is decoded to check it. If there are more than a thousand, only their headers are read unless `whole` is
    set, and damage behind a header is found when the image is embedded.
    """
    check_exists(folder, "a folder of images")
    root = folder.resolve()
    if not root.is_dir():
        raise InputError(f"{folder} is not a folder; give one with images in it.")
    candidates = sorted(_walk(root))
    names, bad = [], {}
    whole = whole or len(candidates) <= DECODED_AT_ONCE
    reasons = ordered_thread_map(lambda name: why_unusable(root, name, whole), candidates, cores())
    for i, (name, why) in enumerate(zip(candidates, reasons, strict=True)):
        if why:
            bad[name.encode("utf-8", "replace").decode()] = why
        else:
            names.append(name)
        on_progress(Progress(i + 1, len(candidates), f"reading images {i + 1}/{len(candidates)}"))
    return NewItems("images", str(root), names, bad=bad)


def read_files(folder: Path) -> NewItems:
    """All files in the folder and those below, whatever they are. Hidden ones are skipped, and links that lead out."""
    check_exists(folder, "a folder of files")
    root = folder.resolve()
    if not root.is_dir():
        raise InputError(f"{folder} is not a folder; give one with files in it.")
    names, bad = [], {}
    for name in sorted(_walk(root, ())):
        try:
            name.encode()  # names are kept as UTF-8
            with open_inside(root, name):
                names.append(name)
        except (InputError, UnicodeEncodeError) as error:
            bad[name.encode("utf-8", "replace").decode()] = str(error)
    return NewItems("files", str(root), names, bad=bad)


def why_unusable(root: Path, name: str, whole: bool = True) -> str:
    """Return why the image cannot be used; "" if it can. whole: decode all of it instead of only its header."""
    try:
        name.encode()  # names are kept as UTF-8
        if whole:
            check_image(read_inside(root, name))
        else:
            with open_inside(root, name) as file:
                _type_of(file)
    except BadImage as error:
        return f"not a readable image ({error.reason})"
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except InputError as error:
        return str(error)
    return ""


def read_inside(folder: Path, name: str) -> bytes:
    """The bytes of a file in the folder; links that lead out of it, and anything but plain files, are refused."""
    with open_inside(folder, name) as file:
        return file.read(LARGEST_FILE + 1)


@contextlib.contextmanager
def open_inside(folder: Path, name: str) -> Iterator[BinaryIO]:
    """A file in the folder, open for reading within the block; refused as `read_inside` says."""
    root = folder.resolve()
    path = Path(os.path.realpath(root / name))  # Path.resolve fails on links that lead to themselves
    if not path.is_relative_to(root):
        raise InputError(f"{name!r} is not inside {folder}")
    try:
        descriptor = open_unlinked(path)
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise InputError(f"{name!r} is not a file")
            if state.st_size > LARGEST_FILE:
                raise InputError(f"{name!r} has {state.st_size} bytes; a file may have at most {LARGEST_FILE}")
            yield file
    except OSError as error:
        raise InputError(f"{name!r} cannot be read: {reason(error)}") from error


def image_type(data: bytes) -> str:
    """The MIME type of an image, from its bytes; BadImage if they are not an image, or one too large to decode."""
    return _type_of(io.BytesIO(data))


def _type_of(file: BinaryIO) -> str:
    with reading_image("this"), Image.open(file) as image:  # looks at the header only
        width, height, kind = image.width, image.height, image.get_format_mimetype()
    if width * height > LARGEST_IMAGE:
        raise BadImage("this", f"{width} x {height} pixels; an image may have at most {LARGEST_IMAGE}")
    return kind or "application/octet-stream"


def check_image(data: bytes, size: int | None = None) -> NDArray[np.uint8]:
    """Return the pixels of an image; raise BadImage if they cannot be decoded."""
    image_type(data)
    return decode(data, size)


def _walk(root: Path, suffixes: tuple[str, ...] = IMAGE_SUFFIXES) -> Iterator[str]:
    """Paths of files that end so, or of all, relative to the folder; without hidden ones and links to folders."""
    for parent, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = "" if parent == str(root) else os.path.relpath(parent, root).replace(os.sep, "/") + "/"
        for name in files:
            if not name.startswith(".") and (not suffixes or name.lower().endswith(suffixes)):
                yield f"{inside}{name}"
