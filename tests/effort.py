"""How thorough the tests are, as usual (`make test`) or long (`make test-long`), and how they wait."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accuacl.experiments.networks import WHEELS, is_installed

PATIENCE = float(os.environ.get("ACCUACL_PATIENCE", "300"))  # seconds; a busy machine is slow
LONG = os.environ.get("ACCUACL_TESTS") == "long"


def times(usual: int, long: int) -> int:
    """How often to do something."""
    return long if LONG else usual


def wait_until(happened: Callable[[], object], process: subprocess.Popen[Any] | None = None) -> None:
    """Wait for an event, which `process` must cause before it ends; PATIENCE is there only so that no test hangs."""
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, f"it did not happen within {PATIENCE} seconds"
        assert process is None or process.poll() is None or happened(), "the process ended before it happened"
        time.sleep(0.005)


def has_pretrained() -> bool:
    """Whether the extra `label` is installed."""
    return all(map(is_installed, WHEELS))


def gone(pid: int) -> bool:
    """Whether the process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def examples(usual: int, long: int) -> Any:
    """How many examples Hypothesis tries; on a busy machine each may take any time."""
    from hypothesis import settings  # not above: workers of tests import this file too

    return settings(max_examples=times(usual, long), deadline=None)
