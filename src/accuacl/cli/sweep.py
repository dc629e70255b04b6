"""`accuacl sweep`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from accuacl import engines
from accuacl.cli.only import narrow_runs
from accuacl.cli.options import Address, DataDir, EngineName, Gpus, Only, Plugin, Results, Workers
from accuacl.cli.screen import command, console
from accuacl.cli.sweep_screen import print_failures, run_and_show
from accuacl.experiment import read_yaml
from accuacl.strategies import load_plugins
from accuacl.sweeps import runs_of


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
