"""What commands draw with: the console, progress bars, notes, durations."""

from __future__ import annotations

import math
import os
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from accuacl.base.progress import OnProgress, Progress as ProgressEvent
from accuacl.engines import Engine
from accuacl.experiments import Row, report, shown_settings
from accuacl.experiments.sweeps import ERROR_FILE, Outcome, SweepRun, titles

PIPED = 500  # columns where no terminal says how many there are; nothing of ours is wider
console = Console()
errors = Console(stderr=True)
if not console.is_terminal and "COLUMNS" not in os.environ:
    console.width = PIPED
    if not errors.is_terminal:
        errors.width = PIPED


def progress_bar(*more: ProgressColumn) -> Progress:
    """A bar, the time spent, `more` columns, and the task's description, cut where the line ends.

    Where the output goes to a file or another program, the bar is drawn where errors are, if that is a terminal.
    """
    text = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))
    columns = (BarColumn(24), *more, TimeElapsedColumn(), text)
    where = console if console.is_terminal else errors
    return Progress(*columns, console=where, transient=True, expand=True, disable=not where.is_terminal)


@contextmanager
def drawn(*more: ProgressColumn) -> Iterator[OnProgress]:
    """A function that draws the progress it is told. Meanwhile Python's warnings are shown as notes."""
    with warnings.catch_warnings(), progress_bar(*more) as bar:
        warnings.showwarning = lambda message, *_, **__: console.print(f"[yellow]note:[/yellow] {escape(str(message))}")
        job = bar.add_task("starting", total=None)
        yield lambda progress: bar.update(
            job, completed=progress.done, total=progress.total, description=escape(progress.text)
        )


def command(*words: object) -> str:
    """A command of accuacl, to be printed, which a shell takes as it stands.

    >>> command("report", "my runs")
    "[bold]accuacl report 'my runs'[/bold]"
    """
    return f"[bold]{escape(shlex.join(['accuacl', *map(str, words)]))}[/bold]"


def duration(seconds: float) -> str:
    """In the unit that suits it.

    >>> duration(0.004), duration(42), duration(90), duration(5400), duration(1e6)
    ('0.00 s', '42 s', '1.5 min', '1.5 h', '278 h')
    """
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:,.{int(seconds < 10 * size)}f} {unit}"
    return f"{seconds:.{0 if seconds >= 10 else 1 if seconds >= 1 else 2}f} s"


OTHER_LINES = 7  # of the screen: the bar, the live table's frame and head, notes


def run_and_show(
    runs: Sequence[SweepRun], out: Path, table: Path, engine: Engine, data_dir: Path | None, plugins: Sequence[Path]
) -> Outcome:
    """Do the runs that are missing; draw one bar for all of them, and below it those that have ended."""
    from accuacl.experiments.sweeps import run_missing  # loads torch

    bar = progress_bar(MofNCompleteColumn(), TimeLeftColumn())
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:
        screen = _Screen(runs, bar, live)
        outcome = run_missing(
            runs,
            out,
            table,
            engine,
            data_dir=data_dir,
            plugins=plugins,
            on_progress=screen.draw,
            on_end=screen.end,
            on_note=lambda text: live.console.print(f"[yellow]note:[/yellow] {escape(text)}"),
        )
    console.print(_means(outcome.rows))
    where = f"; the table is {escape(str(table))}" if table.exists() else ""
    console.print(f"[dim]{len(outcome.rows)} of {len(runs)} runs{where}[/dim]")
    return outcome


