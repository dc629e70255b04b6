"""`accuacl sweep`, and what `accuacl paper` shares with it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import MofNCompleteColumn, ProgressColumn, Task
from rich.table import Column, Table
from rich.text import Text

from accuacl import engines
from accuacl.base.progress import Progress
from accuacl.cli.only import narrow
from accuacl.cli.options import Address, DataDir, EngineName, Gpus, Only, Plugin, Results, Workers
from accuacl.cli.screen import console, duration, progress_bar
from accuacl.experiment import config as settings
from accuacl.experiment.config import canonical
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.record import Row
from accuacl.experiment.record import settings as settings_of
from accuacl.report import make_groups
from accuacl.sweeps.sweep import ERROR, Cell, Outcome, cells, labels
from accuacl.sweeps.sweep import sweep as run_sweep

OTHER_LINES = 7  # of the screen: the bar, the live table's frame and head, notes


def sweep(
    file: Annotated[Path, typer.Argument(help="YAML: settings of runs; those that are lists span the grid.")],
    out: Annotated[Path | None, typer.Option(help="Directory of the runs (runs/NAME-OF-FILE).")] = None,
    results: Results = None,
    only: Only = None,
    workers: Workers = 0,
    engine: EngineName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
    data_dir: DataDir = None,
    plugin: Plugin = None,
) -> None:
    """Do a grid of runs in parallel, only those that are missing, into one table.

    A file is as simple as `benchmark: split-digits`, `strategy: [uniform, accuacl]`, `seeds: [0, 1, 2]`. Given again,
    the same command goes on where it was. A run that fails is reported at the end and does not stop the others.
    """
    load_plugins(plugin or ())
    wanted = narrow(cells(settings.read(file), data_dir=data_dir), only or [], setting)
    out = out or Path("runs") / file.stem
    table = results or out / "results.csv"
    with engines.get(engine, workers, address, gpus) as chosen:
        outcome = perform(wanted, out, table, chosen, data_dir, plugin or ())
    tell_failures(outcome, out)


def setting(cell: Cell, name: str) -> Any:
    """One of the cell's settings."""
    return getattr(cell.config, name)


def tell_failures(outcome: Outcome, out: Path) -> None:
    """Each reason once, with the first run that it befell and its traceback; exit code 1 if there is any."""
    for why in sorted(set(outcome.failed.values())):
        names = [name for name, reason in outcome.failed.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        trace = out / names[0] / ERROR
        where = f" (where: {trace})" if trace.exists() else ""
        console.print(f"[red]failed:[/red] {escape(names[0])}{more}: {escape(why + where)}", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(1)


def perform(
    wanted: Sequence[Cell], out: Path, table: Path, engine: Any, data_dir: Path | None, plugins: Sequence[Path]
) -> Outcome:
    """Do the runs and show how it goes: one bar for all, and the cells finished so far."""
    finished: list[tuple[str, Row | None, str]] = []
    reasons: set[str] = set()
    names, before = labels(wanted), 0
    bar, left = progress_bar(MofNCompleteColumn(), LeftColumn()), Left()
    job = bar.add_task("", total=len(wanted), left=left)
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def tell(progress: Progress) -> None:
            nonlocal before
            if not progress.item:
                before = int(progress.done)
            left.tell(progress.work or 0.0)
            where = f"{names[progress.item]}: " if progress.item else ""
            bar.update(job, completed=progress.done, description=escape(where + progress.text))

        def end(cell: Cell, row: Row | None, why: str) -> None:
            finished.append((names[cell.name], row, why))
            count = f"{before + len(finished)}/{len(wanted)}"
            if console.is_terminal:
                live.update(Group(bar, _finished(finished, console.height - OTHER_LINES)))
            elif row is not None:
                told = f"A {row['average_accuracy']:.2f} F {row['forgetting']:.2f}"
                print(f"{count} {cell.name}: {told}", flush=True)
            elif why not in reasons:
                print(f"{count} {cell.name}: {why}", flush=True)
            reasons.add(why)

        def warn(text: str) -> None:
            live.console.print(f"[yellow]note:[/yellow] {escape(text)}")

        outcome = run_sweep(
            wanted, out, table, engine, data_dir=data_dir, plugins=plugins, tell=tell, done=end, warn=warn
        )
    console.print(_means(outcome.rows))
    console.print(f"[dim]{len(outcome.rows)} of {len(wanted)} runs; the table is {escape(str(table))}[/dim]")
    return outcome


class Left:
    """The time left, from the share of this start's work that has been done in it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock, self.begun, self.ends = clock, clock(), math.inf

    def tell(self, share: float) -> None:
        now = self.clock()
        if share <= 0:  # decoding images says nothing about runs
            self.begun = now
        else:
            self.ends = now + (now - self.begun) * (1 - share) / share

    def seconds(self) -> float:
        return max(0.0, self.ends - self.clock())


class LeftColumn(ProgressColumn):
    """What a task's `left` says."""

    def render(self, task: Task) -> Text:
        seconds = task.fields["left"].seconds()
        text = "-:--:--" if math.isinf(seconds) else str(timedelta(seconds=int(seconds)))
        return Text(f"left {text}", style="progress.remaining")


def _finished(ends: Sequence[tuple[str, Row | None, str]], most: int) -> Table:
    table = Table(
        Column("finished", ratio=1, no_wrap=True), "A (%)", "F (%)", Column("time", no_wrap=True), expand=True
    )
    for name, row, why in ends[-max(1, most) :]:
        if row is None:
            table.add_row(f"{escape(name)}: [red]{escape(why)}[/red]", "", "", "")
        else:
            seconds = sum(row[f"seconds_{kind}"] for kind in ("query", "train", "evaluate", "load"))
            numbers = [f"{row[metric]:.1f}" for metric in ("average_accuracy", "forgetting")]
            table.add_row(escape(name), *numbers, duration(seconds))
    return table


def _means(rows: Sequence[Row]) -> Group:
    """Accuracy and forgetting of each setting, mean and deviation over its seeds, a table a cell."""
    tables: dict[str, Table] = {}
    for group in make_groups(row | canonical(settings_of(row)) for row in rows):
        numbers = []
        for metric in ("average_accuracy", "forgetting", "learning_accuracy"):
            value = group.mean_std(metric)
            spread = f" ±{value.std:.1f}" if value and value.std is not None else ""
            numbers.append(f"{value.mean:.1f}{spread}" if value else "-")
        table = tables.setdefault(group.title, Table("learner", Column("strategy", ratio=1), expand=True))
        if not table.row_count:
            for name in ("runs", "A (%)", "F (%)", "LA (%)"):
                table.add_column(name, no_wrap=True, justify="right", min_width=len("00.0 ±00.0") if "%" in name else 0)
        table.add_row(escape(group.learner), escape(group.strategy), str(len(group.rows)), *numbers)
    return Group(*(part for title, table in tables.items() for part in (escape(title), table)))
