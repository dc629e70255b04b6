"""What the commands share: the app they belong to, the console, progress bars."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

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
    """A bar with the task's description, time spent, and what else is wanted."""
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
