"""The command line: parse, call, print, draw progress."""

from __future__ import annotations

import inspect
import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

import accuacl
from accuacl import bench as benchmark
from accuacl.bench import Case, Measurement
from accuacl.experiment import Config, Event, LabelsPending
from accuacl.experiment import config as settings
from accuacl.experiment import run as run_experiment
from accuacl.experiment.files import write_text
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
    except LabelsPending as waiting:
        print(f"accuacl: {waiting}", file=sys.stderr)
        sys.exit(75)
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


def run(
    *,
    out: Path | None,
    config: Path | None,
    data_dir: Path | None,
    fresh: bool,
    skip_bad: bool,
    print_config: bool,
    **given: Any,
) -> None:
    """Learn a stream of tasks with few labels: any learner, any strategy, any benchmark.

    Given again, the same command goes on where it was, or shows the result at once. What is not set comes from the
    benchmark's defaults at the chosen --scale, those of the paper at --scale paper.
    """
    from_file = settings.read(config) if config else {}
    if given["scale"] and from_file.get("scale", given["scale"]) != given["scale"]:
        raise ValueError(f"{config} is of scale {from_file['scale']}; leave out --scale or change it in the file.")
    what = settings.make(from_file | {key: value for key, value in given.items() if value is not None})
    if print_config:
        print(settings.to_yaml(what), end="")
        return
    name = f"{Path(what.benchmark).name}-{what.learner}-{what.strategy}-m{what.memory}-s{what.seed}"
    out = out or Path("runs") / name
    with warnings.catch_warnings(), _progress(TimeRemainingColumn()) as bar:
        warnings.showwarning = lambda message, *_, **__: bar.console.print(
            f"[yellow]note:[/yellow] {escape(str(message))}"
        )
        job = bar.add_task("starting", total=1.0)

        def draw(event: Event) -> None:
            bar.update(job, completed=event.done, description=escape(event.text))

        result = run_experiment(what, out, data_dir=data_dir, fresh=fresh, skip_bad=skip_bad, progress=draw)
    console.print(_result_table(result))
    spent = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in result["seconds"].items())
    recall = sorted(result["recall"].items(), key=lambda item: item[1])
    worst = ", ".join(f"{escape(name)}: {value:.0f}" for name, value in recall[:3])
    best = ", ".join(f"{escape(name)}: {value:.0f}" for name, value in recall[-3:])
    console.print(f"recall (%): lowest {worst}; highest {best}")
    console.print(f"calibration: confidence is off by {result['calibration_error']:.1f} points on average")
    console.print(f"[dim]{spent}; in {escape(str(out))}[/dim]")


def _run_options() -> inspect.Signature:
    """The command's options: its own, and one for every field of the config."""

    def option(name: str, kind: Any, default: Any, help: str, *flags: str) -> inspect.Parameter:
        annotation = Annotated[kind, typer.Option(*flags, help=help)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    options = [
        option("out", Path | None, None, "The run's directory (runs/...)."),
        option("config", Path | None, None, "Settings from a YAML file; options here override it."),
        option("data_dir", Path | None, None, "Where the data lies; also the environment variable ACCUACL_DATA."),
        option("fresh", bool, False, "Start over, removing what the directory has of an earlier run.", "--fresh"),
        option("skip_bad", bool, False, "Leave out images that cannot be read.", "--skip-bad"),
        option("print_config", bool, False, "Show all settings as YAML and stop.", "--print-config"),
    ]
    for name, field in Config.model_fields.items():
        kind = next((k for k in (get_args(field.annotation) or (field.annotation,)) if k in (int, float)), str)
        if get_origin(field.annotation) is None and field.annotation in (int, float):
            kind = field.annotation
        options.append(option(name, kind | None, None, field.description or ""))
    return inspect.Signature(options)


run.__signature__ = _run_options()  # type: ignore[attr-defined]
run.__annotations__ = {p.name: p.annotation for p in run.__signature__.parameters.values()}  # type: ignore[attr-defined]
app.command()(run)


def _result_table(result: dict[str, Any]) -> Table:
    """The accuracy matrix, and below it what it comes to."""
    c, matrix = result["config"], result["accuracy_matrix"]
    title = (
        f"{c['benchmark']}, {c['learner']} with {c['strategy']}, memory {c['memory']}, seed {c['seed']}: accuracy (%)"
    )
    table = Table(
        title=escape(title),
        caption=", ".join(
            f"{name.replace('_', ' ')} {result[name]:.2f}"
            for name in ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy")
        ),
    )
    table.add_column("after task \\ on task")
    for j in range(len(matrix)):
        table.add_column(str(j + 1), justify="right")
    for t, row in enumerate(matrix):
        table.add_row(str(t + 1), *("" if x is None else f"{x:.1f}" for x in row))
    return table


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
        bool, typer.Option("--full", help="Also a pool of 1,000,000 and BAIT's largest: 20 minutes.")
    ] = False,
    threads: Annotated[int, typer.Option(min=1, help="Threads for each strategy.")] = 1,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write all numbers to this file.")] = None,
) -> None:
    """Measure query strategies on this machine: time, memory, and how far from the possible.

    Without --n the standard cases are measured, about four minutes; with it, every combination of --n, --d, --classes
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
    if json_file and json_file.is_dir():
        raise ValueError(f"{json_file} is a folder; give the name of a file in it.")
    if json_file and not json_file.resolve().parent.is_dir():
        raise ValueError(
            f"there is no folder {json_file.resolve().parent} to write {json_file.name} to; make it first."
        )
    results: list[Measurement] = []
    with _progress(MofNCompleteColumn()) as bar:
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
        write_text(json_file, text + "\n")
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


def _progress(*more: ProgressColumn) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), *more, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)
