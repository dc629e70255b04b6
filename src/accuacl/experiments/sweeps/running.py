"""Run a sweep: only the runs that are missing, in parallel, into one table.

A run is skipped if its row is in the table or its directory is finished; an interrupted run continues where it stopped.
A run that fails is reported and does not stop the others, unless the disk is full.
"""

from __future__ import annotations

import contextlib
import operator
import os
import traceback
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from accuacl.base.errors import InputError
from accuacl.base.files import Lock, make_folder, making, write_text
from accuacl.base.progress import OnProgress, Progress, ignore
from accuacl.engines import Engine
from accuacl.experiments import Config, Row, add_to_csv, data_note, run as run_experiment, run_row as row_of
from accuacl.experiments.data import BENCHMARKS, dataset_of, load
from accuacl.experiments.sweeps.cost import images
from accuacl.experiments.sweeps.grid import ERROR_FILE, DataKey, Outcome, SweepRun, rows_by_key
from accuacl.strategies import load_plugins

LOCK = "sweep.lock"
PATIENCE = 60  # seconds; a worker of a sweep that was killed ends too, but on a busy machine not at once
OnEnd = Callable[[SweepRun, Row | None, str], None]  # a run, its row or None, and why it failed


def run_missing(
    runs: Sequence[SweepRun],
    out: Path,
    table: Path,
    engine: Engine,
    *,
    data_dir: Path | None = None,
    plugins: Sequence[Path] = (),
    on_progress: OnProgress = ignore,
    on_end: OnEnd = lambda run, row, why: None,
    on_note: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Do the runs that `table` lacks, each in its own directory in `out`; a row is added as soon as a run ends.

    on_progress gets the number of runs done and, in `work`, the share of the work done. on_note gets a sentence that
    the reader of results must know about the data. A run that fails leaves error.txt in its directory.
    """
    busy = f"another sweep (process {{holder}}) is working in {out}; wait for it or choose another --out."
    noted = {""}

    def report_notes(texts: Iterable[str]) -> None:
        """Each sentence once, however many runs it holds for."""
        for text in texts:
            if text not in noted:
                noted.add(text)
                on_note(text)

    with making(out, LOCK), making(table.parent), Lock(out / LOCK, busy):
        if not os.access(table.parent, os.W_OK) or table.is_dir():
            raise InputError(f"{table} cannot be written; give another --results.")
        known = rows_by_key(table)
        outcome = Outcome([known[run.key] for run in runs if run.key in known])
        missing = [run for run in runs if run.key not in known]
        on_progress(Progress(len(outcome.rows), len(runs), work=0.0))
        problems, notes = _prepare_data(missing, data_dir, len(outcome.rows), on_progress)
        if missing and not outcome.rows and all(problems.values()):
            raise InputError(next(iter(problems.values())))
        report_notes([*notes, *(str(row.get("note") or "") for row in outcome.rows)])
        for run in missing:
            if why := problems[run.data]:
                outcome.failed[run.name] = why
                on_end(run, None, why)
        before = len(outcome.rows) + len(outcome.failed)
        possible = [run for run in missing if not problems[run.data]]
        jobs = [job_for(run, out, data_dir, plugins) for run in possible]
        costs = [images(run.config) for run in possible]
        shares = [float((job.out / "result.json").exists()) for job in jobs]

        def report(index: int, run: Progress) -> None:
            shares[index] = run.share
            work = sum(map(operator.mul, costs, shares)) / sum(costs)
            name, done = possible[index].name, before + sum(shares)
            on_progress(Progress(done, before + len(jobs), run.text, run.stage, item=name, work=work))

        for end in engine.map(do_job, jobs, None if on_progress is ignore else report):
            run, row, why = possible[end.index], None, ""
            if end.failure:
                why = end.failure.message
                if end.failure.kind == "full":
                    raise end.failure.error(run.name)
                outcome.failed[run.name] = why
                outcome.bugs += [run.name] if end.failure.kind == "bug" else []
            else:
                row = end.value.row
                report_notes(end.value.notes)
                outcome.rows.append(row)
                add_to_csv(table, [row])
            report(end.index, Progress(1.0, text="done"))
            on_end(run, row, why)
    return outcome


def _prepare_data(
    runs: Sequence[SweepRun], data_dir: Path | None, before: int, on_progress: OnProgress
) -> tuple[dict[DataKey, str], list[str]]:
    """Decode each data set's images once, here, before the workers start.

    Returns, by data set, why it cannot be read, and notes about those that can.
    """

    def report(images: Progress) -> None:
        text = f"{images.text} {images.done:.0f}/{images.total:.0f}"
        on_progress(Progress(before, max(before, 1), text, images.stage, work=0.0))

    problems: dict[DataKey, str] = {}
    notes = []
    for key in dict.fromkeys(run.data for run in runs):
        problems[key] = ""
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", UserWarning)
                data = load(
                    dataset_of(key.benchmark),
                    data_dir,
                    image_size=key.image_size or None,
                    label_column=key.label_column,
                    task_column=key.task_column,
                    progress=report,
                )
            notes += [*(str(warning.message) for warning in caught), data_note(key.benchmark, len(data.train.labels))]
        except InputError as error:
            problems[key] = str(error)
    return problems, notes


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
    """A run's row for the results table, and the warnings about its data and settings."""

    row: Row
    notes: list[str]


def do_job(job: Job, on_progress: OnProgress) -> JobEnd:
    """Start or resume the run. A failure leaves its traceback in error.txt."""
    (job.out / ERROR_FILE).unlink(missing_ok=True)
    try:
        load_plugins(job.plugins)
        config = Config(**job.config)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            run_experiment(config, job.out, data_dir=job.data_dir, progress=on_progress, patience=PATIENCE)
        return JobEnd(row_of(job.out), [str(warning.message) for warning in caught])
    except Exception as error:
        if job.out.is_dir() or not isinstance(error, InputError):  # input refused at once leaves no directory
            with contextlib.suppress(InputError):  # if the disk is full, that is what has failed
                make_folder(job.out)
                write_text(job.out / ERROR_FILE, traceback.format_exc())
        raise
