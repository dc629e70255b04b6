"""`accuacl sweep`, and what `accuacl paper` shares with it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import MofNCompleteColumn, TimeRemainingColumn
from rich.table import Table

from accuacl.cli.app import app, console, progress
from accuacl.experiment import Config
from accuacl.experiment import config as settings
from accuacl.experiment.config import canonical
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.record import Row
from accuacl.experiment.record import settings as settings_of
from accuacl.report.groups import make_groups, show
from accuacl.scale import engines
from accuacl.scale.sweep import ALIASES, Cell, Outcome, cells
from accuacl.scale.sweep import sweep as run_sweep

SHOWN = 15  # rows of the live table

Only = Annotated[
    list[str] | None, typer.Option("--only", help="Narrow it: key=value or key=a,b; repeat to narrow further.")
]
Workers = Annotated[int, typer.Option(min=0, help="Runs at a time, one thread each; 0: as many as there are cores.")]
EngineName = Annotated[str, typer.Option("--engine", help="Where runs go on: local (processes) or ray.")]
Address = Annotated[str | None, typer.Option(help="Ray: the cluster's address; unset: one on this machine.")]
Gpus = Annotated[float, typer.Option(min=0, help="Ray: the share of a GPU that each run takes, like 0.5.")]
Results = Annotated[Path | None, typer.Option(help="The table of results (OUT/results.csv); runs in it are skipped.")]
DataDir = Annotated[Path | None, typer.Option(help="Where the data lies; also the environment variable ACCUACL_DATA.")]
Plugin = Annotated[list[Path] | None, typer.Option(help="A Python file with strategies of your own; may be repeated.")]


@app.command()
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
    """Do a grid of runs, in parallel, only what is missing, into one table.

    A file is as simple as `benchmark: split-digits`, `strategy: [uniform, accuacl]`, `seeds: [0, 1, 2]`. Given again,
    the same command goes on where it was. A run that fails is reported at the end and does not stop the others.
    """
    load_plugins(plugin or ())
    wanted = narrow(cells(settings.read(file), data_dir=data_dir), only or [])
    out = out or Path("runs") / file.stem
    table = results or out / "results.csv"
    with engines.get(engine, workers, address, gpus) as chosen:
        outcome = perform(wanted, out, table, chosen, data_dir, plugin or ())
    tell_failures(outcome)


def tell_failures(outcome: Outcome) -> None:
    """Each reason once, with the first run that it befell; exit code 1 if there is any."""
    for why in sorted(set(outcome.failed.values())):
        names = [name for name, reason in outcome.failed.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        console.print(f"[red]failed:[/red] {escape(names[0])}{more}: {escape(why)}")
    if outcome.failed:
        raise typer.Exit(1)


def narrow(wanted: Sequence[Cell], only: Sequence[str]) -> list[Cell]:
    """The cells that all `key=value` conditions let through."""
    chosen = list(wanted)
    for condition in only:
        key, equals, text = condition.partition("=")
        key = ALIASES.get(key, key)
        if not equals or key not in Config.model_fields:
            raise ValueError(f"--only {condition}: give key=value with a setting's name, like strategy=accuacl.")
        there = dict.fromkeys(getattr(cell.config, key) for cell in wanted)
        values = set()
        for word in text.split(","):
            if not (meant := _meant(word, there)):
                known = ", ".join(map(show, there))
                raise ValueError(f"--only {condition}: there is no {key} {word} here, only {known}.")
            values |= meant
        chosen = [cell for cell in chosen if getattr(cell.config, key) in values]
    if not chosen:
        raise ValueError(f"--only {' --only '.join(only)} leaves no run; give less.")
    return chosen


def _meant(word: str, values: Iterable[Any]) -> set[Any]:
    """The values that a word stands for: the one it spells, or fractions that it rounds.

    >>> _meant("0", [0.0, 0.5]), _meant("0.667", [0.5, 2 / 3]), _meant("unset", [None, 0.5]), _meant("1000", [1001])
    ({0.0}, {0.6666666666666666}, {None}, set())
    """
    spelt = {value for value in values if word in (str(value), show(value))}
    try:
        number = float(word)
    except ValueError:
        return spelt
    numbers = [value for value in values if isinstance(value, int | float)]
    spelt |= {value for value in numbers if value == number}
    return spelt or {
        value for value in numbers if isinstance(value, float) and math.isclose(value, number, rel_tol=1e-3)
    }


def perform(
    wanted: Sequence[Cell], out: Path, table: Path, engine: Any, data_dir: Path | None, plugins: Sequence[Path]
) -> Outcome:
    """Do the runs and show how it goes: one bar for all, and the cells finished so far."""
    finished: list[tuple[Cell, Row | None, str]] = []
    reasons: set[str] = set()
    bar = progress(MofNCompleteColumn(), TimeRemainingColumn())
    job = None
    with Live(bar, console=console, transient=True, refresh_per_second=4) as live:

        def tell(done: float, text: str) -> None:
            nonlocal job
            if job is None:  # what was there before says nothing about how fast it goes
                job = bar.add_task("", total=len(wanted), completed=int(done))
            bar.update(job, completed=done, description=escape(text))

        def end(cell: Cell, row: Row | None, why: str) -> None:
            finished.append((cell, row, why))
            if console.is_terminal:
                live.update(Group(_finished(finished[-SHOWN:]), bar))
            elif row is not None:
                told = f"A {row['average_accuracy']:.2f} F {row['forgetting']:.2f}"
                print(f"{len(finished)} {cell.name}: {told}", flush=True)
            elif why not in reasons:
                print(f"{len(finished)} {cell.name}: {why}", flush=True)
            reasons.add(why)

        def warn(text: str) -> None:
            live.console.print(f"[yellow]note:[/yellow] {escape(text)}")

        outcome = run_sweep(
            wanted, out, table, engine, data_dir=data_dir, plugins=plugins, tell=tell, done=end, warn=warn
        )
    console.print(_means(outcome.rows))
    console.print(f"[dim]{len(outcome.rows)} of {len(wanted)} runs; the table is {escape(str(table))}[/dim]")
    return outcome


def _finished(ends: Sequence[tuple[Cell, Row | None, str]]) -> Table:
    table = Table("finished", "A (%)", "F (%)", "minutes")
    for cell, row, why in ends:
        if row is None:
            table.add_row(escape(cell.name), f"[red]{escape(why[:60])}[/red]", "", "")
        else:
            minutes = sum(row[f"seconds_{kind}"] for kind in ("query", "train", "evaluate", "load")) / 60
            numbers = (row["average_accuracy"], row["forgetting"], minutes)
            table.add_row(escape(cell.name), *(f"{number:.1f}" for number in numbers))
    return table


def _means(rows: Sequence[Row]) -> Table:
    """Accuracy and forgetting of each setting, mean and deviation over its seeds."""
    table = Table(title="Results")
    for name in ("cell", "learner", "strategy", "runs", "A (%)", "F (%)", "LA (%)"):
        table.add_column(name, overflow="fold", no_wrap=name.endswith("(%)"))
    for group in make_groups(row | canonical(settings_of(row)) for row in rows):
        numbers = []
        for metric in ("average_accuracy", "forgetting", "learning_accuracy"):
            stat = group.stat(metric)
            spread = f" ±{stat.std:.1f}" if stat and stat.std is not None else ""
            numbers.append(f"{stat.mean:.1f}{spread}" if stat else "-")
        names = (group.title, group.learner, group.strategy)
        table.add_row(*map(escape, names), str(len(group.rows)), *numbers)
    return table
