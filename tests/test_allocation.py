"""The C library keeps freed memory where it is told to, and gives it back afterwards."""

from __future__ import annotations

import ctypes
import resource

import numpy as np
import pytest

from accuacl.base import machine
from accuacl.base.machine import memory_kept, one_heap

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
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    one_heap()
    with memory_kept():
        pass
