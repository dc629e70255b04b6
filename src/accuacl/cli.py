"""The command line: parse, call, print, draw progress."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import accuacl
from accuacl import bench as benchmark
from accuacl.bench import Case, Measurement
from accuacl.strategies import NAMES

app = typer.Typer(
    name="accuacl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="What to label next, when a model must learn new classes without forgetting the old.",
)
console = Console()


def main() -> None:
    """Run the command; wrong input ends with one sentence and exit code 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        where = f" (see {context.command_path} --help)" if context else ""
        if error.format_message():  # empty where the help has been shown instead
            print(f"accuacl: {error.format_message().rstrip('.')}{where}.", file=sys.stderr)
    except (ValueError, OSError) as error:
        print(f"accuacl: {error}", file=sys.stderr)
    except (KeyboardInterrupt, typer.Abort):
        print("accuacl: interrupted.", file=sys.stderr)
        sys.exit(130)
    sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"accuacl {accuacl.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What to label next, when a model must learn new classes without forgetting the old."""


@app.command()
def bench(
    strategy: Annotated[
        list[str] | None, typer.Option(help=f"Only this one; repeat for several. One of {', '.join(NAMES)}.")
    ] = None,
    n: Annotated[list[int] | None, typer.Option("--n", min=1, help="Pool sizes; repeat for a grid.")] = None,
    d: Annotated[list[int] | None, typer.Option("--d", min=1, help="Embedding widths (512).")] = None,
    classes: Annotated[list[int] | None, typer.Option(min=1, help="Numbers of classes (100).")] = None,
    budget: Annotated[list[int] | None, typer.Option(min=1, help="Budgets (200).")] = None,
    memory: Annotated[int, typer.Option(min=0, help="Size of the replay memory, with --n.")] = 1000,
    labelled: Annotated[int, typer.Option(min=0, help="Examples already labelled, with --n.")] = 0,
    full: Annotated[
        bool, typer.Option("--full", help="Also a pool of 1,000,000 and BAIT's largest: ten minutes.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads for each strategy.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all numbers to this file.")] = None,
) -> None:
    """Measure query strategies on this machine: time, memory, and how far from the possible.

    Without --n the standard cases are measured, about two minutes; with it, every combination of --n, --d, --classes
    and --budget. "x dense" is how many times less CPU time than the vectorised definition, "x memory" how many times
    less memory beyond the inputs, "/ floor" how many times the CPU time of the bare matrix products and one read of the
    inputs: all in the same run.
    """
    for name in strategy or ():
        if name not in NAMES:
            raise ValueError(f"there is no strategy {name!r}; the strategies are {', '.join(NAMES)}.")
    if n:
        cases = benchmark.grid(strategy or NAMES, n, d or [512], classes or [100], budget or [200], memory, labelled)
    elif d or classes or budget:
        raise ValueError("--d, --classes and --budget describe a pool of --n examples; give --n too.")
    else:
        cases = [case for case in benchmark.standard(full) if not strategy or case.strategy in strategy]
    if json_file and not json_file.resolve().parent.is_dir():
        raise ValueError(
            f"there is no folder {json_file.resolve().parent} to write {json_file.name} to; make it first."
        )
    results: list[Measurement] = []
    with _progress() as bar:
        job = bar.add_task("", total=len(cases))
        measured = benchmark.run(cases, threads)
        for case in cases:
            bar.update(job, description=f"{case.strategy} n={case.n:,}")
            results.append(next(measured))
            bar.advance(job)
    console.print(_bench_table(results))
    console.print(f"[dim]{benchmark.machine(threads)}; seed 0; best of up to five; CPU seconds of all threads.[/dim]")
    if json_file:
        text = json.dumps({"machine": benchmark.machine(threads), "results": [m.as_dict() for m in results]}, indent=1)
        _write(json_file, text + "\n")
        console.print(f"written: {json_file}")


def _bench_table(results: list[Measurement]) -> Table:
    table = Table(title="Query time and memory")
    for name in (
        "strategy",
        "n",
        "m",
        "l",
        "d",
        "K",
        "b",
        "CPU s",
        "wall s",
        "extra MiB",
        "x dense",
        "x memory",
        "/ floor",
    ):
        table.add_column(name, justify="left" if name == "strategy" else "right", no_wrap=True)
    for result in results:
        case: Case = result.case
        size = [f"{value:,}" for value in (case.n, case.m, case.labelled, case.d, case.K, case.b)]
        if result.cpu is None or result.wall is None or result.memory is None:
            table.add_row(case.strategy, *size, "-", "-", _needs(result.note), "", "", "")
            continue
        less = result.dense_memory / max(result.memory, 1 << 20) if result.dense_memory else None
        table.add_row(
            case.strategy,
            *size,
            f"{result.cpu:.3f}",
            f"{result.wall:.3f}",
            f"{result.memory / 2**20:,.0f}",
            _ratio(result.speedup),
            _ratio(less),
            _ratio(result.over_floor),
        )
    return table


def _needs(note: str) -> str:
    """The bytes a refusal names, in GiB."""
    digits = next((word.replace(",", "") for word in note.split() if word.replace(",", "").isdigit()), "")
    return f"needs {int(digits) / 2**30:,.0f} GiB" if digits else note


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _write(path: Path, text: str) -> None:
    """Aside first, then in place: the file is whole or it is the old one."""
    with tempfile.NamedTemporaryFile("w", dir=path.resolve().parent, delete=False) as file:
        file.write(text)
    os.replace(file.name, path)
