"""`accuacl run`: one experiment, and its result in a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.markup import escape
from rich.progress import TimeRemainingColumn
from rich.table import Table

from accuacl.base.errors import InputError
from accuacl.cli.options import DataDir, Fresh, OptionWords, Plugin, SkipBad, with_settings
from accuacl.cli.screen import command, console, drawn
from accuacl.experiments import (
    BY_SCALE,
    OPTIONS,
    Config,
    advice,
    decided_by_scale,
    describe_stream,
    make,
    overridden,
    read_yaml,
    renamed,
    to_yaml,
)
from accuacl.experiments.learners import REGISTRY as LEARNERS
from accuacl.experiments.sweeps import run_name
from accuacl.strategies import load_plugins, split_options

# The defaults of these follow from other settings, so that help names none.
VARYING = ("strategy", "scale", "first_round", "pool_learning", "sample", "keep", "oversample")


@with_settings(Config, without=("model_digest", OPTIONS), varying=(*BY_SCALE, *VARYING))
def run(
    *,
    out: Annotated[
        Path | None, typer.Option(help="The run's directory (default: one in runs/, named by the settings).")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings from a YAML file; options here override it.")] = None,
    data_dir: DataDir = None,
    fresh: Fresh = False,
    skip_bad: SkipBad = False,
    plugin: Plugin = None,
    option: OptionWords = None,
    log_to: Annotated[
        str | None,
        typer.Option(help="Write curves of the run for TensorBoard: tensorboard:DIR (with the extra `logs`)."),
    ] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Show all settings as YAML and stop.")] = False,
    **given: Any,
) -> None:
    """Learn a stream of tasks with few labels: any learner, any strategy, any benchmark.

    Run the same command again to resume, or to show the result once it is finished. Settings that you leave out take
    the benchmark's defaults at the chosen --scale, which are the paper's at --scale paper; options override what a
    --config file sets. With --model pretrained, the defaults are --scale cpu, --strategy coverage and
    --first-round coverage.
    """
    load_plugins(plugin or ())
    from_file = renamed(read_yaml(config)) if config else {}
    typed = {name: value for name, value in given.items() if value is not None}
    typed |= {f"{OPTIONS}.{name}": value for name, value in split_options(option or ()).items()}
    chosen = overridden(from_file, typed)
    _check_scale(config, from_file, chosen)
    if chosen.get("noise") == "alike" and not chosen.get("label_noise"):
        raise InputError("--noise alike says which answers are wrong, and --label-noise how many; give both.")
    learner = chosen.get("learner", Config.model_fields["learner"].default)
    if chosen.get("pool_learning", "off") != "off" and learner != "kernel":
        raise InputError(f"--pool-learning goes with --learner kernel, not {learner}; leave it out.")
    what = make(chosen, data_dir)
    if print_config:
        print(to_yaml(what), end="")
        return
    out = out or Path("runs") / run_name(what, data_dir)
    if fresh or not (out / "result.json").exists():
        for sentence in advice(what, chosen):
            console.print(f"[yellow]note:[/yellow] {escape(sentence)}", soft_wrap=True)
    from accuacl.experiments import run as run_experiment  # loads torch

    with drawn(TimeRemainingColumn()) as draw:
        result = run_experiment(
            what, out, data_dir=data_dir, fresh=fresh, skip_bad=skip_bad, progress=draw, log_to=log_to
        )
    _print_accuracy(result)
    console.print(f"recall (%): {escape(_recall(result['recall']))}")
    _print_classes(result)
    console.print(f"calibration: confidence is off by {result['calibration_error']:.1f} points on average")
    spent = ", ".join(f"{kind} {seconds:.1f} s" for kind, seconds in result["seconds"].items() if kind != "cpu")
    console.print(f"[dim]{spent}; in {escape(str(out))}[/dim]")
    console.print(f"with plots: {command('report', out)}", soft_wrap=True)


def _recall(by_class: dict[str, float]) -> str:
    """The recall of all classes, or of the lowest and highest.

    >>> _recall({"a": 50.0, "b": 20.0})
    'b: 20, a: 50'
    """
    texts = [f"{name}: {value:.0f}" for name, value in sorted(by_class.items(), key=lambda item: item[1])]
    if len(texts) <= 6:
        return ", ".join(texts)
    return f"lowest {', '.join(texts[:3])}; highest {', '.join(texts[-3:])}"


def _print_classes(result: dict[str, Any]) -> None:
    """What matters where classes differ in how many examples they have."""
    console.print(
        f"accuracy: mean over classes {result['class_accuracy']:.1f}, over test examples "
        f"{result['example_accuracy']:.1f}; classes found: {result['found'][-1][-1]:.0f} %; labels of the rarest "
        f"({escape(result['rarest_class'])}): {result['rarest_labels'][-1][-1]}"
    )


def _check_scale(file: Path | None, from_file: dict[str, Any], chosen: dict[str, Any]) -> None:
    """Refuse a --scale that would change nothing: it sets defaults, and a file from --print-config sets everything."""
    written, wanted = from_file.get("scale"), chosen.get("scale")
    decided = decided_by_scale(str(chosen.get("benchmark", "split-digits")))
    stuck = [name for name in decided if name in from_file]
    if written is not None and written != wanted and stuck:
        raise InputError(
            f"{file} is of scale {written} and sets {', '.join(stuck)}, which --scale {wanted} would not change; "
            "delete its line scale and those that the scale should decide, or leave out --scale."
        )


def _print_accuracy(result: dict[str, Any]) -> None:
    """The accuracy matrix, and below it its summary."""
    c, matrix = result["config"], result["accuracy_matrix"]
    stream = f", {words}" if (words := describe_stream(c)) else ""
    exact = getattr(LEARNERS.get(c["learner"]), "exact", False)
    memory = "memory: all" if exact else f"memory {c['memory']}"
    labels = "all labels" if c["strategy"] == "full" else f"{c['labels']} labels a task"
    run = f"{c['benchmark']}, {c['learner']} with {c['strategy']}, {memory}, {labels}{stream}, seed {c['seed']}"
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))  # ten tasks in 80 columns
    table.add_column("after \\ on", no_wrap=True)
    for j in range(len(matrix)):
        table.add_column(str(j + 1), justify="right", no_wrap=True)
    for t, row in enumerate(matrix):
        table.add_row(f"task {t + 1}", *("" if x is None else f"{x:.1f}" for x in row))
    names = ("average_accuracy", "forgetting", "forgetting_max", "learning_accuracy")
    console.print(f"[bold]{escape(run)}: accuracy (%)[/bold]", highlight=False)
    console.print(table)
    console.print(", ".join(f"{name.replace('_', ' ')} {result[name]:.2f}" for name in names))
