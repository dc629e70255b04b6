"""The C library keeps freed memory where it is told to, and gives it back afterwards."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from accuacl.base import machine
from accuacl.base.machine import memory_kept, one_heap

resource = pytest.importorskip("resource", reason="Windows has none")
pytestmark = pytest.mark.posix

PAGES = 64 * 2**20 // resource.getpagesize()


def faults() -> int:
    """How many pages the system has to provide for four arrays of 64 MB, one after the other."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(4):
        np.ones(64 * 2**20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(machine._gnu() is None, reason="another C library")
def test_freed_memory_is_kept_within_the_block_alone(monkeypatch):
    with memory_kept():
        np.ones(64 * 2**20, np.uint8)
        inside = faults()
    outside = faults()
    assert inside < PAGES // 16
    assert outside > 8 * max(inside, 1)


def test_other_c_libraries_are_left_alone(monkeypatch):
    """Of a library that is not GNU's nothing is called; of GNU's, the thresholds are set and set back."""
    calls = []

    class Other:
        def mallopt(self, parameter, value):
            calls.append((parameter, value))

        def malloc_trim(self, rest):
            calls.append(("trim", rest))

    class Gnu(Other):
        gnu_get_libc_version = None

    for library, expected in ((Other(), 0), (Gnu(), 6)):
        calls.clear()
        monkeypatch.setattr(ctypes, "CDLL", lambda name, library=library: library)
        one_heap()
        with memory_kept():
            inside = len(calls)
        assert (inside, len(calls)) == (expected // 2, expected)
