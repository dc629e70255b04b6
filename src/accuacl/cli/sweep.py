"""`accuacl sweep`."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.markup import escape
from rich.progress import MofNCompleteColumn
from rich.table import Table

from accuacl import engines
from accuacl.base.errors import InputError
from accuacl.base.machine import cores
from accuacl.cli.options import Address, DataDir, EngineName, Gpus, Only, Plugin, Results, Workers
from accuacl.cli.screen import command, console, drawn, duration, print_failures, run_and_show
from accuacl.experiments import ALIASES, Config, read_yaml, report
from accuacl.experiments.report import show
from accuacl.experiments.sweeps import (
    EFFICIENCY,
    RECIPES,
    SCALES,
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
    """Do a grid of runs in parallel, only those that are missing, into one table.

    A file is as simple as `benchmark: split-digits`, `strategy: [uniform, accuacl]`, `seeds: [0, 1, 2]`. Given again,
    the same command goes on where it was. A run that fails is reported at the end and does not stop the others.
    """
    load_plugins(plugin or ())
    runs = narrow_runs(runs_of(read_yaml(file), data_dir=data_dir), only or [])
    out = out or Path("runs") / file.stem
    with engines.get(engine, workers, address, gpus) as workplace:
        outcome = run_and_show(runs, out, results or out / "results.csv", workplace, data_dir, plugin or ())
    print_failures(outcome, out)
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

    Given again it goes on where it was; recipes share their runs. `accuacl paper list` says what each costs here.
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
    runs = narrow_runs(every, only or [])
    if table.resolve() == own_table.resolve():
        raise InputError(f"{table} gets the recipe's own rows and no others; give another --results.")
    with engines.get(engine, workers, address, gpus) as workplace:
        outcome = run_and_show(runs, folder, table, workplace, data_dir, plugin or ())
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
    print_failures(outcome, folder)


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
    about = "; ".join([recipe["about"], *refused])
    command = _command(EFFICIENCY, {"scale": scale, "only": list(only)})
    page = report.write_efficiency(costs.totals, out / "efficiency.html", recipe["title"], about, command, machines)
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
        raise InputError(f"--only {' --only '.join(only)} leaves nothing to measure; give less.")
    return chosen


def _cost_table(costs: QueryCosts, title: str) -> Table:
    table = Table("strategy", "CPU s, all tasks", "x accuacl", "extra MiB, most", "x accuacl", title=title)
    ours = costs.totals.get("accuacl")
    for name, (seconds, most) in costs.totals.items():
        ratios = [f"{a / max(b, 1e-9):,.2f}" for a, b in zip((seconds, most), ours, strict=True)] if ours else ["", ""]
        table.add_row(name, f"{seconds:,.2f}", ratios[0], f"{most / 2**20:,.1f}", ratios[1])
    return table


T = TypeVar("T")


def narrow_runs(runs: Sequence[SweepRun], only: Sequence[str]) -> list[SweepRun]:
    """The runs that all conditions let through."""
    return narrow(runs, only, lambda run, name: getattr(run.config, name))


def narrow(runs: Sequence[T], only: Sequence[str], setting: Callable[[T, str], Any]) -> list[T]:
    """The runs, or rows of results, that all conditions `name=value` let through.

    setting: gives a run's value of the setting with a name.
    """
    chosen = list(runs)
    for condition in only:
        name, equals, text = condition.partition("=")
        name = ALIASES.get(name, name.replace("-", "_"))
        if not equals or name not in Config.model_fields:
            raise InputError(f"--only {condition}: give setting=value with a setting's name, like strategy=accuacl.")
        there = dict.fromkeys(setting(run, name) for run in runs)
        values = _meant(text, there)  # the whole text first: orders of classes have commas
        for word in [] if values else map(str.strip, text.split(",")):
            if not (meant := _meant(word, there)):
                known = "; ".join(map(show, there))
                raise InputError(f"--only {condition}: there is no {name} {word} here, only {known}.")
            values |= meant
        chosen = [run for run in chosen if setting(run, name) in values]
    if not chosen:
        raise InputError(f"--only {' --only '.join(only)} leaves no run; give less.")
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
