"""How much memory a strategy needs, and how much there is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from accuacl.base.errors import InputError

Strategy = TypeVar("Strategy", bound=Callable[..., object])
Needs = Callable[[int, int, int], int]  # bytes beyond the pool itself, for n examples, d wide, of K classes
UNKNOWN = 4 << 30  # bytes, where the system does not say what it has


class TooLarge(InputError):
    """A strategy needs more memory than there is: `bytes` of it."""

    def __init__(self, message: str, bytes: int) -> None:
        super().__init__(message, bytes)
        self.message, self.bytes = message, bytes

    def __str__(self) -> str:
        return self.message


def needs(bytes_needed: Needs) -> Callable[[Strategy], Strategy]:
    """Declare how much memory a strategy takes, so that it can be refused before a large pool is read."""

    def declare(strategy: Strategy) -> Strategy:
        strategy.needs = bytes_needed  # type: ignore[attr-defined]
        return strategy

    return declare


def bytes_needed(strategy: Callable[..., object], n: int, d: int, K: int) -> int:
    """How many bytes a strategy declares to need beyond the pool; 0 if it declares nothing."""
    said: Needs | None = getattr(strategy, "needs", None)
    return said(n, d, K) if said else 0


def check_fits(name: str, need: int, n: int, d: int, instead: str = "") -> None:
    """Refuse, with the bytes needed, before anything is allocated. instead: what may be given but a smaller pool."""
    free = available()
    if need > free:
        raise TooLarge(
            f"{name} needs {need:,} bytes for {n} examples with d={d}, and {free:,} are free; "
            f"give a smaller pool{instead}.",
            need,
        )


def available() -> int:
    """Bytes of memory that this process can still get, from the machine or the container that it runs in."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else UNKNOWN
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            free = int(line.split()[1]) * 1024
    limit, used = _lines("/sys/fs/cgroup/memory.max"), _lines("/sys/fs/cgroup/memory.current")
    if limit and used and limit[0].isdigit():
        free = min(free, int(limit[0]) - int(used[0]))
    return free


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
