"""Images in folders: which there are, and their bytes and pixels. Nothing outside of the folder is read."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from accuacl.base.errors import InputError
from accuacl.base.files import cores, reason
from accuacl.base.progress import OnProgress, Progress
from accuacl.data import IMAGE_SUFFIXES, BadImage, decode, reading_image
from accuacl.labeling.project.ahead import in_order
from accuacl.labeling.project.new_items import NewItems, there

LARGEST_FILE = 256 * 2**20  # bytes of an image file
LARGEST_IMAGE = 80_000_000  # pixels; more is taken for a decompression bomb, as Pillow does at 89 million


def read_images(folder: Path, tell: OnProgress) -> NewItems:
    """All images in the folder and those below, each decoded once: what cannot be decoded is left out."""
    root = there(folder, "a folder of images").resolve()
    if not root.is_dir():
        raise InputError(f"{folder} is not a folder; give one with images in it.")
    candidates = sorted(_walk(root))
    names, bad = [], {}
    checked = in_order(lambda name: _trouble(root, name), candidates, cores())
    for i, (name, trouble) in enumerate(zip(candidates, checked, strict=True)):
        if trouble:
            bad[name.encode("utf-8", "replace").decode()] = trouble
        else:
            names.append(name)
        tell(Progress(i + 1, len(candidates), f"reading images {i + 1}/{len(candidates)}"))
    return NewItems("images", str(root), names, bad=bad)


def _trouble(root: Path, name: str) -> str:
    """Why the image cannot be used; "" if it can."""
    try:
        name.encode()  # names are kept as UTF-8
        check_image(read_inside(root, name))
    except BadImage as error:
        return f"not a readable image ({error.reason})"
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    except InputError as error:
        return str(error)
    return ""


def read_inside(folder: Path, name: str) -> bytes:
    """The bytes of a file in the folder; links that lead out of it, and anything but plain files, are refused."""
    root = folder.resolve()
    path = Path(os.path.realpath(root / name))  # Path.resolve fails on links that lead to themselves
    if not path.is_relative_to(root):
        raise InputError(f"{name!r} is not inside {folder}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise InputError(f"{name!r} is not a file")
            if state.st_size > LARGEST_FILE:
                raise InputError(f"{name!r} has {state.st_size} bytes; an image may have at most {LARGEST_FILE}")
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"{name!r} cannot be read: {reason(error)}") from error


def image_type(data: bytes) -> str:
    """The MIME type of an image, from its bytes; BadImage if they are not an image, or one too large to decode."""
    with reading_image("this"), Image.open(io.BytesIO(data)) as image:  # looks at the header only
        width, height, kind = image.width, image.height, image.get_format_mimetype()
    if width * height > LARGEST_IMAGE:
        raise BadImage("this", f"{width} x {height} pixels; an image may have at most {LARGEST_IMAGE}")
    return kind or "application/octet-stream"


def check_image(data: bytes, size: int | None = None) -> NDArray[np.uint8]:
    """The pixels; BadImage if they cannot be decoded."""
    image_type(data)
    return decode(data, size)


def _walk(root: Path) -> Iterator[str]:
    """Paths of image files relative to the folder. Hidden ones are skipped, and links to folders are not followed."""
    for parent, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inside = "" if parent == str(root) else os.path.relpath(parent, root).replace(os.sep, "/") + "/"
        for name in files:
            if not name.startswith(".") and name.lower().endswith(IMAGE_SUFFIXES):
                yield f"{inside}{name}"
