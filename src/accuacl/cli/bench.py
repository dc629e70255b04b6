"""`accuacl bench`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich import box
from rich.progress import MofNCompleteColumn
from rich.table import Table

from accuacl import bench as benchmark
from accuacl.base.errors import InputError, no_such
from accuacl.base.files import check_new_file, write_text
from accuacl.base.progress import Progress
from accuacl.bench import Case, Measurement, Threads
from accuacl.cli.screen import console, drawn
from accuacl.strategies import NAMES

Result = TypeVar("Result")
MEASURED = ("CPU s", "wall s", "MiB", "x dense", "x memory", "/ floor")
THREADS = ("beside", "CPU 1", "CPU s", "x", "wall 1", "wall s", "x")


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
    memory: Annotated[
        int | None, typer.Option(min=0, help="With --n: size of the replay memory (default: 1000).")
    ] = None,
    labelled: Annotated[
        int | None, typer.Option(min=0, help="With --n: how many examples are labelled already (default: 0).")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also measure a pool of 1,000,000 and BAIT at its largest; takes 20 minutes.")
    ] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for each strategy (default: 1).")] = None,
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
    inputs: all in the same run. With --compare-threads, "1" marks one thread, "x" the ratio.
    """
    for name in strategy or ():
        if name not in NAMES:
            raise no_such("strategy", name, NAMES)
    if n and full:
        raise InputError("--full adds to the standard cases, which --n replaces; leave out one of the two.")
    if compare_threads and threads:
        raise InputError("--compare-threads takes one thread and a strategy's own number; leave out --threads.")
    if n:
        m = 1000 if memory is None else memory
        cases = benchmark.grid(strategy or NAMES, n, d or [512], classes or [100], budget or [200], m, labelled or 0)
    elif d or classes or budget or memory is not None or labelled is not None:
        raise InputError(
            "--d, --classes, --budget, --memory and --labelled describe a pool of --n examples; give --n too."
        )
    else:
        cases = [case for case in benchmark.standard(full) if not strategy or case.strategy in strategy]
    if json_file:
        check_new_file(json_file)
    results: list[Any]
    if compare_threads:
        results = [row for rows in _drawn(cases, benchmark.compare(cases)) for row in rows]
        tables = _tables("One thread, and a strategy's own", THREADS, _threads_rows(results))
    else:
        results = _drawn(cases, benchmark.run(cases, threads or 1))
        tables = _tables("Query time and memory", MEASURED, _bench_rows(results))
    for table in tables:
        console.print(table)
    machine = benchmark.machine(None if compare_threads else threads or 1)
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


def _tables(about: str, names: Sequence[str], rows: Iterable[tuple[Case, list[str]]]) -> Iterator[Table]:
    """A table for each size, narrow enough for a terminal of 80 columns."""
    sizes: dict[str, list[list[str]]] = {}
    for case, cells in rows:
        size = f"n {case.n:,}, memory {case.m:,}, labelled {case.labelled:,}, d {case.d:,}, K {case.K:,}"
        size += f", budget {case.b:,}"
        sizes.setdefault(size, []).append([case.strategy, *cells])
    for size, lines in sizes.items():
        table = Table(title=f"{about}: {size}", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for name in ("strategy", *names):
            table.add_column(name, justify="left" if name in ("strategy", "beside") else "right", no_wrap=True)
        for line in lines:
            table.add_row(*line)
        yield table


def _threads_rows(results: list[Threads]) -> Iterator[tuple[Case, list[str]]]:
    for row in results:
        cpu = [f"{row.one_cpu:.3f}", f"{row.cpu:.3f}", f"{row.cpu_ratio:.2f}"]
        wall = [f"{row.one_wall:.3f}", f"{row.wall:.3f}", f"{row.wall_ratio:.2f}"]
        yield row.case, ["work" if row.busy else "nothing", *cpu, *wall]


def _bench_rows(results: list[Measurement]) -> Iterator[tuple[Case, list[str]]]:
    for result in results:
        if result.cpu is None or result.wall is None or result.memory is None:
            yield result.case, ["needs", "", f"{(result.needs or 0) / 2**30:,.0f} GiB", "", "", ""]
            continue
        numbers = [f"{result.cpu:.3f}", f"{result.wall:.3f}", f"{result.memory / 2**20:,.0f}"]
        ratios = (result.speedup, result.memory_ratio, result.over_floor)
        yield result.case, [*numbers, *map(_ratio, ratios)]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:,.0f}"
