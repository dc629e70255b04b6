"""Training in the background: a thread that advances the project whenever a round is complete or data have come."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from accuacl.base.errors import InputError
from accuacl.base.progress import Progress
from accuacl.labeling.project import Project, load_learning
from accuacl.labeling.web.site import capital, describe

log = logging.getLogger(__name__)
EVERY = 2.0  # seconds between checks: other processes may add data and complete rounds too
PATIENCE = 600.0  # seconds that others wait for a training to end
GRACE = 2.0  # seconds in which the last label of a round can still be undone


class _Stopped(Exception):
    """The server is stopping; finished steps are recorded, and the next start continues from there."""


@dataclass(frozen=True)
class Activity:
    """What the trainer is doing. done: from 0 to 1, None if unknown; trouble: why it cannot go on."""

    busy: bool = False
    text: str = ""
    stage: str = ""  # as in `Progress`
    done: float | None = None
    trouble: str = ""


class Trainer:
    """Calls `project.advance` when a round is complete or data have been added; `now` says what it is doing."""

    def __init__(self, project: Project, every: float = EVERY, grace: float = GRACE) -> None:
        self.project, self.every, self.grace = project, every, grace
        self.now = Activity()
        self.alone = threading.Lock()  # held while it works: nothing else may change what is learned meanwhile
        self._logged, self._pace = "", Pace()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="trainer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, wait: float = 10.0) -> bool:
        """Stop at the next report of progress; True if it did within `wait` seconds."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(wait)
        return not self._thread.is_alive()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """No training within the block; then it checks for work. InputError: it is busy for too long."""
        if not self.alone.acquire(timeout=PATIENCE):
            raise InputError("the model is still learning; try again when it is done.")
        try:
            yield
        finally:
            self.alone.release()
            self.poke()

    def poke(self) -> None:
        """Check now."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            pause = self.every
            try:
                with self.alone:
                    self._check()
                self.now = Activity()
            except _Stopped:
                return
            except Exception as error:  # the thread goes on: the page shows the trouble, and it tries again
                trouble = describe(error, self.project)
                if not isinstance(error, InputError) and trouble != self._logged:  # once, however often it is tried
                    self._logged = trouble
                    log.exception("training failed; it is tried again every %g s", 5 * self.every)
                self.now = Activity(trouble=trouble)
                pause = 5 * self.every
            self._wake.wait(pause)
            self._wake.clear()

    def _check(self) -> None:
        if not self.project.state().ready:
            self.project.choose_ahead()
            return
        status = self.project.store.status()
        if status is not None and status.open and self._wait_for_undo():
            return
        if not self.project.state().ready:  # someone has undone the last label meanwhile
            return
        self.now = Activity(busy=True, text="Starting")
        self.project.give_out_first()  # so that people have something to do meanwhile
        load_learning()
        self.project.advance(self._report, ahead=True)

    def _wait_for_undo(self) -> bool:
        """Leave some time to undo the last label; True if the server is stopping."""
        return self._stopping.wait(self.grace)

    def _report(self, progress: Progress) -> None:
        if self._stopping.is_set():
            raise _Stopped
        text, done = self._describe(progress)
        self.now = Activity(True, capital(text), progress.stage, done)

    def _describe(self, progress: Progress) -> tuple[str, float | None]:
        """What it is doing, and the share of that which is done, not of all tasks and rounds."""
        if progress.stage == "preparing":
            text = f"{progress.done:,.0f} of {progress.total:,.0f} examples are prepared"
            rate = self._pace.rate(progress)
            if rate is not None:
                text += f", {rate:,.3g} a second, {about((progress.total - progress.done) / rate)} left"
            return text, progress.share
        if progress.stage == "choosing":
            return "choosing the next examples", progress.step
        if progress.stage != "training":
            return progress.text, None
        epoch, epochs = progress.epochs or (0, 0)
        return (f"epoch {epoch} of {epochs}", epoch / epochs) if epochs > 1 else ("", None)


ENOUGH = 3.0  # seconds of work from which the rest is judged


class Pace:
    """How fast a stage goes, since the first report of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._stage: tuple[str, float] | None = None
        self._began, self._before = 0.0, 0.0  # when it was first heard of, and how much was done then

    def rate(self, progress: Progress) -> float | None:
        """How much is done in a second; None while nobody can know."""
        now, stage = self._clock(), (progress.stage, progress.total)
        if stage != self._stage or progress.done < self._before:
            self._stage, self._began, self._before = stage, now, progress.done
        spent, done = now - self._began, progress.done - self._before
        return done / spent if done and spent >= ENOUGH else None


def about(seconds: float) -> str:
    """A duration as people say it.

    >>> about(20), about(61), about(700), about(5000)
    ('less than a minute', 'about 2 minutes', 'about 12 minutes', 'about 1.4 hours')
    """
    if seconds < 60:
        return "less than a minute"
    return f"about {math.ceil(seconds / 60)} minutes" if seconds < 3600 else f"about {seconds / 3600:.1f} hours"
