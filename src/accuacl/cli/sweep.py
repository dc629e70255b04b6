"""`accuacl sweep` and `accuacl paper`: grids of runs, and what the screen shows meanwhile."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.markup import escape
from rich.progress import MofNCompleteColumn, Progress as Bar, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from accuacl import engines
from accuacl.base.errors import InputError, counted
from accuacl.base.machine import cores
from accuacl.base.progress import Progress
from accuacl.cli.options import Address, DataDir, EngineName, Gpus, Only, Plugin, Results, Workers, narrow
from accuacl.cli.screen import ProgressLines, command, console, drawn, duration, errors, progress_bar
from accuacl.experiments import Row, read_yaml, report, shown_settings
from accuacl.experiments.sweeps import (
    EFFICIENCY,
    ERROR_FILE,
    RECIPES,
    SCALES,
    Outcome,
    QueryCosts,
    SweepRun,
    measure_queries,
    read_recipe,
    recipe_costs,
    recipe_runs,
    runs_of,
    write_recipe_table,
)
from accuacl.strategies import load_plugins


def sweep(
    file: Annotated[
        Path, typer.Argument(help="A YAML file with settings of `accuacl run`; those that are lists span the grid.")
    ],
    out: Annotated[Path | None, typer.Option(help="Directory of the runs (default: runs/NAME-OF-FILE).")] = None,
    data_dir: DataDir = None,
    plugin: Plugin = None,
    results: Results = None,
    only: Only = None,
    workers: Workers = 0,
    engine: EngineName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
) -> None:
    """Run a grid of settings in parallel, skip finished runs, and collect the results in one table.

    A file is as simple as `benchmark: split-digits`, `strategy: [uniform, accuacl]`, `seeds: [0, 1, 2]`. Run the same
    command again to resume. A run that fails is reported at the end and does not stop the others.
    """
    load_plugins(plugin or ())
    runs = _narrow_runs(runs_of(read_yaml(file), data_dir=data_dir), only or [])
    out = out or Path("runs") / file.stem
    with engines.get(engine, workers, address, gpus) as workplace:
        outcome = _run_and_show(runs, out, results or out / "results.csv", workplace, data_dir, plugin or ())
    _print_failures(outcome, out)
    console.print(f"with plots: {command('report', results or out)}", soft_wrap=True)


def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(RECIPES)}; or list, which shows what each costs.")],
    scale: Annotated[
        str,
        typer.Option(
            help="How large the runs are: smoke (seconds each), cpu (minutes), paper (the paper's own; for a GPU)."
        ),
    ] = "smoke",
    only: Only = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the runs (default: runs/paper-SCALE, shared by all recipes).")
    ] = None,
    results: Results = None,
    workers: Workers = 0,
    engine: EngineName = "local",
    address: Address = None,
    gpus: Gpus = 0.0,
    data_dir: DataDir = None,
    plugin: Plugin = None,
) -> None:
    """Reproduce a table or figure of the paper and write its report, our numbers beside the paper's.

    Run the same command again to resume; recipes share their runs. `accuacl paper list` shows what each costs here.
    """
    if scale not in SCALES:
        raise InputError(f"scale is {scale!r}; give one of {', '.join(SCALES)}.")
    own = load_plugins(plugin or ())
    usual_out = Path("runs") / f"paper-{scale}"
    folder = out or usual_out
    table, own_table = results or folder / "results.csv", folder / f"{name}.csv"
    elsewhere: dict[str, object] = {"engine": engine != "local", "address": address, "gpus": gpus}
    if name == "list":
        _refuse("list takes no --{}: it says what whole recipes cost here", only=only, **elsewhere)
        _print_costs(scale, table, own, workers or cores())
        return
    recipe = read_recipe(name)
    if name == EFFICIENCY:
        why = "efficiency takes no --{}: it times the usual strategies here, one by one"
        _refuse(why, results=results, workers=workers, plugin=plugin, **elsewhere)
        _measure_queries(recipe, scale, folder, only or [])
        return
    every = recipe_runs(recipe, scale, own, data_dir)
    runs = _narrow_runs(every, only or [])
    if table.resolve() == own_table.resolve():
        raise InputError(f"{table} gets the recipe's own rows and no others; give another --results.")
    with engines.get(engine, workers, address, gpus) as workplace:
        outcome = _run_and_show(runs, folder, table, workplace, data_dir, plugin or ())
    shown = write_recipe_table(every, table, own_table)  # also runs that were done before
    if shown:
        narrowed = only if shown <= {run.key for run in runs} else None
        options = {"scale": scale, "only": narrowed, "out": out if out != usual_out else None}
        command = _command(name, options | {"results": results, "data-dir": data_dir, "plugin": plugin})
        notices = [f"{len(shown):,} of the {len(every):,} runs of this recipe."] if len(shown) < len(every) else []
        notices += [f"Failed: {why}" for why in sorted(set(outcome.failed.values()))]
        page = folder / f"{name}.html"
        report.write([own_table], page, title=recipe["title"], command=command, notices=notices)
        console.print(f"report: {escape(str(page))}")
    _print_failures(outcome, folder)


def _refuse(why: str, **given: object) -> None:
    """Refuse options that would be ignored."""
    for option in (name for name, value in given.items() if value):
        raise InputError(f"{why.format(option)}; leave it out.")


def _command(name: str, options: Mapping[str, Any]) -> str:
    """The command line with these options; those that are lists are repeated.

    >>> _command("main", {"scale": "cpu", "only": ["seed=0", "memory=5"], "out": None})
    'accuacl paper main --scale cpu --only seed=0 --only memory=5'
    """
    words = ["accuacl", "paper", name]
    for option, given in options.items():
        for value in given if isinstance(given, list) else [given]:
            words += [f"--{option}", str(value)] if value else []
    return shlex.join(words)


def _print_costs(scale: str, table: Path, own: Sequence[str], workers: int) -> None:
    """The runs of each recipe, those that are done, and the time of the others."""
    with drawn() as draw:
        costs = recipe_costs(scale, table, own, workers, draw)
    note = "From the measured speed of training and of looking at pools; what BAIT's queries take comes on top. "
    note += f"Done: in {table}; the time is that of the others."
    shown = Table(title=f"--scale {scale}", caption=escape(note))
    for head in ("recipe", "runs", "done", f"time, {counted(workers, 'core')}"):
        shown.add_column(head, no_wrap=True)
    shown.add_column("what it shows")
    for cost in costs:
        queries = cost.recipe == EFFICIENCY
        numbers = (f"{cost.count} queries", "") if queries else (str(cost.count), str(cost.done))
        time = duration(cost.seconds) if cost.done < cost.count else "-"
        shown.add_row(cost.recipe, *numbers, time, escape(cost.about))
    console.print(shown)


def _measure_queries(recipe: dict[str, Any], scale: str, out: Path, only: Sequence[str]) -> None:
    """`accuacl paper efficiency`: a table here, and a page with plots."""
    if any(not condition.startswith("strategy=") for condition in only):
        raise InputError("efficiency can be narrowed by strategy only: --only strategy=bait,accuacl.")
    strategies = narrow(recipe["strategy"], only, lambda strategy, _: strategy)
    table = out / "efficiency.csv"
    with drawn(MofNCompleteColumn()) as draw:
        costs = measure_queries(recipe, scale, strategies, table, draw)
    console.print(_cost_table(costs, recipe["title"]))
    refused = [f"{name} is left out: it needs {need / 2**30:,.1f} GiB" for name, need in costs.refused.items()]
    for text in refused:
        console.print(f"[yellow]note:[/yellow] {escape(text)}, more than there is here.")
    if not costs.totals:
        return
    machines = "; ".join(costs.machines)
    console.print(f"[dim]{escape(machines)}; seed 0; in {escape(str(table))}[/dim]")
    command = _command(EFFICIENCY, {"scale": scale, "only": list(only)})
    page = report.write([table], out / "efficiency.html", title=recipe["title"], command=command, notices=refused)
    console.print(f"report: {escape(str(page))}")


def _cost_table(costs: QueryCosts, title: str) -> Table:
    table = Table("strategy", "CPU s, all tasks", "x accuacl", "extra MiB, most", "x accuacl", title=title)
    ours = costs.totals.get("accuacl")
    for name, (seconds, most) in costs.totals.items():
        ratios = [f"{a / max(b, 1e-9):,.2f}" for a, b in zip((seconds, most), ours, strict=True)] if ours else ["", ""]
        table.add_row(name, f"{seconds:,.2f}", ratios[0], f"{most / 2**20:,.1f}", ratios[1])
    return table


def _narrow_runs(runs: Sequence[SweepRun], only: Sequence[str]) -> list[SweepRun]:
    """The runs that all conditions let through."""
    return narrow(runs, only, lambda run, name: shown_settings(run.config.model_dump())[name])


def _run_and_show(
    runs: Sequence[SweepRun],
    out: Path,
    table: Path,
    engine: engines.Engine,
    data_dir: Path | None,
    plugins: Sequence[Path],
) -> Outcome:
    """Do the missing runs; a line for each that ends, below them a bar for all."""
    from accuacl.experiments.sweeps import run_missing  # loads torch

    count = TextColumn("{task.fields[count]}")
    with progress_bar(count, TimeRemainingColumn(), speed_estimate_period=math.inf) as bar:
        screen = _Screen(len(runs), bar)
        outcome = run_missing(
            runs,
            out,
            table,
            engine,
            data_dir=data_dir,
            plugins=plugins,
            on_progress=screen.draw,
            on_end=screen.end,
            on_note=lambda text: console.print(f"[yellow]note:[/yellow] {escape(text)}"),
        )
    console.print(_means(outcome.rows))
    where = f"; the table is {escape(str(table))}" if table.exists() else ""
    console.print(f"[dim]{len(outcome.rows)} of {len(runs)} runs{where}[/dim]")
    return outcome


def _print_failures(outcome: Outcome, out: Path) -> None:
    """Each reason once, with the first run that failed for it and the file that has the traceback.

    The exit code is 1 if there is a bug among them, and 2 if the user can fix them all.
    """
    for why in sorted(set(outcome.failed.values())):
        names = [name for name, reason in outcome.failed.items() if reason == why]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        trace = out / names[0] / ERROR_FILE
        where = f" (where: {trace})" if trace.exists() else ""
        errors.print(f"[red]failed:[/red] {escape(names[0])}{more}: {escape(why + where)}", soft_wrap=True)
    if outcome.failed:
        raise typer.Exit(1 if outcome.bugs else 2)


class _Screen:
    """A bar for all runs, as long as the share of the work that is done, and a line for each run that ends."""

    def __init__(self, total: int, bar: Bar) -> None:
        self.total, self.bar = total, bar
        self.ended = 0  # runs, those before this start among them
        self.reasons: set[str] = set()  # why runs failed
        self.lines = ProgressLines()
        self.job = bar.add_task("", total=1.0, count=f"0/{total}")

    def draw(self, progress: Progress) -> None:
        if not progress.item:
            self.ended = int(progress.done)
        text = f"{progress.text}: {progress.item}" if progress.item else progress.text
        count = f"{int(progress.done)}/{self.total}"
        self.bar.update(self.job, completed=progress.work, count=count, description=escape(text))
        if self.bar.disable:
            self.lines.draw(replace(progress, text=text))

    def end(self, run: SweepRun, row: Row | None, why: str) -> None:
        self.ended += 1
        if row is None and why in self.reasons:
            return
        self.reasons.add(why)
        said = why if row is None else f"A {row['average_accuracy']:.2f} F {row['forgetting']:.2f}"
        line = f"{self.ended}/{self.total} {run.name}: {said}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)


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
