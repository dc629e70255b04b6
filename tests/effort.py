"""How thorough the tests are, as usual (`make test`) or long (`make test-long`), and how they wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import settings

LONG = os.environ.get("ACCUACL_TESTS") == "long"


def times(usual: int, long: int) -> int:
    """How often to do something."""
    return long if LONG else usual


def wait_until(happened: Callable[[], object], seconds: float = 300) -> None:
    """Wait for an event; the seconds are there only so that no test hangs for ever."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, f"it did not happen within {seconds} seconds"
        time.sleep(0.02)


def examples(usual: int, long: int) -> Any:
    """How many examples Hypothesis tries; on a busy machine each may take any time."""
    return settings(max_examples=times(usual, long), deadline=None)
