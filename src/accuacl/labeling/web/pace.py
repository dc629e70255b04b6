"""How long something that reports its progress will still take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from accuacl.base.progress import Progress

ENOUGH = 3.0  # seconds of work from which the rest is judged


class Pace:
    """Seconds that are left of a stage, from how fast it has gone since the first report of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage: tuple[str, float] | None = None
        self._began, self._before = 0.0, 0.0  # when it was first heard of, and how much was done then

    def left(self, progress: Progress) -> float | None:
        """None while nobody can know."""
        now, stage = self._clock(), (progress.stage, progress.total)
        if stage != self._stage or progress.done < self._before:
            self._stage, self._began, self._before = stage, now, progress.done
        spent, done = now - self._began, progress.done - self._before
        return spent * (progress.total - progress.done) / done if done and spent >= ENOUGH else None


def about(seconds: float) -> str:
    """As people say it.

    >>> about(20), about(61), about(700), about(5000)
    ('less than a minute', 'about 2 minutes', 'about 12 minutes', 'about 1.4 hours')
    """
    if seconds < 60:
        return "less than a minute"
    return f"about {math.ceil(seconds / 60)} minutes" if seconds < 3600 else f"about {seconds / 3600:.1f} hours"
