"""What the commands share: the app they belong to, the console, progress bars."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

app = typer.Typer(
    name="accuacl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="What to label next, when a model must learn new classes without forgetting the old.",
)
console = Console()


def progress(*more: ProgressColumn) -> Progress:
    """A bar with time spent, what else is wanted, and the task's description, cut where the line ends."""
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    return Progress(BarColumn(24), *more, TimeElapsedColumn(), text, console=console, transient=True, expand=True)


def duration(seconds: float) -> str:
    """In the unit that suits it.

    >>> duration(0.004), duration(42), duration(90), duration(5400), duration(1e6)
    ('0.00 s', '42 s', '1.5 min', '1.5 h', '278 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{int(seconds < 10 * size)}f} {unit}"
    return f"{seconds:.{0 if seconds >= 10 else 1 if seconds >= 1 else 2}f} s"
