"""How often a person may do something: so many times at once, and then so many times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fastapi import HTTPException


class Limit:
    """A bucket for each person, which fills up again with time.

    >>> now = [0.0]
    >>> limit = Limit(burst=2, each_second=1.0, clock=lambda: now[0])
    >>> [limit.wait(7), limit.wait(7), limit.wait(7), limit.wait(8)]
    [0.0, 0.0, 1.0, 0.0]
    >>> now[0] = 1.0
    >>> limit.wait(7)
    0.0
    """

    def __init__(self, burst: int, each_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.burst, self.each_second, self._clock = burst, each_second, clock
        self._left: dict[int, tuple[float, float]] = {}  # person: (what is left, when that was)
        self._turn = threading.Lock()

    def wait(self, person: int, count: int = 1) -> float:
        """Count so many; or else the seconds until that is allowed."""
        with self._turn:
            now = self._clock()
            left, then = self._left.get(person, (float(self.burst), now))
            left = min(self.burst, left + (now - then) * self.each_second)
            allowed = left >= count
            self._left[person] = (left - count if allowed else left, now)
            return 0.0 if allowed else (count - left) / self.each_second

    def take(self, person: int, count: int = 1) -> None:
        """Count so many; 429 if that is too many."""
        seconds = self.wait(person, count)
        if seconds:
            after = max(1, round(seconds))
            detail = f"That is too much at once; try again in {after} s."
            raise HTTPException(429, detail, headers={"Retry-After": str(after)})
