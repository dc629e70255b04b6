"""What `sweep` and `paper` show: how far the runs are, those that have ended, their means, and what failed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.table import Column, Table
from rich.text import Text

from accuacl import report
from accuacl.base.progress import Progress
from accuacl.cli.screen import console, duration, errors, progress_bar
from accuacl.engines import Engine
from accuacl.experiment import Row, canonical
from accuacl.experiment import row_settings as settings_of
from accuacl.sweeps import ERROR_FILE, Outcome, SweepRun, titles

OTHER_LINES = 7  # of the screen: the bar, the live table's frame and head, notes


def run_and_show(
    runs: Sequence[SweepRun], out: Path, table: Path, engine: Engine, data_dir: Path | None, plugins: Sequence[Path]
) -> Outcome:
    """Do the runs that are missing; draw one bar for all of them, and below it those that have ended."""
    from accuacl.sweeps import run_missing  # loads torch

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

    def draw(self, progress: Progress) -> None:
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
    for group in report.make_groups(row | canonical(settings_of(row)) for row in rows):
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
