"""What commands print with: the console, progress bars, notes, commands to be copied, durations."""

from __future__ import annotations

import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from accuacl.base.progress import OnProgress, Progress as Done

EVERY = 30.0  # seconds between progress lines without a terminal
PIPED = 500  # columns where there is no terminal; no line of ours is longer
if not os.environ.get("COLUMNS", "").strip("0"):  # as some servers have it, where nothing would be shown
    os.environ.pop("COLUMNS", None)
console = Console()
errors = Console(stderr=True)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = PIPED
    if not errors.is_terminal:
        errors.width = PIPED


def progress_bar(*more: ProgressColumn, speed_estimate_period: float = 30.0) -> Progress:
    """A bar, the time spent, `more` columns, and the task's description, cut where the line ends.

    If the output goes to a file or another program, the bar is drawn on stderr, if that is a terminal.
    """
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    columns = (BarColumn(24), *more, TimeElapsedColumn(), text)
    where = console if console.is_terminal else errors
    return Progress(
        *columns,
        console=where,
        transient=True,
        expand=True,
        disable=not where.is_terminal,
        speed_estimate_period=speed_estimate_period,
    )


@contextmanager
def drawn(*more: ProgressColumn) -> Iterator[OnProgress]:
    """A function that draws the progress it is given, or prints a line now and then without a terminal.

    Meanwhile Python's warnings are shown as notes.
    """
    with warnings.catch_warnings(), progress_bar(*more) as bar:
        warnings.showwarning = lambda message, *_, **__: console.print(f"[yellow]note:[/yellow] {escape(str(message))}")
        job, lines = bar.add_task("starting", total=None), ProgressLines()

        def draw(progress: Done) -> None:
            bar.update(job, completed=progress.done, total=progress.total, description=escape(progress.text))
            if bar.disable:
                lines.draw(progress)

        yield draw


class ProgressLines:
    """Progress as log lines on stderr, one each half minute, so that short work prints none."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.begun = clock, clock()
        self.due = self.begun + EVERY

    def draw(self, progress: Done) -> None:
        now = self.clock()
        if now >= self.due:
            self.due = now + EVERY
            line = f"{100 * progress.share:.0f} % after {duration(now - self.begun)}: {progress.text}"
            errors.print(line, markup=False, highlight=False, soft_wrap=True)


def command(*words: object) -> str:
    """A command of accuacl to print, quoted for the shell.

    >>> command("report", "my runs")
    "[bold]accuacl report 'my runs'[/bold]"
    """
    return f"[bold]{escape(shlex.join(['accuacl', *map(str, words)]))}[/bold]"


def duration(seconds: float) -> str:
    """A duration in a suitable unit.

    >>> duration(0.004), duration(42), duration(90), duration(5400), duration(1e6)
    ('0.00 s', '42 s', '1.5 min', '1.5 h', '278 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{int(seconds < 10 * size)}f} {unit}"
    return f"{seconds:.{0 if seconds >= 10 else 1 if seconds >= 1 else 2}f} s"
