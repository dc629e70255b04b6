"""One way to report progress, for the terminal, the page and sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accuacl.base.errors import InputError


@dataclass(frozen=True)
class Progress:
    """`done` of `total`. `text` is for people; code reads the other fields, never the text.

    >>> Progress(1, 4, "choosing").share
    0.25
    """

    done: float
    total: float = 1.0
    text: str = ""
    stage: str = ""  # what is being done: decoding, preparing, choosing, training, testing
    epochs: tuple[int, int] | None = None  # of this training: how many are done, and how many there are
    step: float | None = None  # how much of this choice of examples is done, from 0 to 1, where that is known
    item: str = ""  # which of several items it is about, such as a run of a sweep
    work: float | None = None  # the share of the work done, where items differ in their cost

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return self.done / self.total if self.total else 1.0


OnProgress = Callable[[Progress], None]
Tick = Callable[[int], None]  # called with how much more has been done


def check_progress(progress: OnProgress | None) -> None:
    """Raise InputError if `progress` is not callable.

    >>> check_progress(True)
    Traceback (most recent call last):
    accuacl.base.errors.InputError: progress is True; give a function, which is called with a `Progress`, or None.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; give a function, which is called with a `Progress`, or None.")


def ignore(progress: Progress) -> None:
    """Ignore progress."""


def ticker(total: float, on_progress: OnProgress | None, text: str = "") -> Tick:
    """A function that adds up the amounts it is called with and reports the sum as progress.

    >>> tick = ticker(10, lambda progress: print(progress.done, "of", progress.total))
    >>> tick(4)
    4 of 10
    """
    done = 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        if on_progress:
            on_progress(Progress(done, total, text))

    return tick


def portion(tick: Tick, total: int, steps: int) -> Tick:
    """A function to be called for `steps` in all, which calls `tick` in proportion, for `total` in all.

    >>> part = portion(ticker(3, lambda progress: print(progress.done)), 3, 9)
    >>> part(5), part(4)
    1
    3
    (None, None)
    """
    done = 0

    def part(more: int) -> None:
        nonlocal done
        tick(total * (done + more) // steps - total * done // steps)
        done += more

    return part
