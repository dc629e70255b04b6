"""The machine: its processor, its cores, and how its C library keeps memory that was freed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CPU_INFO = Path("/proc/cpuinfo")  # on Linux
TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameters of mallopt
DYNAMIC = 32 * 2**20  # bytes: the most that the library chooses by itself
ALL = 2**31 - 1


def cpu_name() -> str:
    """The model name of the processor, or its architecture where the system does not say."""
    try:
        lines = CPU_INFO.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(filter(None, names), platform.processor() or platform.machine())


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_heap() -> None:
    """Let all threads that are still to come share the main heap, which alone can be kept as a whole."""
    if (library := _gnu()) is not None:
        library.mallopt(ARENA_MAX, 1)


@contextlib.contextmanager
def memory_kept() -> Iterator[None]:
    """Within the block freed memory is kept for the next use; afterwards it is given back."""
    library = _gnu()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, 2**30)
    library.mallopt(TRIM_THRESHOLD, ALL)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, DYNAMIC)
        library.mallopt(TRIM_THRESHOLD, 2 * DYNAMIC)
        library.malloc_trim(0)


def _gnu() -> Any:
    """The C library, if it is GNU's."""
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018
    except (AttributeError, OSError, TypeError):  # macOS, musl, Windows
        return None
    return library