def print_failures(outcome: Outcome, out: Path) -> None:
    """Each reason once, with the first run that failed for it and its traceback; exit code 1 if there is any."""
    for why in sorted(set(outcome.failed.values())):
        names = [name for name, reason in outcome.failed.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        trace = out / names[0] / ERROR_FILE
        where = f" (where: {trace})" if trace.exists() else ""
        errors.print(f"[red]failed:[/red] {escape(names[0])}{more}: {escape(why + where)}", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(1)


class _Screen:
    """On a terminal a bar and a table of the runs that have ended; elsewhere a line for each of them."""

    def __init__(self, runs: Sequence[SweepRun], bar: Any, live: Live) -> None:
        self.titles, self.total, self.bar, self.live = titles(runs), len(runs), bar, live
        self.before = 0  # runs that were done before this start
        self.ended: list[tuple[str, Row | None, str]] = []
        self.left = TimeLeft()
        self.job = bar.add_task("", total=len(runs), left=self.left)

    def draw(self, progress: ProgressEvent) -> None:
        if not progress.item:
            self.before = int(progress.done)
        self.left.tell(progress.work or 0.0)
        which = f"{self.titles[progress.item]}: " if progress.item else ""
        self.bar.update(self.job, completed=progress.done, description=escape(which + progress.text))

    def end(self, run: SweepRun, row: Row | None, why: str) -> None:
        told = {reason for _, _, reason in self.ended}
        self.ended.append((self.titles[run.name], row, why))
        count = f"{self.before + len(self.ended)}/{self.total}"
        if console.is_terminal:
            self.live.update(Group(self.bar, _ended_runs(self.ended, console.height - OTHER_LINES)))
        elif row is not None:
            numbers = f"A {row['average_accuracy']:.2f} F {row['forgetting']:.2f}"
            print(f"{count} {run.name}: {numbers}", flush=True)
        elif why not in told:
            print(f"{count} {run.name}: {why}", flush=True)


class TimeLeft:
    """The time left, from the share of this start's work that has been done in it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.begun, self.ends = clock, clock(), math.inf

    def tell(self, share: float) -> None:
        now = self.clock()
        if share <= 0:  # how fast images are decoded says nothing about runs
            self.begun = now
        else:
            self.ends = now + (now - self.begun) * (1 - share) / share

    def seconds(self) -> float:
        return max(0.0, self.ends - self.clock())


class TimeLeftColumn(ProgressColumn):
    """What a task's `left` says."""

    def render(self, task: Task) -> Text:
        seconds = task.fields["left"].seconds()
        text = "-:--:--" if math.isinf(seconds) else str(timedelta(seconds=int(seconds)))
        return Text(f"left {text}", style="progress.remaining")


def _ended_runs(ended: Sequence[tuple[str, Row | None, str]], most: int) -> Table:
    """The last runs that have ended, at most so many."""
    table = Table(
        Column("finished", ratio=1, no_wrap=True), "A (%)", "F (%)", Column("time", no_wrap=True), expand=True
    )
    for title, row, why in ended[-max(1, most) :]:
        if row is None:
            table.add_row(f"{escape(title)}: [red]{escape(why)}[/red]", "", "", "")
        else:
            seconds = sum(row[f"seconds_{kind}"] for kind in ("query", "train", "evaluate", "load"))
            numbers = [f"{row[metric]:.1f}" for metric in ("average_accuracy", "forgetting")]
            table.add_row(escape(title), *numbers, duration(seconds))
    return table


def _means(rows: Sequence[Row]) -> Group:
    """Mean and deviation over seeds of each learner and strategy; one table for all that can be compared."""
    tables: dict[str, Table] = {}
    for group in report.make_groups(row | shown_settings(row) for row in rows):
        numbers = []
        for metric in ("average_accuracy", "forgetting", "learning_accuracy"):
            value = group.mean_std(metric)
            spread = f" ±{value.std:.1f}" if value and value.std is not None else ""
            numbers.append(f"{value.mean:.1f}{spread}" if value else "-")
        strategies = Column("strategy", ratio=1, overflow="fold", min_width=12)
        table = tables.setdefault(group.title, Table("learner", strategies, expand=console.is_terminal))
        if not table.row_count:
            for name in ("runs", "A (%)", "F (%)", "LA (%)"):
                table.add_column(name, no_wrap=True, justify="right", min_width=len("00.0 ±00.0") if "%" in name else 0)
        table.add_row(escape(group.learner), escape(group.strategy), str(len(group.rows)), *numbers)
    return Group(*(part for title, table in tables.items() for part in (escape(title), table)))
