"""Memory that the C library keeps for itself, instead of giving it back to the system after every layer of a network.

The GNU C library returns blocks of more than 32 MB, and those of threads with a heap of their own, to the system as
soon as they are freed. The activations of a network are that large, so half of the time of a forward pass goes into
getting the same memory again. Other C libraries are left alone.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # parameters of mallopt
DYNAMIC = 32 * 2**20  # bytes: the most that the library chooses by itself
ALL = 2**31 - 1


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
