"""`accuacl run`."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from rich.markup import escape
from rich.progress import TimeRemainingColumn
from rich.table import Table

from accuacl.base.errors import InputError
from accuacl.base.progress import Progress
from accuacl.cli.app import app, console, progress
from accuacl.experiment import Config
from accuacl.experiment import config as settings
from accuacl.experiment import run as run_experiment
from accuacl.experiment.plugins import load_plugins


def run(
    *,
    out: Path | None,
    config: Path | None,
    data_dir: Path | None,
    fresh: bool,
    skip_bad: bool,
    print_config: bool,
    plugin: list[Path] | None,
    **given: Any,
) -> None:
    """Learn a stream of tasks with few labels: any learner, any strategy, any benchmark.

    Given again, the same command goes on where it was, or shows the result at once. What is not set comes from the
    benchmark's defaults at the chosen --scale, those of the paper at --scale paper; what a --config file sets stays
    set, and options here override it.
    """
    load_plugins(plugin or ())
    from_file = settings.read(config) if config else {}
    chosen = from_file | {key: value for key, value in given.items() if value is not None}
    _check_scale(config, from_file, chosen)
    what = settings.make(chosen, data_dir)
    if print_config:
        print(settings.to_yaml(what), end="")
        return
    name = f"{Path(what.benchmark).name}-{what.learner}-{what.strategy}-m{what.memory}-s{what.seed}"
    out = out or Path("runs") / name
    with warnings.catch_warnings(), progress(TimeRemainingColumn()) as bar:
        warnings.showwarning = lambda message, *_, **__: bar.console.print(
            f"[yellow]note:[/yellow] {escape(str(message))}"
        )
        job = bar.add_task("starting", total=1.0)

        def draw(done: Progress) -> None:
            bar.update(job, completed=done.share, description=escape(done.text))

        result = run_experiment(what, out, data_dir=data_dir, fresh=fresh, skip_bad=skip_bad, progress=draw)
    console.print(_result_table(result))
    spent = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in result["seconds"].items() if kind != "cpu")
    recall = sorted(result["recall"].items(), key=lambda item: item[1])
    worst = ", ".join(f"{escape(name)}: {value:.0f}" for name, value in recall[:3])
    best = ", ".join(f"{escape(name)}: {value:.0f}" for name, value in recall[-3:])
    console.print(f"recall (%): lowest {worst}; highest {best}")
    console.print(f"calibration: confidence is off by {result['calibration_error']:.1f} points on average")
    console.print(f"[dim]{spent}; in {escape(str(out))}[/dim]")


def _check_scale(file: Path | None, from_file: dict[str, Any], chosen: dict[str, Any]) -> None:
    """--scale gives defaults, and a file written by --print-config leaves none to give: refuse, not ignore it."""
    written, wanted = from_file.get("scale"), chosen.get("scale")
    decided = settings.decided_by_scale(str(chosen.get("benchmark", "split-digits")))
    stuck = [name for name in decided if name in from_file]
    if written is not None and written != wanted and stuck:
        raise InputError(
            f"{file} is of scale {written} and sets {', '.join(stuck)}, which --scale {wanted} would not change; "
            "delete its line scale and those that the scale shall decide, or leave out --scale."
        )


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
        option("plugin", list[Path] | None, None, "A Python file with strategies of your own; may be repeated."),
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
