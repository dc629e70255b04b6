"""What workers are given to do in tests of engines; they import this file alone."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.progress import Progress
from effort import wait_until


def double(item, report):
    report(Progress(0.5, text=f"at {item}"))
    return 2 * item


def fails(item, report):
    if item == 1:
        raise InputError("one is wrong")
    if item == 2:
        raise RuntimeError("two is a fault")
    return item


def dies(folder: Path, often: int, item, report):
    """Is killed the first `often` times that it is given item 3."""
    if item == 3:
        before = len(list(folder.iterdir()))
        if before < often:
            (folder / str(before)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    return item


def always_dies(item, report):
    os.kill(os.getpid(), signal.SIGKILL)


def who(item, report):
    return os.getpid(), os.environ["OMP_NUM_THREADS"]


def who_with_another(folder: Path, item, report):
    """Ends when another process, too, is at work in the folder."""
    (folder / str(os.getpid())).touch()
    wait_until(lambda: len(list(folder.iterdir())) > 1)
    return who(item, report)


def slow(item, report):
    Path(item).write_text(str(os.getpid()))
    time.sleep(3600)


def slow_or_quick(item, report):
    is_slow, place = item
    if is_slow:
        slow(place, report)
    wait_until(lambda: place.exists() and place.read_text())
