"""One way to tell how far a piece of work is, for the terminal, the page and sweeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """`done` of `total`, and in `text` what people read. Code reads the other fields, never the text.

    >>> Progress(1, 4, "choosing").share
    0.25
    """

    done: float
    total: float = 1.0
    text: str = ""
    stage: str = ""  # what is being done: decoding, preparing, choosing, training, testing
    epochs: tuple[int, int] | None = None  # of this training: how many are done, of how many
    item: str = ""  # which of several things it is about, such as a run of a sweep
    work: float | None = None  # the share of the work done since the start, where items differ in their cost

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return self.done / self.total if self.total else 1.0


OnProgress = Callable[[Progress], None]
Tick = Callable[[int], None]  # told how much more has been done


def ignore(progress: Progress) -> None:
    """For work whose progress nobody wants to know."""


def ticker(total: float, on_progress: OnProgress | None, text: str = "") -> Tick:
    """A function that adds up what it is told has been done, and reports it.

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
    """A function that is told of `steps` in all and tells `tick` of `total` in all, in the same proportion.

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
