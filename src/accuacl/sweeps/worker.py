"""What a worker does: one run, in its own directory."""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accuacl.base.errors import InputError
from accuacl.base.files import make_folder, write_text
from accuacl.base.progress import OnProgress
from accuacl.data import BENCHMARKS
from accuacl.experiment import Config, Row
from accuacl.experiment import run as run_experiment
from accuacl.experiment import run_row as row_of
from accuacl.strategies import load_plugins
from accuacl.sweeps.grid import SweepRun
from accuacl.sweeps.outcome import ERROR_FILE

PATIENCE = 60  # seconds; a worker of a sweep that was killed ends too, but on a busy machine not at once


class Job(NamedTuple):
    """All that a worker needs for a run; it may have another working directory and environment."""

    config: dict[str, Any]
    out: Path
    data_dir: Path | None
    plugins: tuple[Path, ...]


def job_for(run: SweepRun, out: Path, data_dir: Path | None, plugins: Sequence[Path]) -> Job:
    """The run as a job, with absolute paths."""
    from_environment = os.environ.get("ACCUACL_DATA")
    folder = data_dir or (Path(from_environment) if from_environment else None)
    if run.config.benchmark not in BENCHMARKS and Path(run.config.benchmark).exists():
        folder = Path()  # the user's own data, here and not in data_dir
    return Job(
        run.config.model_dump(),
        out.resolve() / run.name,
        folder.resolve() if folder else None,
        tuple(path.resolve() for path in plugins),
    )


class JobEnd(NamedTuple):
    """A run's row for the results table, and the sentences that were said about its data and settings."""

    row: Row
    notes: list[str]


def do_job(job: Job, on_progress: OnProgress) -> JobEnd:
    """Start or continue the run. A failure leaves its traceback in error.txt."""
    (job.out / ERROR_FILE).unlink(missing_ok=True)
    try:
        load_plugins(job.plugins)
        config = Config(**job.config)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", UserWarning)
            run_experiment(config, job.out, data_dir=job.data_dir, progress=on_progress, patience=PATIENCE)
        return JobEnd(row_of(job.out), [str(warning.message) for warning in said])
    except Exception as error:
        if job.out.is_dir() or not isinstance(error, InputError):  # input refused at once leaves no directory
            with contextlib.suppress(InputError):  # if the disk is full, that is what has failed
                make_folder(job.out)
                write_text(job.out / ERROR_FILE, traceback.format_exc())
        raise
