"""`accuacl bench`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import MofNCompleteColumn
from rich.table import Table

from accuacl import bench as benchmark
from accuacl.base.errors import InputError
from accuacl.base.files import check_new_file, write_text
from accuacl.base.names import no_such
from accuacl.base.progress import Progress
from accuacl.bench import Case, Measurement, Threads
from accuacl.cli.screen import console, drawn
from accuacl.strategies import NAMES

Result = TypeVar("Result")


def bench(
    strategy: Annotated[
        list[str] | None, typer.Option(help=f"Measure only this strategy; may be repeated. One of {', '.join(NAMES)}.")
    ] = None,
    n: Annotated[list[int] | None, typer.Option("--n", min=1, help="Pool size; repeat for a grid.")] = None,
    d: Annotated[
        list[int] | None, typer.Option("--d", min=1, help="Embedding width; may be repeated (default: 512).")
    ] = None,
    classes: Annotated[
        list[int] | None, typer.Option(min=1, help="Number of classes; may be repeated (default: 100).")
    ] = None,
    budget: Annotated[list[int] | None, typer.Option(min=1, help="Budget; may be repeated (default: 200).")] = None,
    memory: Annotated[int, typer.Option(min=0, help="With --n: size of the replay memory.")] = 1000,
    labelled: Annotated[int, typer.Option(min=0, help="With --n: how many examples are labelled already.")] = 0,
    full: Annotated[
        bool, typer.Option("--full", help="Also measure a pool of 1,000,000 and BAIT at its largest; takes 20 minutes.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads for each strategy.")] = 1,
    compare_threads: Annotated[
        bool,
        typer.Option(
            "--compare-threads",
            help="Instead, compare one thread with as many as a strategy takes by itself, beside a busy process too.",
        ),
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all numbers to this file.")] = None,
) -> None:
    """Measure query strategies on this machine: time, memory, and how far they are from the possible.

    Without --n the standard cases are measured, about four minutes; with it, every combination of --n, --d, --classes
    and --budget. "x dense" is how many times less CPU time than the vectorised definition, "x memory" how many times
    less memory beyond the inputs, "/ floor" how many times the CPU time of the bare matrix products and one read of the
    inputs: all in the same run.
    """
    for name in strategy or ():
        if name not in NAMES:
            raise no_such("strategy", name, NAMES)
    if n:
        cases = benchmark.grid(strategy or NAMES, n, d or [512], classes or [100], budget or [200], memory, labelled)
    elif d or classes or budget:
        raise InputError("--d, --classes and --budget describe a pool of --n examples; give --n too.")
    else:
        cases = [case for case in benchmark.standard(full) if not strategy or case.strategy in strategy]
    if json_file:
        check_new_file(json_file)
    results: list[Any]
    if compare_threads:
        results = [row for rows in _drawn(cases, benchmark.compare(cases)) for row in rows]
        console.print(_threads_table(results))
    else:
        results = _drawn(cases, benchmark.run(cases, threads))
        console.print(_bench_table(results))
    machine = benchmark.machine(None if compare_threads else threads)
    console.print(f"[dim]{machine}; seed 0; best of a few; CPU seconds of all threads.[/dim]")
    if json_file:
        text = json.dumps({"machine": machine, "results": [result.as_dict() for result in results]}, indent=1)
        write_text(json_file, text + "\n")
        console.print(f"written: {json_file}")


def _drawn(cases: list[Case], measurements: Iterator[Result]) -> list[Result]:
    """All measurements, with the progress drawn."""
    results = []
    with drawn(MofNCompleteColumn()) as draw:
        for done, case in enumerate(cases):
            draw(Progress(done, len(cases), f"{case.strategy} n={case.n:,}"))
            results.append(next(measurements))
    return results


def _threads_table(results: list[Threads]) -> Table:
    table = Table(title="One thread, and as many as a strategy takes by itself")
    names = ("n", "d", "K", "b", "beside", "CPU s, one", "CPU s", "ratio", "wall s, one", "wall s", "ratio")
    for name in ("strategy", *names):
        table.add_column(name, justify="left" if name in ("strategy", "beside") else "right", overflow="fold")
    for row in results:
        case = row.case
        size = [f"{value:,}" for value in (case.n, case.d, case.K, case.b)]
        seconds = [f"{row.one_cpu:.3f}", f"{row.cpu:.3f}", f"{row.cpu_ratio:.2f}"]
        seconds += [f"{row.one_wall:.3f}", f"{row.wall:.3f}", f"{row.wall_ratio:.2f}"]
        table.add_row(case.strategy, *size, "a busy process" if row.busy else "nothing", *seconds)
    return table


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
        table.add_column(name, justify="left" if name == "strategy" else "right", overflow="fold")
    for result in results:
        case: Case = result.case
        size = [f"{value:,}" for value in (case.n, case.m, case.labelled, case.d, case.K, case.b)]
        if result.cpu is None or result.wall is None or result.memory is None:
            table.add_row(case.strategy, *size, "-", "-", f"needs {(result.needs or 0) / 2**30:,.0f} GiB", "", "", "")
            continue
        table.add_row(
            case.strategy,
            *size,
            f"{result.cpu:.3f}",
            f"{result.wall:.3f}",
            f"{result.memory / 2**20:,.0f}",
            _ratio(result.speedup),
            _ratio(result.memory_ratio),
            _ratio(result.over_floor),
        )
    return table


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"
