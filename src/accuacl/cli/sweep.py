"""`accuacl sweep` and `accuacl paper`: grids of runs, and what the screen shows meanwhile."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from accuacl.base.errors import InputError
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
    titles,
    write_recipe_table,
)
from accuacl.strategies import load_plugins

OTHER_LINES = 7  # of the screen: the bar, the live table's frame and head, notes


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
    any_done = any(cost.done for cost in costs)
    note = "From the measured speed of training and of looking at pools; what BAIT's queries take comes on top."
    note += f" Done: in {table}; the time is that of the others." if any_done else ""
    shown = Table(title=f"--scale {scale}", caption=escape(note))
    for head in ("recipe", "runs", *(["done"] if any_done else []), f"time, {workers} core{'s' * (workers > 1)}"):
        shown.add_column(head, no_wrap=True)
    shown.add_column("what it shows")
    for cost in costs:
        queries = cost.recipe == EFFICIENCY
        numbers = [f"{cost.count} queries" if queries else str(cost.count)]
        numbers += ["" if queries else str(cost.done)] if any_done else []
        time = duration(cost.seconds) if cost.done < cost.count else "-"
        shown.add_row(cost.recipe, *numbers, time, escape(cost.about))
    console.print(shown)


def _measure_queries(recipe: dict[str, Any], scale: str, out: Path, only: Sequence[str]) -> None:
    """`accuacl paper efficiency`: a table here, and a page with plots."""
    strategies = _narrow_strategies(recipe["strategy"], only)
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


def _narrow_strategies(strategies: Sequence[str], only: Sequence[str]) -> list[str]:
    """The strategies that `--only strategy=a,b` lets through."""
    chosen = list(strategies)
    for condition in only:
        if not condition.startswith("strategy="):
            raise InputError("efficiency can be narrowed by strategy only: --only strategy=bait,accuacl.")
        names = condition.removeprefix("strategy=").split(",")
        if unknown := [name for name in names if name not in strategies]:
            raise InputError(f"there is no strategy {unknown[0]} here, only {', '.join(strategies)}.")
        chosen = [name for name in chosen if name in names]
    if not chosen:
        raise InputError(f"--only {' --only '.join(only)} leaves nothing to measure; relax it.")
    return chosen


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
    """Do the missing runs; draw one bar for all of them, and below it the finished ones."""
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
    """On a terminal, a bar and a table of finished runs; elsewhere, a line per finished run."""

    def __init__(self, runs: Sequence[SweepRun], bar: Any, live: Live) -> None:
        self.titles, self.total, self.bar, self.live = titles(runs), len(runs), bar, live
        self.before = 0  # runs that were done before this start
        self.ended: list[tuple[str, Row | None, str]] = []
        self.left, self.lines = TimeLeft(), ProgressLines()
        self.job = bar.add_task("", total=len(runs), left=self.left)

    def draw(self, progress: Progress) -> None:
        if not progress.item:
            self.before = int(progress.done)
        self.left.tell(progress.work or 0.0)
        which = f"{self.titles[progress.item]}: " if progress.item else ""
        self.bar.update(self.job, completed=progress.done, description=escape(which + progress.text))
        if self.bar.disable:
            self.lines.draw(replace(progress, text=which + progress.text))

    def end(self, run: SweepRun, row: Row | None, why: str) -> None:
        reported = {reason for _, _, reason in self.ended}
        self.ended.append((self.titles[run.name], row, why))
        count = f"{self.before + len(self.ended)}/{self.total}"
        if console.is_terminal:
            self.live.update(Group(self.bar, _ended_runs(self.ended, console.height - OTHER_LINES)))
        elif row is not None:
            numbers = f"A {row['average_accuracy']:.2f} F {row['forgetting']:.2f}"
            print(f"{count} {run.name}: {numbers}", flush=True)
        elif why not in reported:
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
    """The latest finished runs, at most this many."""
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
