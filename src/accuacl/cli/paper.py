"""`accuacl paper`: every table and figure of the paper from one command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from accuacl import engines, report
from accuacl.base.errors import InputError
from accuacl.base.files import cores
from accuacl.cli import efficiency
from accuacl.cli.only import narrow
from accuacl.cli.options import Address, DataDir, EngineName, Gpus, Only, Plugin, Results, Workers
from accuacl.cli.screen import console, duration, progress_bar
from accuacl.cli.sweep import perform, setting, tell_failures
from accuacl.experiment.plugins import load_plugins
from accuacl.experiment.record import write_csv
from accuacl.strategies import REGISTRY
from accuacl.sweeps import recipes
from accuacl.sweeps.cost import core_seconds
from accuacl.sweeps.sweep import Outcome, by_key, cells

SCALES = ("smoke", "cpu", "paper")


def paper(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(recipes.NAMES)}; or list, with what each costs.")],
    scale: Annotated[
        str, typer.Option(help="smoke (seconds a run), cpu (minutes), paper (exact; for a GPU).")
    ] = "smoke",
    only: Only = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory of the runs (runs/paper-SCALE, shared by recipes).")
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
    before = set(REGISTRY)
    load_plugins(plugin or ())
    own = [strategy for strategy in REGISTRY if strategy not in before]
    usual = Path("runs") / f"paper-{scale}"
    elsewhere: dict[str, object] = {"engine": engine != "local", "address": address, "gpus": gpus}
    if name == "list":
        _refuse("list takes no --{}: it says what whole recipes cost here", only=only, **elsewhere)
        done = results or (out or usual) / "results.csv"
        console.print(_costs(scale, done, own, workers or cores()))
        return
    recipe = _with(recipes.read(name), own)
    out = out or usual
    if name == "efficiency":
        why = "efficiency takes no --{}: it times the usual strategies here, one by one"
        _refuse(why, results=results, workers=workers, plugin=plugin, **elsewhere)
        efficiency.measure(recipe, scale, out, only or [])
        return
    everything = cells(recipe, {"scale": scale}, data_dir)
    wanted = narrow(everything, only or [], setting)
    table, own_table = results or out / "results.csv", out / f"{name}.csv"
    if table.resolve() == own_table.resolve():
        raise InputError(f"{table} gets the recipe's own rows and no others; give another --results.")
    with engines.get(engine, workers, address, gpus) as chosen:
        outcome = perform(wanted, out, table, chosen, data_dir, plugin or ())
    known = by_key(table)
    shown = {cell.key for cell in everything if cell.key in known}  # also what was done before
    if shown:
        write_csv(own_table, [known[key] for key in shown])
        narrowed = shown <= {cell.key for cell in wanted}
        again = ["accuacl", "paper", name, "--scale", scale]
        again += [x for text in only or [] if narrowed for x in ("--only", text)]
        for option, given in (
            ("--out", out if out != usual else None),
            ("--results", results),
            ("--data-dir", data_dir),
        ):
            again += [option, str(given)] if given else []
        again += [x for path in plugin or [] for x in ("--plugin", str(path))]
        page = report.write(
            [own_table],
            out / f"{name}.html",
            title=recipe["title"],
            command=shlex.join(again),
            notices=_missing(len(shown), len(everything), outcome),
        )
        console.print(f"report: {escape(str(page))}")
    tell_failures(outcome, out)


def _missing(there: int, all: int, outcome: Outcome) -> list[str]:
    """What must be known of a report that has not all of its recipe."""
    said = [f"{there:,} of the {all:,} runs of this recipe."] if there < all else []
    return said + [f"Failed: {why}" for why in sorted(set(outcome.failed.values()))]


def _refuse(why: str, **given: object) -> None:
    """Options that would be ignored."""
    for option in (name for name, value in given.items() if value):
        raise InputError(f"{why.format(option)}; leave it out.")


def _with(recipe: dict[str, Any], own: list[str]) -> dict[str, Any]:
    """The recipe with strategies of one's own beside its usual ones."""
    usual = recipe["strategy"]
    return recipe | {"strategy": [*(usual if isinstance(usual, list) else [usual]), *own]}


def _costs(scale: str, results: Path, own: list[str], workers: int) -> Table:
    """Runs of each recipe and their time here, from the measured speed of its networks."""
    known = by_key(results)
    note = "From the measured speed of training and of looking at pools; what BAIT's queries take comes on top."
    note += f" Done: in {results}; the time is that of the others." if known else ""
    table = Table(title=f"--scale {scale}", caption=escape(note))
    for head in ("recipe", "runs", *(["done"] if known else []), f"time, {workers} core{'s' * (workers > 1)}"):
        table.add_column(head, no_wrap=True)
    table.add_column("what it shows")
    with progress_bar() as bar:
        job = bar.add_task("", total=len(recipes.NAMES))
        for name in recipes.NAMES:
            bar.update(job, description=f"measuring for {name}")
            recipe = recipes.read(name)
            if name == "efficiency":
                queries = len(recipe["strategy"]) * len(recipe["classes"])
                numbers = [f"{queries} queries", *([""] if known else []), duration(queries * efficiency.EACH)]
            else:
                wanted = cells(_with(recipe, own), {"scale": scale})
                missing = [cell for cell in wanted if cell.key not in known]
                seconds = sum(core_seconds(cell.config) for cell in missing) / workers
                done = [str(len(wanted) - len(missing))] if known else []
                numbers = [str(len(wanted)), *done, duration(seconds) if missing else "-"]
            table.add_row(name, *numbers, escape(recipe["about"]))
            bar.advance(job)
    return table
