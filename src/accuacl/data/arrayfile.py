""".npy files of images, written row by row and checked when opened."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from accuacl.base.files import replacing
from accuacl.data.source import Pixels

SPOTS, SPOT_BYTES = 64, 4096  # what is read of a file to see that its pixels are still those written
FORGOTTEN = 3600  # seconds without a change after which a half-written file has no writer any more


def write_rows(folder: Path, stem: str, rows: Iterable[Pixels]) -> dict[str, Any]:
    """Write images of one shape, at least one, and say how to find and check them again."""
    count, shape, content = 0, (), hashlib.sha256()

    def name() -> str:
        return f"{stem}-{content.hexdigest()[:32]}.npy"

    with replacing(folder / f"{stem}.npy", name) as file:
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
        spots = _spots(file, start, count * len(data))
    return {"file": name(), "shape": [count, *shape], "spots": spots}


def open_rows(folder: Path, file: str, shape: list[int], spots: int) -> Pixels | None:
    """The images written, memory-mapped; None if they are not what was written."""
    path = folder / file
    try:
        # "c" is copy on write: torch wants writable arrays, and the file stays as it is
        rows: np.memmap[Any, np.dtype[np.uint8]] = np.load(path, mmap_mode="c", allow_pickle=False)
        whole = path.stat().st_size == rows.offset + rows.nbytes
        with open(path, "rb") as opened:
            same = whole and _spots(opened, rows.offset, rows.nbytes) == spots
    except (OSError, ValueError, EOFError):  # not there, or not what NumPy writes
        return None
    return rows if same and rows.dtype == np.uint8 and list(rows.shape) == shape else None


def clear_forgotten(folder: Path) -> None:
    """Delete what a killed process left half-written."""
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
