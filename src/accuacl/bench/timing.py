"""Seconds and peak memory of a piece of work in this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def timed(job: Callable[[], Any]) -> tuple[float, float, int]:
    """CPU and wall-clock seconds, the best of a few runs, and peak memory beyond what was in use before."""
    cpus: list[float] = []
    walls: list[float] = []
    extra = 0
    while len(cpus) < 1 or (len(cpus) < 5 and sum(walls) < 2):
        before = _reset_peak()
        cpu, wall = time.process_time(), time.perf_counter()
        job()
        cpus.append(time.process_time() - cpu)
        walls.append(time.perf_counter() - wall)
        extra = max(extra, _status("VmHWM") - before)
    return min(cpus), min(walls), extra


def _reset_peak() -> int:
    """Reset the peak of resident memory; returns how much is resident now."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass  # then the peak is that of the whole process
    return _status("VmRSS")


def _status(key: str) -> int:
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
    except (OSError, StopIteration):
        return 0
