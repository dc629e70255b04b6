"""Files that are either whole or not there, and .npy files of images written row by row and checked when opened."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.data.source import Pixels

SPOTS, SPOT_BYTES = 64, 4096  # what is read of a file to see that its pixels are still those written
FORGOTTEN = 3600  # seconds without a change after which a half-written file has no writer any more


@contextmanager
def aside(folder: Path) -> Iterator[IO[bytes]]:
    """A file to write to and then give to `finish`; gone afterwards if that did not happen."""
    path = folder / f"{uuid.uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _clear_forgotten(folder)
        with open(path, "xb+") as file:
            yield file
    except OSError as error:
        raise InputError(
            f"the cache {folder} cannot be written ({error.strerror or error}); "
            "make room there, or set ACCUACL_CACHE to another folder."
        ) from error
    finally:
        with suppress(OSError):  # it has its name by now, or could not even be made
            path.unlink()


def finish(file: IO[bytes], target: Path) -> None:
    """Give the file its name, once its bytes are on the disk."""
    file.flush()
    os.fsync(file.fileno())
    os.replace(file.name, target)
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


def write_rows(folder: Path, stem: str, rows: Iterable[Pixels]) -> dict[str, Any]:
    """Write images of one shape, at least one, and say how to find and check them again."""
    count, shape, content = 0, (), hashlib.sha256()
    with aside(folder) as file:
        for row in rows:
            if count == 0:
                shape = row.shape
                start = _write_header(file, (0, *shape))
            data = row.tobytes()
            content.update(data)
            file.write(data)
            count += 1
        file.seek(0)
        if _write_header(file, (count, *shape)) != start:
            raise AssertionError("NumPy leaves room in the header for a longer first axis")
        name = f"{stem}-{content.hexdigest()[:32]}.npy"
        spots = _spots(file, start, count * len(data))
        finish(file, folder / name)
    return {"file": name, "shape": [count, *shape], "spots": spots}


def open_rows(folder: Path, entry: dict[str, Any]) -> Pixels:
    """The images written, memory-mapped; ValueError or OSError if they are not what was written."""
    path = folder / entry["file"]
    # "c" is copy on write: torch wants writable arrays, and the file stays as it is
    rows: np.memmap[Any, np.dtype[np.uint8]] = np.load(path, mmap_mode="c", allow_pickle=False)
    if rows.dtype != np.uint8 or list(rows.shape) != entry["shape"]:
        raise InputError(f"{path} has shape {rows.shape}, not {entry['shape']}.")
    if path.stat().st_size != rows.offset + rows.nbytes:
        raise InputError(f"{path} has more bytes than were written.")
    with open(path, "rb") as file:
        if _spots(file, rows.offset, rows.nbytes) != entry["spots"]:
            raise InputError(f"{path} has other pixels than were written.")
    return rows


def _clear_forgotten(folder: Path) -> None:
    for part in folder.glob("*.part"):
        with suppress(OSError):  # its writer may be finishing it at this moment
            if time.time() - part.stat().st_mtime > FORGOTTEN:
                part.unlink()


def _write_header(file: IO[bytes], shape: tuple[int, ...]) -> int:
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.tell()


def _spots(file: IO[bytes], start: int, size: int) -> int:
    """A checksum of some blocks, spread evenly: a start must not read gigabytes."""
    sum_ = 0
    for spot in range(SPOTS):
        file.seek(start + max(0, size - SPOT_BYTES) * spot // (SPOTS - 1))
        sum_ = zlib.crc32(file.read(SPOT_BYTES), sum_)
    return sum_
