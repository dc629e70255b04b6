"""Learning in the background: one thread that takes the project on whenever there is something to take on."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from accuacl.base.progress import Progress
from accuacl.labeling.project import Project

EVERY = 2.0  # seconds between looks: data may be added, and rounds completed, by other processes
GRACE = 2.0  # seconds in which the last label of a round can still be undone


class _Stopped(Exception):
    """The server is going; what is recorded stays, and the next start goes on from there."""


@dataclass(frozen=True)
class Activity:
    """What the trainer is doing now. done: from 0 to 1, None if it cannot be said; trouble: why it cannot go on."""

    busy: bool = False
    text: str = ""
    done: float | None = None
    trouble: str = ""


class Trainer:
    """Calls `project.advance` when a round is complete or data have been added; `now` says what it is at."""

    def __init__(self, project: Project, every: float = EVERY, grace: float = GRACE) -> None:
        self.project, self.every, self.grace = project, every, grace
        self.now = Activity()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="trainer", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, wait: float = 10.0) -> bool:
        """Leave off at the next step of the training; whether it has, within so many seconds."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(wait)
        return not self._thread.is_alive()

    def poke(self) -> None:
        """Look now."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = self.every
            try:
                self._look()
                self.now = Activity()
            except _Stopped:
                return
            except Exception as error:  # it must not end silently: the page says what is wrong, and it tries again
                self.now = Activity(trouble=str(error) or type(error).__name__)
                pause = 5 * self.every
            self._wake.wait(pause)
            self._wake.clear()

    def _look(self) -> None:
        if not self._ready():
            return
        status = self.project.store.status()
        if status is not None and status.open and self._stopping.wait(self.grace):
            return
        if not self._ready():  # undone in the meantime
            return
        self.now = Activity(busy=True, text="starting")
        self.project.advance(self._report)

    def _ready(self) -> bool:
        return self.project.state().ready

    def _report(self, progress: Progress) -> None:
        if self._stopping.is_set():
            raise _Stopped
        self.now = Activity(busy=True, text=progress.text, done=_part(progress))


def _part(progress: Progress) -> float | None:
    """How far this training is: the loop counts all rounds of all tasks, people wait for one."""
    if progress.stage == "preparing":
        return progress.share
    return progress.epochs[0] / progress.epochs[1] if progress.stage == "training" and progress.epochs else None
